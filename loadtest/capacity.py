"""How many GPUs or machines a load needs, by simulating its queues on a measured profile.

    python loadtest/capacity.py --qps 50 --text-len 60 --p99 2
    python loadtest/capacity.py --qps 50 --text-len 25 --language zh --p99 2 --profile MINE.json

The profile says how long a request takes among how many others on one server. `make loadtest`
writes one for the machine it runs on (loadtest-results/profile.json) and checks it against a real
run. The default is a profile of the small voice on two cores: measure your own. Progress goes to
standard error, the answer to standard output as one line of JSON. Needs the extra `load`. Exit
code: 0 an answer, 1 no number of servers is enough, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from chattts_bench.arguments import number

_PROFILE = Path(__file__).resolve().parent / "data" / "profile-demo-2-cores.json"
_MOST = 1000


def positive(text: str) -> float:
    """Read a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--qps", type=positive, required=True, metavar="N", help="requests per second"
    )
    parser.add_argument(
        "--text-len",
        type=number(1, 5000),
        required=True,
        metavar="L",
        help="characters of each text",
    )
    parser.add_argument(
        "--p99",
        type=positive,
        required=True,
        metavar="S",
        help="seconds to the last audio that 99 %% of the requests may take",
    )
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    parser.add_argument("--profile", type=Path, default=_PROFILE, help="default: %(default)s")
    parser.add_argument(
        "--requests",
        type=number(100, 10**7),
        default=10_000,
        metavar="N",
        help="simulated requests per number of servers; default: %(default)s",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Answer the question."""
    arguments = parse(argv)
    # Imported now, so that --help works without the extra.
    from chattts_load import profile as profiles
    from chattts_load.simulation import fewest_servers

    try:
        profile = profiles.load(arguments.profile)
        audio_lengths_s = profile.audio_lengths(arguments.text_len, arguments.language)
    except profiles.ProfileError as error:
        print(f"capacity: {error}", file=sys.stderr)
        return 2
    alone_s = profile.service_s(1, sum(audio_lengths_s) / len(audio_lengths_s))
    what = ", ".join(f"{key} {value}" for key, value in profile.what.items())
    print(f"profile: {what}", file=sys.stderr)
    outcome = fewest_servers(
        profile, arguments.qps, audio_lengths_s, arguments.p99, _MOST, arguments.requests
    )
    if outcome is None:
        print(
            f"capacity: no number of servers up to {_MOST} is enough; a request alone takes "
            f"{alone_s:.2f} s on average",
            file=sys.stderr,
        )
        return 1
    print(
        f"{outcome.servers} server(s): p99 {outcome.latency_p99_s:.2f} s, mean "
        f"{outcome.latency_mean_s:.2f} s (alone {alone_s:.2f} s), {outcome.running_mean:.1f} "
        f"requests running on each",
        file=sys.stderr,
    )
    print(json.dumps({**asdict(outcome), "alone_mean_s": alone_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
