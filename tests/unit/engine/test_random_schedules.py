"""Random schedules of an engine: no block lost or doubled, nobody starved, no bit changed."""

from __future__ import annotations

from chattts_engine.sequence import GenerationRequest, Sequence
from fakes import FAULT_AFTER, FakeRunner, Fault, Transcript, make_engine, make_request, run_all
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

STEP_S = 0.1
MAX_PROMPT_TOKENS, MAX_NEW_TOKENS = 40, 24
MIN_BLOCKS = 4  # hold the longest request
FAULTS: list[Fault | None] = [None, None, None, "prefill", "decode", "batch", "hidden", "logits"]
WAITS_S = st.none() | st.floats(0.0, 6.0)


class Schedules(RuleBasedStateMachine):
    """Callers come, leave and go wrong in any order while the engine steps."""

    @initialize(
        num_kv_blocks=st.integers(MIN_BLOCKS, 12),
        max_num_seqs=st.integers(1, 4),
        priority_head_start_ms=st.sampled_from([0, 1000, 30_000]),
        prefill_chunk_tokens=st.sampled_from([5, 64]),
        max_num_batched_tokens=st.sampled_from([1, 16, 64]),
    )
    def start(self, **limits: int) -> None:
        self.runner = FakeRunner()
        self.engine = make_engine(self.runner, **limits)
        self.transcript = Transcript()
        self.requests: dict[str, GenerationRequest] = {}
        self.work = 0  # steps that all requests take one after another
        self.now_s = 0.0

    @rule(
        prompt_tokens=st.integers(1, MAX_PROMPT_TOKENS),
        max_new_tokens=st.integers(1, MAX_NEW_TOKENS),
        priority=st.integers(1, 3),
        mode=st.sampled_from(["code", "code", "text"]),
        deadline_s=WAITS_S,
        queue_deadline_s=WAITS_S,
        fault=st.sampled_from(FAULTS),
    )
    def add(
        self,
        prompt_tokens: int,
        max_new_tokens: int,
        priority: int,
        mode: str,
        deadline_s: float | None,
        queue_deadline_s: float | None,
        fault: Fault | None,
    ) -> None:
        name = f"r{len(self.requests)}"
        request = make_request(
            name,
            prompt_tokens=prompt_tokens,
            max_new_tokens=max_new_tokens,
            seed=len(self.requests),
            priority=priority,
            mode=mode,
            deadline_s=None if deadline_s is None else self.now_s + deadline_s,
            queue_deadline_s=None if queue_deadline_s is None else self.now_s + queue_deadline_s,
        )
        self.requests[name] = request
        self.work += prompt_tokens + max_new_tokens
        if fault is not None:
            self.runner.faults[name] = fault
        self.engine.add_request(request, self.now_s)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.transcript.add(self.engine.abort(data.draw(st.sampled_from(sorted(self.requests)))))

    @rule(seconds=st.floats(0.0, 4.0))
    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(steps=st.integers(1, 12))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self._step()

    @invariant()
    def every_block_is_free_or_owned_once(self) -> None:
        scheduler = self.engine.scheduler
        scheduler.check_integrity()
        assert all(not sequence.block_table for sequence in scheduler.waiting)
        assert self.runner.num_held <= len(scheduler.running) <= scheduler.config.max_num_seqs

    def teardown(self) -> None:
        """Whatever happened, everything ends in a bounded number of steps, and ended right."""
        if not hasattr(self, "engine"):
            return
        for _ in range(2 * self.work + 1):
            if not self.engine.has_unfinished:
                break
            self._step()
        assert not self.engine.has_unfinished, "starved"
        assert self.runner.num_held == 0
        assert self.engine.block_manager.num_used == 0
        assert self.transcript.reasons.keys() == self.requests.keys()
        for name in self.requests:
            self._check_end(name)

    def _step(self) -> None:
        scheduler = self.engine.scheduler
        before = set(map(id, scheduler.running))
        self.transcript.add(self.engine.step(self.now_s))
        self.now_s += STEP_S
        self.every_block_is_free_or_owned_once()
        newcomers = [s for s in scheduler.running if id(s) not in before]
        for newcomer in newcomers:
            assert all(self._place(newcomer) <= self._place(other) for other in scheduler.waiting)

    def _place(self, sequence: Sequence) -> float:
        head_start_s = self.engine.config.priority_head_start_ms / 1000
        return sequence.arrival_s + sequence.request.priority * head_start_s

    def _check_end(self, name: str) -> None:
        request, fault = self.requests[name], self.runner.faults.get(name)
        tokens, reason = self.transcript.tokens[name], self.transcript.reasons[name]
        alone = run_all(make_engine(), [make_request_without_deadlines(request)]).tokens[name]
        assert tokens == alone[: len(tokens)]
        if fault in (None, "batch"):
            assert reason != "error"
        elif fault == "prefill":
            assert not tokens
        else:
            assert len(tokens) <= FAULT_AFTER
        if reason == "length":
            assert tokens == alone
        if reason == "deadline":
            assert (request.deadline_s, request.queue_deadline_s) != (None, None)


def make_request_without_deadlines(request: GenerationRequest) -> GenerationRequest:
    return make_request(
        request.id,
        prompt_tokens=request.num_prompt_tokens,
        max_new_tokens=request.sampling.max_new_tokens,
        seed=request.sampling.seed,
        mode=request.mode,
    )


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
