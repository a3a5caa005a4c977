"""Change the version that a running server speaks with: no request is cut off or refused.

    python build/build_repository.py --checkpoint checkpoints/new --output models --version 2
    python build/release.py publish 2 --repository models --token-file TOKEN
    python build/release.py status --repository models --token-file TOKEN
    python build/release.py rollback --repository models --token-file TOKEN

publish loads the new version beside the old one. The new front speaks once through the new token
model and vocoder before it counts as loaded: a version that cannot is refused, and nothing changes.
Then new requests get the new version, running ones end with the old one, and the old one is
released. --keep serves both: a request may name its version, and gets the highest if it does not.
rollback publishes the version that was served before the last publish; once, it does not come back.

What is served is written in the repository's config.pbtxt files, so that a server that starts again
serves the same; --offline only writes it, for a server that does not run. Change nothing else in
these files while a server runs: it would load the versions that it has anew, and cut them off.

TOKEN is the file that embedded/serve.py prints. That of a container:
    docker compose exec -T triton cat /tmp/control-token > TOKEN

Exit status: 0 done, 1 refused or not finished (with the reason), 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from files import INTERRUPTED
from release_steps import Release, ReleaseError
from repository import OWN_REPOSITORY, RepositoryError, locked
from triton_control import ControlError, TritonControl


def _print_status(rows: Sequence[dict[str, object]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        models = row["models"]
        assert isinstance(models, dict)
        states = ", ".join(f"{model} {state}" for model, state in models.items())
        served_now = "served" if row["served"] else "not served"
        print(f"{row['version']}  {row['checkpoint']}  {served_now}")
        if row["loaded"] and not _is_as_built(row):
            print(f"   loaded is {row['loaded']}, built over since: the next start serves the new")
        if states:
            print(f"   {states}; {row['running_requests']:.0f} requests running")


def _is_as_built(row: Mapping[str, object]) -> bool:
    """Whether what is loaded has the checkpoint and precision of what is on disk."""
    return str(row["checkpoint"]).startswith(str(row["loaded"]).removesuffix(")") + ",")


def _read_token(path: Path | None) -> str:
    if path is None:
        return ""
    return (sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")).strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--repository",
        type=Path,
        default=OWN_REPOSITORY,
        metavar="DIR",
        help="that the server reads; default: the one of this checkout",
    )
    common.add_argument("--http", default="localhost:8000", metavar="HOST:PORT")
    common.add_argument("--metrics", default="localhost:8002", metavar="HOST:PORT")
    common.add_argument(
        "--token-file", type=Path, metavar="FILE", help="the server's secret; - reads it from stdin"
    )
    common.add_argument("--offline", action="store_true", help="no server runs: change files only")
    limits = argparse.ArgumentParser(add_help=False)
    limits.add_argument(
        "--load-limit",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="for each model to load (%(default)g)",
    )
    limits.add_argument(
        "--drain-limit",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="for running requests to end with the old version (%(default)g)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    publish = commands.add_parser(
        "publish", parents=[common, limits], help="serve a version that was built"
    )
    publish.add_argument("version", type=int)
    publish.add_argument("--keep", action="store_true", help="go on serving the others too")
    commands.add_parser(
        "rollback", parents=[common, limits], help="serve what was served before the last publish"
    )
    status = commands.add_parser("status", parents=[common], help="what is built, served and busy")
    status.add_argument("--json", action="store_true", help="as one line of JSON")
    return parser


def _run(options: argparse.Namespace) -> None:
    server = None
    if not options.offline:
        token = _read_token(options.token_file)
        load_limit_s = getattr(options, "load_limit", 0.0)
        server = TritonControl(options.http, options.metrics, token, load_limit_s)
    drain_limit_s = getattr(options, "drain_limit", 0.0)
    release = Release(
        options.repository, server, drain_limit_s, lambda line: print(line, flush=True)
    )
    if options.command == "status":
        _print_status(release.status(), options.json)
        return
    with locked(options.repository, f"{options.repository}: another release is at work"):
        if options.command == "publish":
            release.publish(options.version, options.keep)
        else:
            release.rollback()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    options = _parser().parse_args(argv)
    try:
        _run(options)
    except KeyboardInterrupt:
        print("release: interrupted; `status` shows what is served", file=sys.stderr)
        return INTERRUPTED
    except (ReleaseError, RepositoryError, ControlError, OSError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
