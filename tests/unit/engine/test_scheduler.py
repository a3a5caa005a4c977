from __future__ import annotations

import pytest
from chattts_engine.block_manager import BlockManager
from chattts_engine.config import EngineConfig
from chattts_engine.scheduler import PrefillChunk, Schedule, Scheduler
from chattts_engine.sequence import Sequence, SequenceStatus
from fakes import CODEBOOKS, make_request


def make_scheduler(num_blocks: int = 64, decode_steps: int = 1, **limits: int) -> Scheduler:
    config = EngineConfig(**{"max_num_seqs": 4, **limits})
    return Scheduler(BlockManager(num_blocks, 16), config, decode_steps)


def make_sequence(
    name: str, prompt_tokens: int = 5, arrival_s: float = 0.0, priority: int = 2
) -> Sequence:
    request = make_request(name, prompt_tokens=prompt_tokens, priority=priority)
    return Sequence.create(request, CODEBOOKS, arrival_s)


def names(items: list[Sequence] | list[PrefillChunk]) -> list[str]:
    return [item.id if isinstance(item, Sequence) else item.sequence.id for item in items]


def run(schedule: Schedule) -> list[tuple[str, int, int]]:
    """Do what the engine does to computed positions; return the prefilled chunks."""
    for sequence in schedule.decodes:
        sequence.num_computed_tokens += 1
    for chunk in schedule.prefills:
        assert chunk.start == chunk.sequence.num_computed_tokens
        chunk.sequence.num_computed_tokens = chunk.end
    return [(chunk.sequence.id, chunk.start, chunk.end) for chunk in schedule.prefills]


def test_a_newcomer_is_prefilled_first_and_decodes_from_the_next_step_on() -> None:
    scheduler = make_scheduler()
    sequence = make_sequence("a")
    scheduler.add(sequence)
    schedule = scheduler.schedule(1.0)
    assert schedule.decodes == []
    assert run(schedule) == [("a", 0, 5)]
    assert sequence.first_scheduled_s == 1.0
    schedule = scheduler.schedule(2.0)
    assert names(schedule.decodes) == ["a"]
    assert schedule.prefills == []


def test_fragmentation_is_the_share_of_held_positions_without_a_token() -> None:
    scheduler = make_scheduler()
    blocks = scheduler.block_manager
    assert blocks.fragmentation(scheduler.running) == 0.0
    scheduler.add(make_sequence("a", prompt_tokens=24))  # two blocks of 16
    run(scheduler.schedule(0.0))
    assert blocks.num_used == 2
    assert blocks.fragmentation(scheduler.running) == 1 - 24 / 32


def test_slots_bound_the_running_sequences() -> None:
    scheduler = make_scheduler(max_num_seqs=2)
    for name in "abc":
        scheduler.add(make_sequence(name, arrival_s=ord(name)))
    assert names(scheduler.schedule(0.0).prefills) == ["a", "b"]
    assert names(scheduler.waiting) == ["c"]


def test_a_finished_sequences_blocks_are_reused_in_the_next_step() -> None:
    scheduler = make_scheduler(num_blocks=1)
    first, second = make_sequence("a"), make_sequence("b", arrival_s=1.0)
    scheduler.add(first)
    scheduler.add(second)
    assert names(scheduler.schedule(0.0).prefills) == ["a"]
    table = list(first.block_table)
    scheduler.finish(first)
    assert names(scheduler.schedule(0.0).prefills) == ["b"]
    assert second.block_table == table


def test_prompts_are_computed_in_chunks_under_a_budget_per_step() -> None:
    scheduler = make_scheduler(max_num_batched_tokens=64, prefill_chunk_tokens=32)
    scheduler.add(make_sequence("long", prompt_tokens=110))
    scheduler.add(make_sequence("short", prompt_tokens=10, arrival_s=1.0))
    scheduler.add(make_sequence("next", prompt_tokens=33, arrival_s=2.0))
    assert run(scheduler.schedule(0.0)) == [("long", 0, 32), ("long", 32, 64)]
    assert run(scheduler.schedule(0.0)) == [("long", 64, 96), ("long", 96, 110), ("short", 0, 10)]
    schedule = scheduler.schedule(0.0)
    assert names(schedule.decodes) == ["long", "short"]
    assert run(schedule) == [("next", 0, 32), ("next", 32, 33)]


def test_one_chunk_runs_even_when_the_budget_is_smaller() -> None:
    scheduler = make_scheduler(max_num_batched_tokens=5, prefill_chunk_tokens=32)
    scheduler.add(make_sequence("a", prompt_tokens=40))
    scheduler.add(make_sequence("b", prompt_tokens=4, arrival_s=1.0))
    assert run(scheduler.schedule(0.0)) == [("a", 0, 32)]
    assert run(scheduler.schedule(0.0)) == [("a", 32, 40)]
    assert run(scheduler.schedule(0.0)) == [("b", 0, 4)]


@pytest.mark.parametrize("budget", [1, 7, 64, 1000])
def test_chunks_do_not_depend_on_the_budget_or_the_neighbours(budget: int) -> None:
    scheduler = make_scheduler(max_num_batched_tokens=budget, prefill_chunk_tokens=16)
    for name, length in (("a", 30), ("b", 16), ("c", 65)):
        scheduler.add(make_sequence(name, length, arrival_s=ord(name)))
    chunks = [chunk for _ in range(20) for chunk in run(scheduler.schedule(0.0))]
    assert [c for c in chunks if c[0] == "a"] == [("a", 0, 16), ("a", 16, 30)]
    assert [c for c in chunks if c[0] == "b"] == [("b", 0, 16)]
    edges = [0, 16, 32, 48, 64, 65]
    assert [c for c in chunks if c[0] == "c"] == [
        ("c", start, end) for start, end in zip(edges, edges[1:], strict=False)
    ]


def test_blocks_are_reserved_for_all_the_steps_of_a_call_but_not_beyond_the_longest() -> None:
    scheduler = make_scheduler(decode_steps=40)
    sequence = make_sequence("a", prompt_tokens=5)  # may generate 12
    scheduler.add(sequence)
    run(scheduler.schedule(0.0))
    assert len(sequence.block_table) == 1
    scheduler.schedule(0.0)
    assert len(sequence.block_table) == 2


def test_a_high_priority_overtakes_the_queue() -> None:
    scheduler = make_scheduler(max_num_seqs=1)
    scheduler.add(make_sequence("first", arrival_s=0.0))
    scheduler.add(make_sequence("urgent", arrival_s=1.0, priority=1))
    assert names(scheduler.schedule(0.0).prefills) == ["urgent"]


@pytest.mark.parametrize(("arrival_s", "first"), [(0.99, "urgent"), (1.01, "patient")])
def test_a_priority_level_is_a_head_start(arrival_s: float, first: str) -> None:
    scheduler = make_scheduler(max_num_seqs=1, priority_head_start_ms=500)
    scheduler.add(make_sequence("patient", arrival_s=0.0, priority=3))
    scheduler.add(make_sequence("urgent", arrival_s=arrival_s, priority=1))
    assert names(scheduler.schedule(0.0).prefills) == [first]


def test_constant_high_load_does_not_starve_a_low_priority() -> None:
    scheduler = make_scheduler(max_num_seqs=1, priority_head_start_ms=5000)
    scheduler.add(make_sequence("patient", arrival_s=0.0, priority=3))
    served: list[str] = []
    for second in range(30):
        scheduler.add(make_sequence(f"urgent {second}", arrival_s=second, priority=1))
        served += names(scheduler.schedule(second).prefills)
        scheduler.finish(scheduler.running[0])
    assert served.index("patient") == 10


def test_a_full_pool_preempts_the_last_in_order_and_keeps_the_first() -> None:
    scheduler = make_scheduler(num_blocks=2)
    first, second = make_sequence("a", 15), make_sequence("b", 15, arrival_s=1.0)
    scheduler.add(first)
    scheduler.add(second)
    scheduler.schedule(0.0)
    for sequence in (first, second):
        sequence.num_computed_tokens = 16  # the block is full, the next position needs another
    schedule = scheduler.schedule(0.0)
    assert names(schedule.preempted) == ["b"]
    assert names(schedule.decodes) == ["a"]
    assert len(first.block_table) == 2
    assert second.block_table == []
    assert second.status is SequenceStatus.WAITING
    assert second.num_computed_tokens == 0
    assert scheduler.num_preemptions == 1


def test_integrity_check_finds_lost_and_doubled_blocks() -> None:
    scheduler = make_scheduler(num_blocks=4)
    sequence = make_sequence("a", 20)
    scheduler.add(sequence)
    scheduler.schedule(0.0)
    scheduler.check_integrity()
    lost = sequence.block_table.pop()
    with pytest.raises(RuntimeError, match="inconsistent"):
        scheduler.check_integrity()
    sequence.block_table += [lost, lost]
    with pytest.raises(RuntimeError, match="inconsistent"):
        scheduler.check_integrity()
