"""The help: on 80 columns, the same in docs/cli.md, and of every option of speech."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest
from chattts_client import SpeechOptions
from chattts_client._audio import SUFFIXES
from chattts_client.cli import main
from chattts_client.cli.options import Speech
from chattts_client.cli.output import EXIT_CODES
from unit.client.cli_help import CLIENT, COMMANDS, DOCS, documented, help_text
from unit.client.fake_answers import voices_answer
from unit.client.fake_triton import FakeTriton


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_documentation_has_the_help_as_it_is(command: str) -> None:
    text = help_text(*command.split())
    assert documented()[command] == text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text  # nothing is cut off


def test_every_option_of_speech_has_a_flag() -> None:
    assert {field.name for field in fields(Speech)} == {*SpeechOptions.__annotations__, "speed"}


def test_every_kind_of_file_can_be_asked_for() -> None:
    kinds = "|".join(suffix.removeprefix(".") for suffix in SUFFIXES)
    assert f"<{kinds}>" in help_text("batch", width=120)


def test_the_exit_status_of_every_error_is_documented() -> None:
    table = DOCS.read_text(encoding="utf-8")
    for kind, status in EXIT_CODES.items():
        assert re.search(rf"^\| {status} \|.*`{kind.__name__}`", table, re.MULTILINE)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"chattts \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_no_command_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage: chattts" in captured.out + captured.err
    assert "error" not in captured.err


def test_without_the_extra_one_sentence_says_so() -> None:
    code = "import sys; sys.modules['typer'] = None; from chattts_client.cli import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main(['health']))"],
        env={**os.environ, "PYTHONPATH": str(CLIENT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: the command line needs an extra: pip install '.[cli]' in a checkout, "
        "or 'WHEEL[cli]' with the wheel's path\n"
    )


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("chattts he", ["health"]),
        ("chattts say --strea", ["--stream"]),
        ("chattts say --latency l", ["low"]),
        ("chattts say --voice e", ["en"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(
    words: str, completed: list[str], grpc_url: str, fake: FakeTriton
) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    environment = {
        **os.environ,
        "PYTHONPATH": str(CLIENT),
        "CHATTTS_URL": grpc_url,
        "_CHATTTS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "chattts_client"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == completed


@pytest.mark.parametrize(("name", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_colours_are_for_terminals(name: str, coloured: bool) -> None:
    code = "from chattts_client.cli.output import terminal; terminal().print('x', style='red')"
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_COLOR")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(CLIENT), "TERM": "xterm", name: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("\x1b[" in done.stdout) is coloured
