"""The benchmark: a quick run of everything, and the arithmetic behind its figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import bench
import numpy as np
import pytest
from chattts_bench.cases import Case
from chattts_bench.floor import Machine, StepCost
from chattts_bench.plan import SECTIONS
from chattts_bench.report import render
from chattts_bench.speech import Spoken
from chattts_bench.targets import add_floors, judge_all
from chattts_bench.worker import Worker, WorkerError

ROOT = Path(__file__).resolve().parents[2]
MACHINE = Machine(
    num_threads=2,
    read_bytes_per_s=1e10,
    small_page_read_bytes_per_s=5e9,
    fp32_ops_per_s=1e11,
    int8_ops_per_s=4e11,
)
INT8 = StepCost("int8", weight_bytes=2 * 10**8, num_weights=2 * 10**8, kv_bytes_per_token=10**5)
FP32 = StepCost("fp32", weight_bytes=8 * 10**8, num_weights=2 * 10**8, kv_bytes_per_token=10**5)


@pytest.fixture(scope="module")
def quick_report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `bench.py --quick` writes, with what it prints under "printed"."""
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, str(ROOT / "loadtest" / "bench.py"), "--quick"]
    command += ["--work", str(folder / "work"), "--output", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for plot in ("throughput.png", "latency.png"):
        assert (folder / "out" / plot).read_bytes().startswith(b"\x89PNG")
    report: dict[str, Any] = json.loads((folder / "out" / "report.json").read_text())
    return report | {"printed": done.stdout}


def test_quick_run_measures_every_section_but_the_baseline(quick_report: dict[str, Any]) -> None:
    assert {case["kind"] for case in quick_report["cases"]} == {"engine", "server"}
    assert quick_report["machine"]["read_bytes_per_s"] > 0
    checks = set(SECTIONS) - {"floor", "engine", "server", "baseline"}
    assert set(quick_report["checks"]) == checks


def test_quick_run_finds_equal_bits_and_pre_empts(quick_report: dict[str, Any]) -> None:
    identity = quick_report["checks"]["identity"]
    assert len(identity) == 3
    for name, found in identity.items():
        assert len(found["digests"]) == len(found["concurrency"]) > 1, name
        assert len(set(found["digests"])) == 1, name


def test_quick_run_compares_precisions_along_the_same_tokens(quick_report: dict[str, Any]) -> None:
    (found,) = quick_report["checks"]["precision"].values()
    assert 0.99 < found["logits_cosine_least"] <= found["logits_cosine"] < 1.0


def test_every_case_has_its_floor_and_its_processes(quick_report: dict[str, Any]) -> None:
    for case in quick_report["cases"]:
        assert case["tokens_per_s"] > 0
        assert case["over_floor"] > 0
        assert case["peak_rss"] > 0
        if case["kind"] == "server":
            parts = {"chattts", "chattts_gpt", "engine", "chattts_vocoder", "tritonserver"}
            assert parts <= set(case["cpu_s"])
            assert sum(case["cpu_s"].values()) > 0
        else:
            assert 0 < case["host_share"] < 1


def test_report_says_every_check(quick_report: dict[str, Any]) -> None:
    for words in ("real-time streams", "peak", "start to ready", "idle", "per audio second"):
        assert words in quick_report["printed"]
    assert quick_report["printed"].count("equal bits") == 3
    assert not quick_report["targets"]  # its figures mean nothing


def case(kind: str, variant: str, concurrency: int, tokens_per_s: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "variant": variant,
        "concurrency": concurrency,
        "steps": 100,
        "tokens_per_s": tokens_per_s,
        "step_ms_p50": 1000 * concurrency / tokens_per_s,
    }


def test_memory_bounds_a_small_batch_and_arithmetic_a_large_one() -> None:
    # 200 MB of weights and 1 x 50 x 0.1 MB of keys and values at 10 GB/s.
    assert INT8.floor_s(MACHINE, batch=1, context=50) == pytest.approx(0.0205)
    # 2 x 64 x 200 M operations at 400 Gop/s.
    assert INT8.floor_s(MACHINE, batch=64, context=50) == pytest.approx(0.064)
    # The same at float32: 4 times the bytes, a quarter of the rate.
    assert FP32.floor_s(MACHINE, batch=64, context=50) == pytest.approx(0.256)


def test_floors_count_only_sequences_that_decode_together() -> None:
    cases = [case("engine", "int8", 32, 100.0), case("llama", "fp32", 8, 10.0)]
    add_floors(cases, {"int8": INT8, "fp32": FP32}, MACHINE, prompt_tokens=0, max_num_seqs=4)
    waiting, baseline = cases
    assert waiting["floor_step_ms"] == pytest.approx(1000 * INT8.floor_s(MACHINE, 4, 50))
    assert waiting["over_floor"] == pytest.approx(320.0 / waiting["floor_step_ms"])
    memory_ms = 1000 * (2e8 + 4 * 50 * 1e5) / 1e10
    assert waiting["over_memory_floor"] == pytest.approx(320.0 / memory_ms)
    assert waiting["over_small_page_memory_floor"] == pytest.approx(320.0 / memory_ms / 2)
    assert baseline["floor_tokens_per_s"] == pytest.approx(8 / FP32.floor_s(MACHINE, 8, 50))
    assert baseline["over_floor"] == pytest.approx(baseline["floor_tokens_per_s"] / 10.0)


def test_targets_divide_by_the_package_itself_where_it_was_measured() -> None:
    cases = [
        case("engine", "int8", 1, 70.0),
        case("llama", "fp32", 1, 20.0),
        case("published", "fp32", 1, 10.0),
    ]
    (judged,) = judge_all({"cases": cases})
    assert judged["value"] == pytest.approx(7.0)
    assert judged["is_met"]
    (judged,) = judge_all({"cases": cases[:2]})
    assert judged["value"] == pytest.approx(3.5)
    assert not judged["is_met"]


def test_one_changed_bit_misses_the_identity_target() -> None:
    identity = {"engine": {"digests": ["a", "a"]}, "whole path": {"digests": ["a", "b"]}}
    (judged,) = judge_all({"checks": {"identity": identity}})
    assert judged["value"] == 0.5
    assert not judged["is_met"]


def test_less_is_better_where_a_target_is_a_limit() -> None:
    checks = {"start": {"median_s": 3.0}, "memory": {"peak_pss": 2.0e9}}
    judged = {one["name"]: one for one in judge_all({"checks": checks})}
    assert judged["start to ready, s"]["is_met"]
    assert not judged["server memory under load, GB (PSS)"]["is_met"]


def test_a_case_takes_medians_of_rounds_and_pools_steps() -> None:
    measured = Case("engine", "int8", concurrency=2, steps=10)
    for elapsed_s, step_s in ((1.0, [0.1] * 10), (2.0, [0.2] * 10), (10.0, [1.0] * 10)):
        measured.rounds.append({"elapsed_s": elapsed_s, "step_s": step_s, "host_share": elapsed_s})
    summary = measured.summary()
    assert summary["tokens_per_s"] == 10.0
    assert summary["host_share"] == 2.0
    assert summary["step_ms_p50"] == pytest.approx(200.0)
    assert summary["step_ms_p99"] == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("arrivals_s", "is_ahead"),
    [
        ((1.0, 1.4, 1.9), True),  # each before the 0.5 s of the ones before it are played
        ((1.0, 1.5, 2.0), True),
        ((1.0, 1.6, 1.9), False),  # the second 0.1 s late
        ((9.0, 9.1, 9.2), True),  # a late start is not an underrun
    ],
)
def test_playback_starts_with_the_first_chunk(
    arrivals_s: tuple[float, ...], is_ahead: bool
) -> None:
    spoken = Spoken(arrivals_s, (0.5, 0.5, 0.5), np.zeros(1, np.float32), summary=None)  # type: ignore[arg-type]
    assert spoken.is_ahead_of_playback is is_ahead


def test_report_names_what_differs() -> None:
    report: dict[str, Any] = {
        "date": "today",
        "processor": "any",
        "cores": 2,
        "checkpoint": "tiny",
        "max_num_seqs": 16,
        "baseline": "none",
        "plan": {"steps": 1, "rounds": 1},
        "checks": {"identity": {"engine": {"digests": ["a", "b"], "concurrency": [1, 3]}}},
    }
    assert re.search(r"identity, engine, at \[1, 3\] at once: DIFFERENT BITS", render(report))


def test_a_worker_that_ends_says_why(tmp_path: Path) -> None:
    python = Path(sys.executable)
    worker = Worker(python, "engine", [str(tmp_path / "nowhere")], tmp_path / "engine.log")
    with worker, pytest.raises(WorkerError, match="(?s)engine: the worker ended.*Error"):
        worker.call("run", prompt="", concurrency=1, steps=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds: '0' is outside 1 ... 100"),
        (["--concurrency", "4", "-3"], "--concurrency: '-3' is outside 1 ... 256"),
        (["--steps", "5000"], "--steps: '5000' is outside 1 ... 2048"),
        (["--only", "tea"], "invalid choice: 'tea'"),
        (["--repository", "/nowhere"], "/nowhere is no built repository"),
        (["--checkpoint", "/nowhere"], "/nowhere is no checkpoint"),
        (["--output", __file__], f"--output: {__file__}: File exists"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    defaults = ["--output", str(tmp_path), "--work", str(tmp_path)]
    with pytest.raises(SystemExit):
        bench.main([*defaults, *arguments])
    assert message in capsys.readouterr().err
