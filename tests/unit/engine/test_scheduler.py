from __future__ import annotations

import pytest
from chattts_engine.block_manager import BlockManager
from chattts_engine.scheduler import PRIORITY_HEAD_START_S, Scheduler
from chattts_engine.sequence import Sequence, SequenceStatus
from fakes import CODEBOOKS, make_request


def make_scheduler(
    num_blocks: int = 64, max_num_seqs: int = 4, max_num_batched_tokens: int = 512
) -> Scheduler:
    return Scheduler(BlockManager(num_blocks, 16), max_num_seqs, max_num_batched_tokens)


def make_sequence(
    name: str, prompt_tokens: int = 5, arrival_s: float = 0.0, priority: int = 2
) -> Sequence:
    request = make_request(name, prompt_tokens=prompt_tokens, priority=priority)
    return Sequence.create(request, CODEBOOKS, arrival_s)


def names(sequences: list[Sequence]) -> list[str]:
    return [sequence.id for sequence in sequences]


def test_newcomers_are_prefilled_and_decode_in_the_same_step() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence("a"))
    schedule = scheduler.schedule(1.0)
    assert names(schedule.prefills) == ["a"]
    assert names(schedule.decodes) == ["a"]
    assert schedule.prefills[0].first_scheduled_s == 1.0


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


def test_prefill_budget_is_kept_but_one_prompt_may_exceed_it() -> None:
    scheduler = make_scheduler(max_num_batched_tokens=50)
    scheduler.add(make_sequence("long", prompt_tokens=60))
    scheduler.add(make_sequence("short", prompt_tokens=10, arrival_s=1.0))
    assert names(scheduler.schedule(0.0).prefills) == ["long"]
    assert names(scheduler.schedule(0.0).prefills) == ["short"]


def test_a_high_priority_overtakes_the_queue() -> None:
    scheduler = make_scheduler(max_num_seqs=1)
    scheduler.add(make_sequence("first", arrival_s=0.0))
    scheduler.add(make_sequence("urgent", arrival_s=1.0, priority=1))
    assert names(scheduler.schedule(0.0).prefills) == ["urgent"]


def test_a_low_priority_is_served_before_much_later_arrivals() -> None:
    scheduler = make_scheduler(max_num_seqs=1)
    scheduler.add(make_sequence("patient", arrival_s=0.0, priority=3))
    scheduler.add(make_sequence("urgent", arrival_s=2 * PRIORITY_HEAD_START_S + 1, priority=1))
    assert names(scheduler.schedule(0.0).prefills) == ["patient"]


def test_a_full_pool_preempts_the_last_in_order_and_keeps_the_first() -> None:
    scheduler = make_scheduler(num_blocks=2)
    first, second = make_sequence("a", 15), make_sequence("b", 15, arrival_s=1.0)
    scheduler.add(first)
    scheduler.add(second)
    for sequence in scheduler.schedule(0.0).decodes:
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
