"""When a server is sick, with answers from a script and a clock of its own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import server_health
from http_exchange import NO_ANSWER, NOT_FOUND, OK, TOO_LATE, Answer
from server_health import HEALTH_BODY, HEALTH_PATH, READY_PATH, SICK_AFTER_S, START_LIMIT_S, Probe

INTERNAL = 500


class World:
    """A clock, and what each path answers, after how many seconds."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.status: dict[str, int] = {HEALTH_PATH: OK, READY_PATH: OK}
        self.delay_s = 0.0
        self.asked: list[str] = []

    def clock(self) -> float:
        return self.now_s


class FakeExchange:
    def __init__(
        self,
        world: World,
        path: str,
        limit_s: float,
        body: str,
    ) -> None:
        world.asked.append(path)
        self._world = world
        self._path = path
        self._limit_s = limit_s
        self._started_s = world.now_s
        assert body == (HEALTH_BODY if path == HEALTH_PATH else "")

    def step(self) -> Answer | None:
        passed_s = self._world.now_s - self._started_s
        if passed_s >= min(self._world.delay_s, self._limit_s):
            is_late = self._world.delay_s > self._limit_s
            return Answer(TOO_LATE if is_late else self._world.status[self._path], "words")
        return None


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    def exchange(
        address: tuple[str, int],
        path: str,
        limit_s: float,
        body: str,
        clock: Callable[[], float],
    ) -> FakeExchange:
        return FakeExchange(made, path, limit_s, body)

    monkeypatch.setattr(server_health, "Exchange", exchange)
    return made


def run(world: World, probe: Probe, limit_s: float) -> tuple[str, float]:
    """Step every half second; return the reason and the seconds until it, or nothing."""
    started_s = world.now_s
    while world.now_s < started_s + limit_s:
        if reason := probe.step():
            return reason, world.now_s - started_s
        world.now_s += 0.5
    return "", limit_s


def well(world: World) -> Probe:
    """A probe that has had a good answer at this moment."""
    probe = Probe(("127.0.0.1", 1), world.clock)
    assert probe.step() == ""
    assert probe.has_been_well
    return probe


def test_the_question_is_a_request_to_the_front_model() -> None:
    inputs = json.loads(HEALTH_BODY)
    assert inputs["text"] == ""
    assert json.loads(inputs["options"]) == {"health": True}


def test_well_server_is_asked_every_five_seconds(world: World) -> None:
    assert run(world, well(world), 60.0)[0] == ""
    assert len(world.asked) == 12


@pytest.mark.parametrize("status", [INTERNAL, 400, 503, NO_ANSWER])
def test_server_with_bad_answers_is_sick_after_a_while(world: World, status: int) -> None:
    probe = well(world)
    world.status[HEALTH_PATH] = status
    reason, after_s = run(world, probe, 60.0)
    assert SICK_AFTER_S <= after_s <= SICK_AFTER_S + 1
    assert "words" in reason


def test_silent_server_is_sick_as_soon(world: World) -> None:
    probe = well(world)
    world.delay_s = 1e9
    reason, after_s = run(world, probe, 60.0)
    assert reason
    assert SICK_AFTER_S <= after_s <= SICK_AFTER_S + 1


def test_slow_server_is_not_sick(world: World) -> None:
    probe = well(world)
    world.delay_s = 9.0
    assert run(world, probe, 300.0)[0] == ""


def test_good_answer_between_bad_ones_counts(world: World) -> None:
    probe = well(world)
    for _ in range(5):
        world.status[HEALTH_PATH] = INTERNAL
        assert run(world, probe, SICK_AFTER_S - 6)[0] == ""
        world.status[HEALTH_PATH] = OK
        assert run(world, probe, 6.0)[0] == ""


def test_server_that_starts_has_much_longer(world: World) -> None:
    world.status[HEALTH_PATH] = NO_ANSWER
    probe = Probe(("127.0.0.1", 1), world.clock)
    reason, after_s = run(world, probe, 2 * START_LIMIT_S)
    assert not probe.has_been_well
    assert reason
    assert START_LIMIT_S <= after_s <= START_LIMIT_S + 1


def test_without_the_front_model_readiness_counts(world: World) -> None:
    world.status[HEALTH_PATH] = NOT_FOUND
    probe = Probe(("127.0.0.1", 1), world.clock)
    assert run(world, probe, 30.0)[0] == ""
    assert probe.has_been_well
    assert world.asked[:2] == [HEALTH_PATH, READY_PATH]
    world.status[READY_PATH] = 400
    assert run(world, probe, 60.0)[0]
