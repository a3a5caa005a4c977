"""Load tests on a real server: short, so their figures mean nothing; that they agree does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chattts_load import checks
from chattts_load.locust_process import Target
from chattts_load.perf_analyzer import PerfAnalyzer, PerfAnalyzerError
from chattts_load.profile import load
from chattts_load.records import read_records
from launcher import EmbeddedServer

ROOT = Path(__file__).resolve().parents[2]


def run(script: str, *arguments: str | Path) -> dict[str, Any]:
    """Run a script of loadtest/ and return the JSON of its last line."""
    command = [sys.executable, str(ROOT / "loadtest" / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()  # progress is elsewhere
    result: dict[str, Any] = json.loads(line)
    return result


def test_steps_of_all_kinds_of_users_become_a_report_and_a_profile(
    demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    result = run(
        "loadtest.py",
        *("--url", demo_server.grpc_url, "--http-url", demo_server.http_url),
        *("--metrics-url", demo_server.metrics_url.split("/")[2]),
        *("--concurrency", "1", "10", "--seconds", "5", "--settle", "1"),
        *("--kinds", "stream", "unary", "http", "--lengths", "short=1"),
        *("--no-checks", "--output", tmp_path, "--work", tmp_path),
    )
    one, ten = result["steps"]
    assert (one["concurrency"], ten["concurrency"]) == (1, 10)
    assert one["errors"] == ten["errors"] == 0
    assert one["qps"] > 0 < one["first_audio_p50_s"] <= one["latency_p50_s"]
    assert ten["latency_mean_s"] > one["latency_mean_s"]
    assert {record.kind for record in read_records(tmp_path / "users-10_records.jsonl")} == {
        "stream",
        "unary",
        "http",
    }
    assert "data:image/png" in (tmp_path / "report.html").read_text()
    assert all(step["memory_bytes"] > 5 * 10**7 for step in result["steps"])
    assert "as the server's metrics say" in (tmp_path / "table.md").read_text()
    assert [point.concurrency for point in load(tmp_path / "profile.json").points] == [1, 10]


def test_arrivals_at_random_times_become_a_timeline(
    demo_repository_int8: Path, tmp_path: Path
) -> None:
    result = run(
        "loadtest.py",
        *("--shape", "poisson", "--rate", "4", "--seconds", "5", "--settle", "0"),
        *("--repository", demo_repository_int8, "--lengths", "short=1"),
        *("--output", tmp_path, "--work", tmp_path),
    )
    assert result["what"]["shape"] == "poisson"
    assert result["whole"]["requests"] > 5
    assert result["whole"]["errors"] == 0
    assert result["whole"]["memory_bytes"] > 10**8
    assert (tmp_path / "poisson.html").is_file()


def test_locust_and_a_second_client_see_the_same_latency(
    demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    """Within 5 % on a quiet machine and in a longer run (docs/loadtest.md)."""
    target = Target(demo_server.grpc_url, demo_server.http_url, lengths="short=1")
    found = checks.against_a_second_client(tmp_path, target, streams=2, seconds=6, settle_s=2)
    assert min(found["requests"]) > 5
    assert 0.6 < found["latency_ratio"] < 1.6
    assert 0.5 < found["first_audio_ratio"] < 2


def test_perf_analyzer_on_both_models(demo_repository_int8: Path, tmp_path: Path) -> None:
    try:
        PerfAnalyzer.install(tmp_path)
    except PerfAnalyzerError as error:
        pytest.skip(str(error))
    (tmp_path / "speech_2_export.json").write_text("of an earlier run")
    result = run(
        "perf.py",
        *("--repository", demo_repository_int8, "--concurrency", "2", "--requests", "8"),
        *("--output", tmp_path, "--work", tmp_path),
    )
    (speech,) = result["speech"]
    assert speech["errors"] == 0 < speech["qps"]
    assert 0 < speech["first_audio_p50_s"] <= speech["latency_p50_s"]
    assert speech["audio_s_per_s"] > 0 < speech["real_time_factor_p50"]
    (vocoder,) = result["vocoder"]
    assert vocoder["qps"] > 0 < vocoder["latency_p50_s"] <= vocoder["latency_p99_s"]
    assert 1 <= vocoder["batch_mean"] <= 8
