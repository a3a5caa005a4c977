"""Serve a model repository on the embedded tritonserver until interrupted.

Examples:
    python embedded/serve.py
    python embedded/serve.py --http-port 0 --grpc-port 0 --metrics-port 0 --log-dir /tmp/logs

Prints the endpoints, one a line, when all models are ready. A server that has died or hangs is
started again; the log says why. SIGTERM and Ctrl-C let running requests finish and refuse new ones;
a second Ctrl-C does not wait for them. The exit code is 0 after an orderly end, 1 with the reason
on stderr otherwise.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from launcher import EmbeddedServer, EmbeddedServerError

_CHECKOUT = Path(__file__).resolve().parents[1]
_CHECKPOINT_FILE = "weights/checkpoint.json"
_BUILT_FILES = {
    "chattts": _CHECKPOINT_FILE,
    "chattts_gpt": "weights/gpt_config.json",
    "chattts_vocoder": "model.onnx",
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model-repository",
        type=Path,
        default=_CHECKOUT / "model_repository",
        metavar="DIR",
        help="default: the one of this checkout",
    )
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s; 0.0.0.0 = all")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        parser.add_argument(
            f"--{name}-port",
            type=int,
            default=port,
            metavar="N",
            help="default: %(default)s; 0 = a free one",
        )
    parser.add_argument(
        "--log-dir", type=Path, metavar="DIR", help="keep tritonserver.log there; default: not kept"
    )
    parser.add_argument(
        "--no-restart",
        action="store_true",
        help="end when the server has died; by default it is started again",
    )
    return parser.parse_args(argv)


def check_built(repository: Path) -> None:
    """Raise EmbeddedServerError if a model of ours lies there without its weights."""
    missing = [
        f"{model}/1/{name}"
        for model, name in _BUILT_FILES.items()
        if (repository / model / "config.pbtxt").exists()
        and not list(repository.glob(f"{model}/[0-9]*/{name}"))
    ]
    if missing:
        is_default = repository == _CHECKOUT / "model_repository"
        output = "" if is_default else f" --output {repository}"
        raise EmbeddedServerError(
            f"{repository} has no {', '.join(missing)}; write the weights first:\n"
            f"  python build/build_repository.py --checkpoint checkpoints/demo{output}"
        )


def default_version(http_url: str) -> str | None:
    """Return the version of `chattts` that answers who names none; None: it is not served."""
    try:
        with urllib.request.urlopen(f"http://{http_url}/v2/models/chattts", timeout=5) as response:
            versions: list[str] = json.load(response)["versions"]
    except urllib.error.HTTPError:
        return None
    return max(versions, key=int)


def checkpoint_line(repository: Path, version: str | None) -> str | None:
    """Return what to say about the weights of a version of `chattts`, None if there is none."""
    if version is None:
        return None
    path = repository / "chattts" / version / _CHECKPOINT_FILE
    checkpoint = json.loads(path.read_text(encoding="utf-8"))
    untrained = " UNTRAINED WEIGHTS: the output is noise, not speech" * checkpoint["untrained"]
    facts = f"{checkpoint['checkpoint']} ({checkpoint['precision']}), version {version}"
    return f"checkpoint {facts}{untrained}"


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _serve(arguments: argparse.Namespace) -> None:
    check_built(arguments.model_repository)
    with EmbeddedServer(
        arguments.model_repository,
        host=arguments.host,
        http_port=arguments.http_port,
        grpc_port=arguments.grpc_port,
        metrics_port=arguments.metrics_port,
        log_dir=arguments.log_dir,
        restart=not arguments.no_restart,
    ) as server:
        lines = [
            f"http http://{server.http_url}",
            f"grpc {server.grpc_url}",
            f"metrics {server.metrics_url}",
            f"log {server.log_file}",
            f"control-token {server.control_token_file}",
            checkpoint_line(arguments.model_repository, default_version(server.http_url)),
            "ready",
        ]
        print("\n".join(filter(None, lines)), flush=True)
        server.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = parse(argv)
    arguments.model_repository = arguments.model_repository.resolve()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, _interrupt)
    try:
        _serve(arguments)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    except EmbeddedServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
