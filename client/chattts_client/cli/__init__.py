"""The command `chattts`: also `python -m chattts_client`. Needs the extra `cli`.

Nothing heavy is imported before `main` runs, so that Ctrl-C finds it ready.
"""

from __future__ import annotations

import os
import sys

try:
    from .interrupts import EXIT_INTERRUPTED, ending_at_once, ignore
    from .streams import discard_output, finish, note, prepare
except KeyboardInterrupt:
    os.write(2, b"interrupted\n")
    raise SystemExit(130) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_LIBRARIES = frozenset({"typer", "rich"})
_EXIT_FILE = 1
_EXIT_USAGE = 2


def program() -> NoReturn:
    """The process `chattts`, from its command line to its exit status."""
    with ending_at_once():
        status = main()
        ignore()
        sys.exit(status)


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
