"""One request that goes wrong in the engine ends alone, and changes no bit of the others."""

from __future__ import annotations

import logging

import pytest
from chattts_engine.runner import RunnerDeadError
from fakes import FAULT_AFTER, FakeRunner, Fault, Transcript, make_engine, make_request, run_all

NUM_REQUESTS = 5
CULPRITS = ["r0", "r2", "r4"]
SCRIPTED = "the engine failed: RuntimeError: scripted failure"
NOT_FINITE = "the engine failed: FloatingPointError: the network gave a non-finite value"


def run(runner: FakeRunner, **limits: int) -> Transcript:
    requests = [
        make_request(
            f"r{i}", prompt_tokens=4 + i, max_new_tokens=20, seed=i, mode=("code", "text")[i % 2]
        )
        for i in range(NUM_REQUESTS)
    ]
    engine = make_engine(runner, **limits)
    transcript = run_all(engine, requests)
    assert runner.num_held == 0
    assert engine.block_manager.num_used == 0
    return transcript


@pytest.mark.parametrize("culprit", CULPRITS)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("prefill", SCRIPTED),
        ("decode", SCRIPTED),
        ("hidden", NOT_FINITE),
        ("logits", NOT_FINITE),
    ],
)
@pytest.mark.parametrize("max_num_seqs", [2, 8])
def test_only_the_culprit_ends_and_the_others_bits_are_those_without_it(
    culprit: str, fault: Fault, message: str, max_num_seqs: int
) -> None:
    clean = run(FakeRunner(), max_num_seqs=max_num_seqs)
    spoilt = run(FakeRunner(faults={culprit: fault}), max_num_seqs=max_num_seqs)
    assert spoilt.errors == {culprit: message}
    assert spoilt.reasons == clean.reasons | {culprit: "error"}
    num_tokens = 0 if fault == "prefill" else FAULT_AFTER
    assert spoilt.tokens[culprit] == clean.tokens[culprit][:num_tokens]
    assert spoilt.tokens | {culprit: clean.tokens[culprit]} == clean.tokens


def test_two_culprits_of_one_step_both_end() -> None:
    clean = run(FakeRunner(), max_num_seqs=8)
    spoilt = run(FakeRunner(faults={"r0": "decode", "r2": "logits"}), max_num_seqs=8)
    assert spoilt.errors == {"r0": SCRIPTED, "r2": NOT_FINITE}
    for other in ("r1", "r3", "r4"):
        assert spoilt.tokens[other] == clean.tokens[other]


def test_a_failure_that_no_request_repeats_alone_ends_nobody() -> None:
    clean = run(FakeRunner(), max_num_seqs=8)
    spoilt = run(FakeRunner(faults={"r2": "batch"}), max_num_seqs=8)
    assert spoilt.errors == {}
    assert spoilt.tokens == clean.tokens


def test_a_failed_prompt_is_not_computed_further() -> None:
    """Two chunks of one prompt are due in the step in which the first one fails."""
    engine = make_engine(
        FakeRunner(faults={"a": "prefill"}), prefill_chunk_tokens=4, max_num_batched_tokens=64
    )
    transcript = run_all(engine, [make_request("a", prompt_tokens=8), make_request("b")])
    assert transcript.reasons == {"a": "error", "b": "length"}


def test_preempted_work_that_fails_when_it_is_redone_ends_alone() -> None:
    clean = run(FakeRunner(), max_num_seqs=8, num_kv_blocks=4)
    spoilt = run(FakeRunner(faults={"r4": "decode"}), max_num_seqs=8, num_kv_blocks=4)
    assert spoilt.errors == {"r4": SCRIPTED}
    assert {**spoilt.tokens, "r4": []} == {**clean.tokens, "r4": []}


def test_a_dead_runner_is_nobody_s_fault_and_is_raised() -> None:
    engine = make_engine(FakeRunner(dies_at_decode=2))
    for name in "ab":
        engine.add_request(make_request(name), 0.0)
    engine.step(0.0)
    engine.step(0.0)
    with pytest.raises(RunnerDeadError):
        engine.step(0.0)
    transcript = Transcript()
    transcript.add(engine.fail_all("the device is lost"))
    assert transcript.errors == {"a": "the device is lost", "b": "the device is lost"}


def test_the_cause_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    run(FakeRunner(faults={"r2": "decode"}), max_num_seqs=8)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == ["request r2 failed"]
    assert errors[0].exc_info is not None
