"""The application: its commands, and the one place where an error becomes a line and a status."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer import rich_utils

from .._exceptions import ChatTTSError
from .._files import naming
from . import output as out
from .batch import batch
from .bench import bench
from .doctor import doctor
from .flatten import flattened
from .interrupts import EXIT_INTERRUPTED, raising
from .listing import health, models, voices
from .normalize import normalize
from .options import FLAG
from .say import say
from .sinks import STDOUT
from .streams import discard_output

_NAME = "chattts"
_STATUSES = (
    "Exit status: 0 done, 1 file error, 2 wrong request or missing extra, 3 no server or not "
    "ready, 4 timeout, 5 cancelled, 6 server error, 7 not understood, 130 interrupted."
)
# What typer raises about a command line: its name differs between versions, its place does not.
_CommandLineError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog=_STATUSES,
)


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # The help follows the same rules as all else; typer has its own, such as the name of a CI.
    rich_utils.COLOR_SYSTEM = out.color_system()
    rich_utils.FORCE_TERMINAL = None
    command: Any = typer.main.get_command(app)
    try:
        status = command.main(args=argv, prog_name=_NAME, standalone_mode=False)
    except _CommandLineError as error:
        if message := _usage(error):  # empty: the help was printed instead
            words = sys.argv[1:] if argv is None else argv
            json_to = sys.stdout if "--json" in words else None
            out.report_error(message, error, out.EXIT_USAGE, json_to)
        return out.EXIT_USAGE
    except typer.Abort:
        out.note("interrupted")
        return EXIT_INTERRUPTED
    return int(status or 0)


def _usage(error: Any) -> str:
    """What is wrong with a command line, in the words of this program."""
    message = str(error.format_message()).rstrip(".")
    message = message.replace(": Value error, ", ": ").replace(": Input should be ", ": must be ")
    if not message or type(error) is typer.BadParameter:  # a wrong value: the message says it all
        return message
    return f"{message}; see {error.ctx.command_path if error.ctx else _NAME} --help"


def _reported(function: Callable[..., int]) -> Callable[..., int]:
    """A command that ends with a line and a status instead of an exception."""

    @functools.wraps(function)
    def call(**values: Any) -> int:
        try:
            with raising():
                status = function(**values)
                with naming("standard output"):
                    sys.stdout.flush()
        except BrokenPipeError:  # whoever read our standard output has left
            discard_output()
            return out.EXIT_FILE
        except (ChatTTSError, OSError, ImportError, ValueError) as error:
            # standard output is for samples where they go there
            beside = sys.stderr if values.get("output") == STDOUT else sys.stdout
            json_to = beside if values["as_json"] else None
            return out.report_error(out.explain(error), error, out.exit_code(error), json_to)
        except KeyboardInterrupt:
            out.note("interrupted")
            return EXIT_INTERRUPTED
        return status

    return call


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{_NAME} {importlib.metadata.version('chattts-client')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=FLAG,
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Speech from a ChatTTS server.

    Results go to standard output; progress, warnings and errors to standard error.
    """


def _help(function: Callable[..., int]) -> str:
    """A docstring as paragraphs without line ends; typer would keep them."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(one.split("\n")) for one in paragraphs)


for _command in (say, batch, normalize, voices, models, health, bench, doctor):
    app.command(help=_help(_command))(_reported(flattened(_command)))
