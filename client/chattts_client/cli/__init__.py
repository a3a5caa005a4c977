"""The command `chattts`: also `python -m chattts_client`. Needs the extra `cli`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_LIBRARIES = frozenset({"typer", "rich"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; see `chattts --help`."""
    # Read when gRPC is loaded, which is with the first client: its log is not for people.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from .app import run

        return run(argv)
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        needed = "the command line needs an extra: pip install 'chattts-client[cli]'"
        print(f"error: {needed}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # outside of a command
        print("interrupted", file=sys.stderr)
        return 130
