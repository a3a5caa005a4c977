"""The loop of all stages: schedules, and runs that are stopped and go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from train_voice.stage_folder import (  # noqa: E402
    Busy,
    basis_of,
    set_aside_unless_of,
)
from train_voice.training import (  # noqa: E402
    LOG_EVERY,
    LOG_FILE,
    STATE_FILE,
    Draws,
    Interrupted,
    Schedule,
    Trainee,
    read_log,
    train,
    trained_steps,
)

SCHEDULE = Schedule(3 * LOG_EVERY, 1e-2, warmup=5)


def trainee() -> tuple[Trainee, Callable[[Draws], Mapping[str, float]], torch.nn.Linear]:
    torch.manual_seed(0)
    module = torch.nn.Linear(4, 1)
    trained = Trainee({"module": module})

    def step(draws: Draws) -> Mapping[str, float]:
        inputs = torch.from_numpy(draws.rng.standard_normal((8, 4))).float()
        loss = (module(inputs) + torch.randn(8, 1) - inputs.sum(dim=1, keepdim=True)).square()
        trained.update(loss.mean())
        return {"loss": float(loss.mean().detach())}

    return trained, step, module


def quiet(line: str) -> None:
    """Say nothing."""


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole, step, module = trainee()
    train(tmp_path / "whole", whole, SCHEDULE, 7, step, quiet)
    first, step, _ = trainee()
    stop_at = LOG_EVERY + 3

    def stopping(draws: Draws) -> Mapping[str, float]:
        if draws.step == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(draws)

    with pytest.raises(Interrupted):
        train(tmp_path / "parts", first, SCHEDULE, 7, stopping, quiet)
    assert trained_steps(tmp_path / "parts") == stop_at + 1
    second, step, resumed = trainee()
    with torch.no_grad():
        resumed.weight.add_(1)
    train(tmp_path / "parts", second, SCHEDULE, 7, step, quiet)
    assert torch.equal(resumed.weight, module.weight)
    assert trained_steps(tmp_path / "parts") == SCHEDULE.steps
    steps = [line["step"] for line in read_log(tmp_path / "parts")]
    assert steps == [LOG_EVERY, 2 * LOG_EVERY, 3 * LOG_EVERY]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_at_the_last_step_is_not_lost(tmp_path: Path, number: int) -> None:
    run, step, _ = trainee()

    def stopping(draws: Draws) -> Mapping[str, float]:
        os.kill(os.getpid(), number)
        return step(draws)

    with pytest.raises(Interrupted):
        train(tmp_path, run, Schedule(1, 1e-3), 7, stopping, quiet)
    assert trained_steps(tmp_path) == 1


def test_a_result_that_was_made_of_something_else_is_set_aside(tmp_path: Path) -> None:
    said: list[str] = []
    result = tmp_path / "stage" / STATE_FILE
    set_aside_unless_of(result, "the dvae of 1 steps", said.append)
    run, step, _ = trainee()
    train(result.parent, run, Schedule(1, 1e-3), 7, step, quiet)
    os.utime(result, (1, 1))
    set_aside_unless_of(result, "the dvae of 1 steps", said.append)
    assert trained_steps(result.parent) == 1
    assert said == []
    set_aside_unless_of(result, "the dvae of 2 steps", said.append)
    assert trained_steps(result.parent) == 0
    assert basis_of(result.parent) == "the dvae of 2 steps"
    assert (result.parent / f"{STATE_FILE}.old").exists()
    assert said == [f"{result} was made of the dvae of 1 steps: set aside as {STATE_FILE}.old"]


def test_a_result_of_an_unknown_past_is_set_aside(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "codes.npy").write_bytes(b"?")
    set_aside_unless_of(tmp_path / "codes.npy", "the dvae of 1 steps", said.append)
    assert (tmp_path / "codes.npy.old").read_bytes() == b"?"
    assert "made of something else" in said[0]


def test_half_a_line_of_the_log_is_no_line(tmp_path: Path) -> None:
    run, step, _ = trainee()
    train(tmp_path, run, Schedule(LOG_EVERY, 1e-3), 7, step, quiet)
    with (tmp_path / LOG_FILE).open("a", encoding="utf-8") as file:
        file.write('{"step": 5')
    assert [line["step"] for line in read_log(tmp_path)] == [LOG_EVERY]
    train(tmp_path, run, Schedule(2 * LOG_EVERY, 1e-3), 7, step, quiet)
    assert [line["step"] for line in read_log(tmp_path)] == [LOG_EVERY, 2 * LOG_EVERY]


def test_two_processes_never_train_in_one_folder(tmp_path: Path) -> None:
    first, step, _ = trainee()
    second, other_step, _ = trainee()

    def nested(draws: Draws) -> Mapping[str, float]:
        with pytest.raises(Busy, match="another process works here"):
            train(tmp_path, second, SCHEDULE, 7, other_step, quiet)
        return step(draws)

    train(tmp_path, first, Schedule(1, 1e-3), 7, nested, quiet)
    train(tmp_path, first, Schedule(2, 1e-3), 7, step, quiet)
    assert trained_steps(tmp_path) == 2


def test_a_finished_stage_takes_no_step(tmp_path: Path) -> None:
    first, step, _ = trainee()
    train(tmp_path, first, SCHEDULE, 7, step, quiet)
    again, _, _ = trainee()

    def never(draws: Draws) -> Mapping[str, float]:
        raise AssertionError(draws.step)

    train(tmp_path, again, SCHEDULE, 7, never, quiet)


def test_signals_mean_again_what_they_meant(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    run, step, _ = trainee()
    train(tmp_path, run, Schedule(1, 1e-3), 7, step, quiet)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    run, _, _ = trainee()
    with pytest.raises(FloatingPointError, match="loss bad is nan at step 0"):
        train(tmp_path, run, SCHEDULE, 7, lambda draws: {"bad": float("nan")}, quiet)


def test_the_rate_rises_stays_and_falls() -> None:
    schedule = Schedule(100, 1.0, warmup=10, decay=0.4)
    rates = [schedule.at(step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert rates[10:60] == [1.0] * 50
    assert all(a > b for a, b in zip(rates[60:], rates[61:], strict=False))
    assert rates[-1] < 0.05


def test_more_steps_change_no_rate_before_the_decay() -> None:
    short, long = Schedule(100, 1.0), Schedule(200, 1.0)
    assert [short.at(i) for i in range(60)] == [long.at(i) for i in range(60)]
