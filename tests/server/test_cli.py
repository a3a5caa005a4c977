"""The command line as users run it, a process per command, against a real server."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import wave
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_client import ChatTTSClient
from conftest import DEMO_VOICES, ROOT
from launcher import EmbeddedServer

TEXT = "the train to london leaves at half past seven"
LIMIT_S = 60
WAIT_S = 20.0


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "chattts_client", *map(str, arguments)]


def run(
    *arguments: str | Path, status: int = 0, folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command to its end; it must have this status and never show a traceback."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == status, done.stdout.decode() + done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def report(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    (line,) = done.stdout.decode().splitlines()
    return dict(json.loads(line))


def frames(path: Path) -> int:
    with wave.open(str(path)) as file:
        assert file.getframerate() == 24_000
        return file.getnframes()


def metrics_url(server: EmbeddedServer) -> str:
    """HOST:PORT alone."""
    return server.metrics_url.removeprefix("http://").removesuffix("/metrics")


def running(server: EmbeddedServer) -> int:
    with ChatTTSClient(server.grpc_url, metrics_url=metrics_url(server)) as client:
        return client.metrics_snapshot().running or 0


def test_all_outputs_hold_the_same_speech(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    speech = ["say", TEXT, "--voice", "en", "--seed", "7"]
    grpc, http = ["--url", demo_server.grpc_url], ["--url", demo_server.http_url, "--http"]
    once = report(run(*speech, *grpc, "-o", tmp_path / "once.wav", "--json"))
    run(*speech, *grpc, "-o", tmp_path / "stream.wav", "--stream")
    run(*speech, *http, "-o", tmp_path / "http.wav")
    raw = run(*speech, *grpc, "-o", "-", "--stream").stdout
    content = (tmp_path / "once.wav").read_bytes()
    assert (tmp_path / "stream.wav").read_bytes() == content
    assert (tmp_path / "http.wav").read_bytes() == content
    assert content.endswith(raw)
    assert len(raw) == 2 * frames(tmp_path / "once.wav") == 2 * round(24_000 * once["duration_s"])
    assert (once["voice"], once["seed"], once["untrained"]) == ("en", 7, False)


def test_a_flac_file_holds_the_same_samples(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for name in ("a.wav", "a.flac"):
        run(
            "say",
            "hello anna",
            "--seed",
            "7",
            "-o",
            tmp_path / name,
            CHATTTS_URL=demo_server.grpc_url,
        )
    one, other = (soundfile.read(tmp_path / name)[0] for name in ("a.wav", "a.flac"))
    np.testing.assert_array_equal(one, other)


def test_an_interrupt_ends_the_speech_on_the_server_too(
    tiny_server: EmbeddedServer, tmp_path: Path
) -> None:
    path = tmp_path / "cut.wav"
    endless = ["--min-new-tokens", "2000", "--seed", "1", "--url", tiny_server.grpc_url]
    process = subprocess.Popen(
        command("say", "One. Two. Three.", *endless, "-o", path, "--stream"),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline_s = time.monotonic() + WAIT_S
    while not (path.exists() and path.stat().st_size > 10_000) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_S)
    assert (process.returncode, errors) == (130, b"interrupted\n")
    assert frames(path) > 5_000 - 44
    while running(tiny_server) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert running(tiny_server) == 0


def test_a_batch_goes_on_after_an_interrupt(tiny_server: EmbeddedServer, tmp_path: Path) -> None:
    lines = [f"Line {number}." for number in range(12)]
    (tmp_path / "in.txt").write_text("\n".join(lines))
    arguments: list[str | Path] = ["batch", tmp_path / "in.txt", "-o", tmp_path / "out"]
    arguments += ["--seed", "7", "--max-new-tokens", "300", "--min-new-tokens", "250"]
    arguments += ["--url", tiny_server.grpc_url, "-j", "2"]
    process = subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    manifest = tmp_path / "out" / "manifest.jsonl"
    deadline_s = time.monotonic() + WAIT_S
    while not (manifest.exists() and manifest.stat().st_size) and time.monotonic() < deadline_s:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130, errors
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.wav")}
    assert 0 < len(kept) < len(lines)
    done = report(run(*arguments, "--json"))
    assert (done["kept"], done["spoken"], done["failed"]) == (len(kept), 12 - len(kept), 0)
    files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.wav")}
    assert kept.items() <= files.items()
    assert len(files) == 12
    assert not list((tmp_path / "out").glob("*.part*"))


def test_an_error_is_one_line(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    wrong = ["--voice", "nobody", "-o", tmp_path / "out.wav", "--url", demo_server.grpc_url]
    (line,) = run("say", "Hello.", *wrong, status=2).stderr.decode().splitlines()
    assert line.startswith("error: voice: 'nobody' is unknown")
    assert not list(tmp_path.iterdir())


def test_a_deadline_without_audio_keeps_the_old_file(
    demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    path = tmp_path / "out.wav"
    path.write_bytes(b"good")
    for flags in ([], ["--stream"]):
        arguments = ["say", TEXT, "--deadline-ms", "1", "-o", path, "--url", demo_server.grpc_url]
        (line,) = run(*arguments, *flags, status=4).stderr.decode().splitlines()
        assert line.startswith("error: the deadline came before the first audio")
    assert path.read_bytes() == b"good"


def test_voices_models_and_health_are_listed(demo_server: EmbeddedServer) -> None:
    for flags in (["--url", demo_server.grpc_url], ["--url", demo_server.http_url, "--http"]):
        voices = run("voices", *flags).stdout.decode().splitlines()
        assert [line.split("\t")[0] for line in voices] == sorted(DEMO_VOICES)
        models = run("models", *flags).stdout.decode().splitlines()
        names = {line.split("\t")[0] for line in models if line.split("\t")[2] == "ready"}
        assert names == {"chattts", "chattts_unary", "chattts_gpt", "chattts_vocoder"}
        assert run("health", *flags).stdout.decode() == f"{flags[1]}: ready\n"


def test_a_short_load_is_a_table(demo_server: EmbeddedServer) -> None:
    load = ["bench", "hello anna", "-j", "1,4", "-n", "8", "--seed", "1"]
    done = run(*load, "--url", demo_server.grpc_url)
    rows = [line.split() for line in done.stdout.decode().splitlines()[-2:]]
    assert [row[:2] for row in rows] == [["1", "0"], ["4", "0"]]
    assert all(float(cell) > 0 for row in rows for cell in row[2:])
    assert all(len(line) <= 80 for line in done.stdout.decode().splitlines())


def found(url: str, *flags: str, status: int, **variables: str) -> list[tuple[str, str]]:
    """Check and status of everything that `doctor` finds."""
    done = run("doctor", "--json", "--url", url, *flags, status=status, **variables)
    return [(entry["check"], entry["status"]) for entry in json.loads(done.stdout)]


def test_the_doctor_finds_nothing_at_a_good_server(demo_server: EmbeddedServer) -> None:
    metrics = ("--metrics-url", metrics_url(demo_server))
    for flags in ((demo_server.grpc_url, *metrics), (demo_server.http_url, "--http", *metrics)):
        findings = found(*flags, status=0)
        assert {status for _, status in findings} == {"ok"}
        assert findings[-1][0] == "metrics"


def test_the_doctor_finds_what_is_wrong(demo_server: EmbeddedServer) -> None:
    protocol = ("protocol", "fail")
    assert found(demo_server.http_url, status=7)[-1] == protocol
    assert found(metrics_url(demo_server), status=7)[-1] == protocol
    assert found(demo_server.grpc_url, "--http", status=7)[-1] == protocol
    assert found(metrics_url(demo_server), "--http", status=7)[-1] == protocol
    assert found(demo_server.grpc_url, "--tls", status=3)[-1] == ("tls", "fail")
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        closed = probe.getsockname()[1]
    assert found(f"127.0.0.1:{closed}", status=3)[-1] == ("port", "fail")
    away = {"http_proxy": f"http://127.0.0.1:{closed}", "no_proxy": "", "no_grpc_proxy": ""}
    assert found(demo_server.grpc_url, status=3, **away)[-1] == ("proxy", "fail")


def test_the_doctor_misses_the_models_of_another_server(
    server_factory: Any, throw_away_repository: Path
) -> None:
    server = server_factory(throw_away_repository)
    assert found(server.grpc_url, status=7)[-1] == ("models", "fail")


def recorded() -> list[tuple[str, list[str]]]:
    """Each command of the recorded run in the documentation, and what it printed."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)\n```", text, re.DOTALL)
    commands = [part.split("\n") for part in block.removeprefix("$ ").split("\n$ ")]
    return [(lines[0], lines[1:]) for lines in commands]


def without_numbers(lines: list[str]) -> str:
    return re.sub(r"[0-9a-f]{32}|[0-9]+(\.[0-9]+)?", "N", " ".join(" ".join(lines).split()))


def test_the_recorded_run_is_still_what_happens(
    demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    alias = f'chattts() {{ {sys.executable} -m chattts_client "$@"; }}; '
    addresses = {"localhost:8000": demo_server.http_url}
    for shown, printed in recorded():
        line = shown
        for old, new in addresses.items():
            line = line.replace(old, new)
        done = subprocess.run(
            ["bash", "-c", alias + line],
            cwd=tmp_path,
            env={**os.environ, "CHATTTS_URL": demo_server.grpc_url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        # Doctor, voices and bench look different on a terminal.
        if not re.match(r"chattts (doctor|voices|bench)", shown):
            assert without_numbers(done.stdout.splitlines()) == without_numbers(printed)
