"""EngineMetrics: what the engines count, as the server's metrics."""

from __future__ import annotations

import pytest
from chattts_engine.metrics import (
    SNAPSHOTS_PER_SHOW,
    SPECS,
    STEPS_PER_OBSERVATION,
    EngineMetrics,
    take_switch,
)
from chattts_engine.stats import EngineStats, Snapshot
from fake_metrics import FakeFamily, FakeMetric


@pytest.fixture
def metrics() -> EngineMetrics:
    FakeFamily.made.clear()
    return EngineMetrics(FakeFamily, "2")


def metric(name: str, label: str) -> FakeMetric:
    return FakeFamily.made[f"chattts_{name}"].metrics["2", label]


def test_every_family_that_is_listed_exists_and_no_other(metrics: EngineMetrics) -> None:
    assert {spec.name: spec.kind for spec in SPECS} == {
        name: family.kind for name, family in FakeFamily.made.items()
    }
    for spec in SPECS:
        assert spec.name.startswith("chattts_")
        assert spec.name.endswith("_total") or spec.kind != "counter"


def test_gauges_follow_and_counters_go_on_when_an_engine_begins_anew(
    metrics: EngineMetrics,
) -> None:
    for num_steps, num_used in ((5, 3), (9, 4), (2, 0)):
        metrics.take_snapshot(1, Snapshot(num_steps=num_steps, num_kv_blocks_used=num_used))
    assert metric("kv_blocks_used", "1").value == 0
    assert metric("engine_steps_total", "1").value == 9 + 2
    assert metric("engine_deaths_total", "1").value == 0


def test_an_engine_that_ends_takes_back_its_gauges_and_leaves_what_others_show(
    metrics: EngineMetrics,
) -> None:
    ratios = [1 / 3, 0.1, 0.7, 0.0, 0.3]
    for ratio in ratios:
        metrics.take_snapshot(
            0, Snapshot(num_steps=9, num_kv_blocks=8, kv_fragmentation=ratio, resident_bytes=5)
        )
        assert metric("kv_fragmentation_ratio", "0").value == pytest.approx(ratio, abs=1e-15)
    metrics.take_queue({1: 2}, {})
    metric("kv_blocks_total", "0").increment(6)  # the process that follows
    metrics.close()
    assert metric("kv_blocks_total", "0").value == 6
    for name, label in (
        ("kv_fragmentation_ratio", "0"),
        ("engine_resident_memory_bytes", "0"),
        ("requests_waiting", "1"),
    ):
        assert metric(name, label).value == 0
    assert metric("engine_steps_total", "0").value == 9


def test_so_many_decode_steps_are_one_observation_whenever_they_are_reported(
    metrics: EngineMetrics,
) -> None:
    stats = EngineStats()
    for _ in range(2 * STEPS_PER_OBSERVATION):
        for size in (1, 3, 3):
            stats.add_decode_step(size)
        metrics.take_snapshot(0, Snapshot(decode_batches=tuple(stats.decode_batches.items())))
    stats.add_decode_step(2)
    metrics.take_snapshot(0, Snapshot(decode_batches=tuple(stats.decode_batches.items())))
    assert sorted(metric("decode_batch_size", "0").observed) == [1, 1, 3, 3, 3, 3]
    assert stats.num_decode_steps == 6 * STEPS_PER_OBSERVATION + 1
    assert stats.num_decoded_tokens == 14 * STEPS_PER_OBSERVATION + 2


def test_what_every_step_changes_is_shown_now_and_then_and_when_nothing_runs(
    metrics: EngineMetrics,
) -> None:
    shown = []
    for number in range(1, SNAPSHOTS_PER_SHOW + 2):
        metrics.take_snapshot(0, Snapshot(num_running=number, num_steps=number))
        assert metric("sequences_running", "0").value == number
        steps = FakeFamily.made["chattts_engine_steps_total"].metrics.get(("2", "0"))
        shown.append(steps.value if steps else 0)
    assert shown == [0] * (SNAPSHOTS_PER_SHOW - 1) + [SNAPSHOTS_PER_SHOW] * 2
    metrics.take_snapshot(0, Snapshot(num_steps=SNAPSHOTS_PER_SHOW + 2))
    assert metric("engine_steps_total", "0").value == SNAPSHOTS_PER_SHOW + 2


def test_the_queue_is_shown_by_priority(metrics: EngineMetrics) -> None:
    metrics.take_queue({1: 2, 3: 1}, {})
    assert [metric("requests_waiting", label).value for label in "123"] == [2, 0, 1]
    metrics.take_queue({}, {0: 2})
    assert [metric("requests_waiting", label).value for label in "123"] == [0, 0, 0]
    assert metric("engine_deaths_total", "0").value == 2


def test_what_did_not_change_costs_nothing(metrics: EngineMetrics) -> None:
    for _ in range(5):
        metrics.take_snapshot(0, Snapshot(num_running=3, num_steps=7))
        metrics.take_queue({2: 1}, {})
    assert metric("sequences_running", "0").num_calls == 1
    assert metric("engine_steps_total", "0").num_calls == 1
    assert metric("requests_waiting", "2").num_calls == 2  # 0 at first


def test_gpu_memory_is_shown_only_where_there_is_a_gpu(metrics: EngineMetrics) -> None:
    metrics.take_snapshot(0, Snapshot())
    metrics.take_snapshot(1, Snapshot(gpu_used_bytes=3, gpu_limit_bytes=4))
    for name, value in (("used", 3), ("limit", 4)):
        assert list(FakeFamily.made[f"chattts_gpu_memory_{name}_bytes"].metrics) == [("2", "1")]
        assert metric(f"gpu_memory_{name}_bytes", "1").value == value


def test_the_switch_is_taken_from_the_parameters() -> None:
    parameters = {"metrics": "false", "max_num_seqs": "4"}
    assert not take_switch(parameters)
    assert parameters == {"max_num_seqs": "4"}
    assert take_switch(parameters)
    with pytest.raises(ValueError, match="metrics: 'no' is neither true nor false"):
        take_switch({"metrics": "no"})
