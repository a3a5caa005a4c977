"""The command `chattts`: also `python -m chattts_client`. Needs the extra `cli`.

Nothing heavy is imported before `main` runs, so that Ctrl-C finds it ready.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from .interrupts import EXIT_INTERRUPTED, ending_at_once
from .streams import discard_output, finish, note, prepare

_LIBRARIES = frozenset({"typer", "rich"})
_EXIT_FILE = 1
_EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; see `chattts --help`."""
    try:
        # Read when gRPC is loaded, which is with the first client: its log is not for people.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        prepare()
        with ending_at_once():
            from .app import run

            return finish(run(argv))
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        from .._extras import missing_extra

        note(f"error: {missing_extra('the command line', '[cli]')}")
        return _EXIT_USAGE
    except BrokenPipeError:  # whoever read our standard output has left
        discard_output()
        return _EXIT_FILE
    except OSError as error:  # outside of a command: the help, the version, what was buffered
        discard_output()
        note(f"error: standard output: {error.strerror or error}")
        return _EXIT_FILE
    except KeyboardInterrupt:  # outside of a command
        note("interrupted")
        return EXIT_INTERRUPTED
