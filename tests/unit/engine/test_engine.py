from __future__ import annotations

import numpy as np
import pytest
from chattts_engine.chunk import ChunkBuilder
from chattts_engine.engine import MAX_EOS_RETRIES, Engine
from chattts_engine.loading import warm_up
from chattts_engine.noise import derive_seed
from chattts_engine.sampling_params import SamplingParams
from fakes import (
    CODEBOOKS,
    END_OF_TEXT,
    HIDDEN,
    FakeRunner,
    Transcript,
    make_engine,
    make_request,
    run_all,
)

LENGTHS = [3, 17, 40, 9, 26, 5, 33, 12, 21, 7, 30, 14, 2, 38, 19, 11]


def requests_of(lengths: list[int]) -> list[object]:
    return [
        make_request(f"r{i}", prompt_tokens=3 + i % 5, max_new_tokens=length, seed=i)
        for i, length in enumerate(lengths)
    ]


def test_sixteen_concurrent_requests_give_the_tokens_of_one_by_one() -> None:
    requests = requests_of(LENGTHS)
    together = run_all(make_engine(max_num_seqs=16), requests)
    alone = Transcript()
    for request in requests:
        alone.tokens |= run_all(make_engine(), [request]).tokens
    assert together.tokens == alone.tokens
    assert [len(together.tokens[f"r{i}"]) for i in range(16)] == LENGTHS


def test_decode_steps_are_far_fewer_than_the_tokens() -> None:
    engine = make_engine(max_num_seqs=16)
    run_all(engine, requests_of(LENGTHS))
    assert engine.stats.num_decode_steps < max(LENGTHS) + 2
    assert engine.stats.num_decoded_tokens == sum(LENGTHS) - len(LENGTHS)


def test_each_sequence_knows_how_many_it_was_decoded_with() -> None:
    """The long one decodes 4 of its 8 steps alone, the others all of theirs together."""
    engine = make_engine()
    chunks = {}
    for name, length in (("long", 9), ("short", 5)):
        request = make_request(name, max_new_tokens=length)
        chunks[name] = ChunkBuilder(request, engine.gpt.num_codebooks, engine.gpt.hidden_size)
        engine.add_request(request, 0.0)
    means = {}
    while engine.has_unfinished:
        for output in engine.step(0.0):
            chunk = chunks[output.sequence.id].push(output, 0.0)
            if chunk and chunk.finish_reason:
                means[output.sequence.id] = chunk.mean_batch
    assert means == {"long": 1.5, "short": 2.0}


def test_a_short_request_started_beside_a_long_one_ends_long_before_it() -> None:
    engine = make_engine()
    engine.add_request(make_request("long", max_new_tokens=100), 0.0)
    for _ in range(10):
        engine.step(0.0)
    engine.add_request(make_request("short", max_new_tokens=5), 0.0)
    steps = 0
    while engine.num_unfinished == 2:
        engine.step(0.0)
        steps += 1
    assert steps <= 5
    assert engine.scheduler.running[0].id == "long"


def test_a_waiting_request_takes_the_freed_slot_in_the_next_step() -> None:
    engine = make_engine(max_num_seqs=1)
    engine.add_request(make_request("a", max_new_tokens=3), 0.0)
    engine.add_request(make_request("b", max_new_tokens=3), 1.0)
    while engine.num_unfinished == 2:
        engine.step(0.0)
    engine.step(0.0)
    assert [s.id for s in engine.scheduler.running] == ["b"]


def test_preemption_changes_no_token() -> None:
    requests = requests_of([60, 60, 60, 60])
    plenty = run_all(make_engine(), requests)
    engine = make_engine(num_kv_blocks=7)
    scarce = run_all(engine, requests)
    assert engine.scheduler.num_preemptions > 0
    assert scarce.tokens == plenty.tokens
    assert set(scarce.reasons.values()) == {"length"}


def test_blocks_return_when_a_request_is_aborted() -> None:
    runner = FakeRunner()
    engine = make_engine(runner)
    engine.add_request(make_request("a", max_new_tokens=50), 0.0)
    engine.step(0.0)
    transcript = Transcript()
    transcript.add(engine.abort("a"))
    assert transcript.reasons == {"a": "cancelled"}
    assert engine.block_manager.num_used == 0
    assert runner.num_held == 0
    assert engine.abort("a") == []


def test_a_deadline_ends_a_running_and_a_waiting_request() -> None:
    engine = make_engine(max_num_seqs=1)
    engine.add_request(make_request("running", max_new_tokens=50, deadline_s=2.0), 0.0)
    engine.add_request(make_request("waiting", max_new_tokens=50, deadline_s=1.0), 0.5)
    transcript = Transcript()
    transcript.add(engine.step(0.5))
    transcript.add(engine.step(1.0))
    assert transcript.reasons == {"waiting": "deadline"}
    transcript.add(engine.step(2.0))
    assert transcript.reasons == {"waiting": "deadline", "running": "deadline"}


def test_a_queue_deadline_ends_who_waits_and_not_who_runs() -> None:
    engine = make_engine(max_num_seqs=1)
    engine.add_request(make_request("running", max_new_tokens=50, queue_deadline_s=1.0), 0.0)
    engine.add_request(make_request("waiting", max_new_tokens=50, queue_deadline_s=1.0), 0.0)
    transcript = Transcript()
    for now_s in (0.0, 0.5, 1.0, 5.0):
        transcript.add(engine.step(now_s))
    assert transcript.reasons == {"waiting": "deadline"}
    assert transcript.tokens["waiting"] == []
    assert len(transcript.tokens["running"]) == 4


def test_who_is_late_before_the_first_step_costs_no_work() -> None:
    engine = make_engine()
    engine.add_request(make_request("late", queue_deadline_s=1.0), 0.0)
    transcript = Transcript()
    transcript.add(engine.step(1.0))
    assert transcript.reasons == {"late": "deadline"}
    assert engine.stats.num_prefilled_tokens == 0


def test_a_queue_deadline_does_not_end_who_was_preempted() -> None:
    requests = [make_request(f"r{i}", max_new_tokens=60, queue_deadline_s=1.0) for i in range(2)]
    engine = make_engine(num_kv_blocks=5)
    for request in requests:
        engine.add_request(request, 0.0)
    transcript = Transcript()
    while engine.has_unfinished:
        transcript.add(engine.step(2.0 if engine.stats.num_steps else 0.0))
    assert engine.scheduler.num_preemptions > 0
    assert set(transcript.reasons.values()) == {"length"}


def test_a_prompt_that_can_never_fit_is_refused_at_once() -> None:
    engine = make_engine(num_kv_blocks=4)
    with pytest.raises(ValueError, match="^prompt: 64 tokens are outside 1 ... 63"):
        engine.add_request(make_request("a", prompt_tokens=64), 0.0)
    with pytest.raises(ValueError, match="^max_new_tokens: 60 is outside 1 ... 59"):
        engine.add_request(make_request("a", prompt_tokens=5, max_new_tokens=60), 0.0)
    assert not engine.has_unfinished


def test_a_running_id_cannot_be_used_twice() -> None:
    engine = make_engine()
    engine.add_request(make_request("a"), 0.0)
    with pytest.raises(ValueError, match="^id: 'a' is in use"):
        engine.add_request(make_request("a"), 0.0)


class EagerEnd(FakeRunner):
    """Makes the end token overwhelmingly likely in one codebook."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self._bias = bias

    def code_logits(self, hidden: np.ndarray) -> np.ndarray:
        logits = super().code_logits(hidden)
        logits[:, 2, -1] += self._bias
        return logits

    def text_logits(self, hidden: np.ndarray) -> np.ndarray:
        logits = super().text_logits(hidden)
        logits[:, END_OF_TEXT] += self._bias
        return logits


def free_request(engine: Engine, mode: str = "code", min_new_tokens: int = 0) -> None:
    sampling = SamplingParams(
        seed=3, temperature=(1.0,), max_new_tokens=20, min_new_tokens=min_new_tokens
    )
    engine.add_request(make_request("a", mode=mode, sampling=sampling), 0.0)


@pytest.mark.parametrize("mode", ["code", "text"])
def test_an_immediate_end_is_retried_a_few_times_then_fails_alone(mode: str) -> None:
    engine = make_engine(EagerEnd(1e6))
    free_request(engine, mode)
    (output,) = engine.step(0.0)
    assert output.sequence.finish_reason == "error"
    assert "ended at once" in output.sequence.error
    assert not engine.has_unfinished


def test_a_derived_seed_rescues_an_immediate_end() -> None:
    engine = make_engine(EagerEnd(8.5))
    seeds_tried = 0
    for seed in range(40):
        sampling = SamplingParams(
            seed=seed, temperature=(1.0,), top_k=626, top_p=1.0, max_new_tokens=1
        )
        engine.add_request(make_request("a", sampling=sampling), 0.0)
        outputs = engine.step(0.0)
        assert outputs[-1].sequence.finish_reason == "length"
        noise_seed = outputs[-1].sequence.noise_seed
        derived = [derive_seed(seed, attempt) for attempt in range(1, MAX_EOS_RETRIES + 1)]
        builder = ChunkBuilder(outputs[-1].sequence.request, CODEBOOKS, HIDDEN)
        chunk = builder.push(outputs[-1], 0.0)
        assert chunk is not None
        assert noise_seed == [seed, *derived][chunk.num_retries]
        seeds_tried += noise_seed != seed
    assert seeds_tried > 0


@pytest.mark.parametrize("mode", ["code", "text"])
def test_the_end_frame_is_not_part_of_the_tokens(mode: str) -> None:
    engine = make_engine(EagerEnd(1e6))
    free_request(engine, mode, min_new_tokens=4)
    transcript = Transcript()
    while engine.has_unfinished:
        transcript.add(engine.step(0.0))
    assert transcript.reasons == {"a": "eos"}
    assert len(transcript.tokens["a"]) == 4


def test_both_modes_share_a_batch() -> None:
    requests = [make_request("code", max_new_tokens=8), make_request("text", mode="text")]
    together = run_all(make_engine(), requests)
    alone = [run_all(make_engine(), [request]).tokens for request in requests]
    assert together.tokens == alone[0] | alone[1]
    assert len(together.tokens["text"][0]) == 1


def test_warm_up_leaves_the_engine_as_it_was() -> None:
    runner = FakeRunner()
    engine = make_engine(runner)
    warm_up(engine)
    assert not engine.has_unfinished
    assert runner.num_held == 0
    assert engine.block_manager.num_used == 0


def test_weights_that_give_no_numbers_fail_the_warm_up() -> None:
    with pytest.raises(RuntimeError, match="^warm-up: .* the network gave a non-finite value"):
        warm_up(make_engine(FakeRunner(faults={"warm-up code": "logits"})))
