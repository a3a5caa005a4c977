"""Capacity: the fit of a profile, and the simulation against what queueing theory says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import capacity
import pytest
from chattts_load import profile as profiles
from chattts_load.profile import Point, Profile, ProfileError
from chattts_load.records import Record
from chattts_load.simulation import fewest_servers, serve, simulate

PAIRS = [(number, 0.1 * number) for number in range(10, 50)]


def profile(points: list[Point], max_num_seqs: int, max_streams: int = 10**6) -> Profile:
    return Profile({"name": "test"}, max_num_seqs, max_streams, tuple(points), {"en": PAIRS})


def records(concurrency: int) -> list[Record]:
    """Of a server that needs, per request at once, 0.1 s and 0.2 s more per second of audio."""
    return [
        Record(
            kind="stream",
            language="en",
            length="short",
            characters=10 * number,
            started_s=0.0,
            latency_s=0.1 * concurrency + 0.2 * concurrency * number,
            first_audio_s=0.1,
            audio_s=float(number),
            waits=0,
            waited_s=0.0,
        )
        for number in range(1, 11)
    ]


def test_a_fit_finds_what_is_fixed_and_what_grows_with_the_audio() -> None:
    one, four = profiles.fit({4: records(4), 1: records(1)})
    assert (one.concurrency, four.concurrency) == (1, 4)
    assert one.fixed_s == pytest.approx(0.1)
    assert four.s_per_audio_s == pytest.approx(0.8)
    found = profile([one, four], 16)
    assert found.service_s(1, 5.0) == pytest.approx(1.1)
    assert found.service_s(2, 5.0) == pytest.approx(2.2)  # between the points
    assert found.service_s(8, 5.0) == pytest.approx(8.8)  # beyond them
    with pytest.raises(ProfileError, match="1 at once: only 3"):
        profiles.fit({1: records(1)[:3]})


def test_a_text_becomes_as_much_audio_as_texts_of_its_length_did() -> None:
    found = profile([Point(1, 0.1, 0.1)], 1).audio_lengths(30, "en")
    assert found == pytest.approx([3.0] * len(PAIRS))
    with pytest.raises(ProfileError, match="only 0 texts in 'zh'"):
        profile([Point(1, 0.1, 0.1)], 1).audio_lengths(30, "zh")


def test_a_profile_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    kept = profile([Point(1, 0.1, 0.2), Point(8, 0.4, 0.5)], 8)
    profiles.save(kept, path)
    assert profiles.load(path).points == kept.points
    assert profiles.load(path).service_s(4, 2.0) == kept.service_s(4, 2.0)
    for broken in ("{}", "no json", '{"points": []}'):
        path.write_text(broken)
        with pytest.raises(ProfileError, match=r"profile\.json"):
            profiles.load(path)


def test_one_at_a_time_waits_as_long_as_pollaczek_and_khinchine_say() -> None:
    # Service of 1 s, an arrival each 2 s: 0.5 s of waiting on average.
    outcome = simulate(profile([Point(1, 1.0, 0.0)], 1), 1, 0.5, [1.0], num_requests=20_000)
    assert outcome.latency_mean_s == pytest.approx(1.5, rel=0.05)
    assert outcome.running_mean == pytest.approx(0.5, rel=0.05)


def test_a_shared_server_takes_as_long_as_processor_sharing_says() -> None:
    # n at once take n times as long: the mean is that of one, over 1 - load.
    shared = profile([Point(1, 1.0, 0.0), Point(1000, 1000.0, 0.0)], 1000)
    outcome = simulate(shared, 1, 0.6, [1.0], num_requests=20_000)
    assert outcome.latency_mean_s == pytest.approx(2.5, rel=0.08)


def test_servers_that_do_not_slow_down_answer_as_one_alone() -> None:
    free = profile([Point(1, 0.5, 0.25), Point(64, 0.5, 0.25)], 64)
    outcome = simulate(free, 1, 5.0, [2.0], num_requests=2000)
    assert outcome.latency_p50_s == pytest.approx(1.0)
    assert outcome.latency_p99_s == pytest.approx(1.0)
    assert outcome.running_mean == pytest.approx(5.0, rel=0.1)  # Little's law


def test_arrivals_that_really_came_are_served_in_their_order() -> None:
    one_by_one = profile([Point(1, 0.0, 1.0)], 1, max_streams=2)
    served = serve(one_by_one, 1, [(100.0, 2.0), (101.0, 0.5), (101.5, 9.0), (104.0, 1.0)])
    assert served.latencies_s == pytest.approx([2.0, 1.5, 1.0])  # alone, behind it, alone
    assert served.refused == 1  # the third: two are there
    both_at_once = profile([Point(1, 0.0, 1.0), Point(2, 0.0, 2.0)], 2)
    served = serve(both_at_once, 1, [(0.0, 1.0), (0.5, 2.0)])
    assert served.latencies_s == pytest.approx([1.5, 2.5])  # shared from 0.5 to 1.5


def test_a_full_server_refuses() -> None:
    small = profile([Point(1, 1.0, 0.0)], 1, max_streams=2)
    assert simulate(small, 1, 3.0, [1.0], num_requests=3000).refused_share > 0.5
    assert simulate(small, 1, 0.01, [1.0], num_requests=3000).refused_share < 0.01


def test_more_load_and_a_tighter_limit_want_more_servers() -> None:
    slow = profile([Point(1, 0.2, 0.1), Point(16, 1.6, 0.8)], 16)

    def servers(qps: float, p99_s: float) -> int:
        outcome = fewest_servers(slow, qps, [3.0], p99_s, num_requests=2000)
        assert outcome
        assert outcome.latency_p99_s <= p99_s
        return outcome.servers

    # A server manages 4 requests per second at most.
    assert servers(1.0, 5.0) == 1
    assert servers(20.0, 5.0) >= 5
    assert servers(20.0, 1.0) > servers(20.0, 5.0)
    assert servers(40.0, 2.0) > servers(20.0, 2.0)
    assert fewest_servers(slow, 1.0, [3.0], p99_s=0.4) is None
    # Of ten servers with at most four requests per second each; said without simulating.
    assert fewest_servers(slow, 1e9, [3.0], p99_s=5.0, most=10) is None


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert capacity.main(arguments) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_the_command_answers_from_the_profile_that_ships(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("--text-len", "40", "--p99", "4", "--requests", "2000")
    few = run(capsys, "--qps", "1", *arguments)
    many = run(capsys, "--qps", "60", *arguments)
    assert few["servers"] == 1
    assert many["servers"] > 2
    assert many["latency_p99_s"] <= 4
    assert many["qps"] == 60


def test_the_command_says_why_it_has_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["--qps", "5", "--text-len", "40"]
    assert capacity.main([*question, "--p99", "0.001"]) == 1
    assert "no number of servers" in capsys.readouterr().err
    missing = str(tmp_path / "none.json")
    assert capacity.main([*question, "--p99", "1", "--profile", missing]) == 2
    assert "none.json" in capsys.readouterr().err
    for wrong in (["--qps", "0"], ["--p99", "nan"], ["--text-len", "0"]):
        with pytest.raises(SystemExit):
            capacity.main([*question, "--p99", "1", *wrong])
