"""Ratios and targets: the one place where a figure is divided by another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .floor import Machine, StepCost
from .plan import BASELINES, Kind

GIGABYTE = 1e9
Report = Mapping[str, Any]


class MissingError(LookupError):
    """A section that a figure needs was not run."""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure, what it must reach and what would be better still."""

    name: str
    goal: float
    stretch: float | None
    is_at_least: bool
    value: Callable[[Report], float]

    def judge(self, report: Report) -> dict[str, Any] | None:
        """Compare the figure with its goals; None if its sections were not run."""
        try:
            value = self.value(report)
        except MissingError:
            return None
        return {
            "name": self.name,
            "value": value,
            "goal": self.goal,
            "stretch": self.stretch,
            "is_at_least": self.is_at_least,
            "is_met": value >= self.goal if self.is_at_least else value <= self.goal,
        }


def judge_all(report: Report) -> list[dict[str, Any]]:
    """Judge every target whose sections were run."""
    judged = (target.judge(report) for target in _TARGETS)
    return [one for one in judged if one is not None]


def add_floors(
    cases: Sequence[dict[str, Any]],
    costs: Mapping[str, StepCost],
    machine: Machine,
    prompt_tokens: int,
    max_num_seqs: int,
) -> None:
    """Put the floor beside each case, and how far above it the case is.

    Sets floor_step_ms, floor_tokens_per_s and over_floor; on engine cases over_floor compares the
    median step, elsewhere the tokens per second (prefill and everything else included).
    """
    for case in cases:
        batch = case["concurrency"]
        if case["kind"] not in BASELINES:
            batch = min(batch, max_num_seqs)
        context = prompt_tokens + case["steps"] / 2
        cost = costs[case["variant"]]
        floor_s = cost.floor_s(machine, batch, context)
        case["floor_step_ms"] = 1000 * floor_s
        case["floor_tokens_per_s"] = batch / floor_s
        if case["kind"] == "engine":
            case["over_floor"] = case["step_ms_p50"] / case["floor_step_ms"]
            for key, on_small_pages in (
                ("over_memory_floor", False),
                ("over_small_page_memory_floor", True),
            ):
                memory_s = cost.memory_floor_s(machine, batch, context, on_small_pages)
                case[key] = case["step_ms_p50"] / (1000 * memory_s)
        else:
            case["over_floor"] = case["floor_tokens_per_s"] / case["tokens_per_s"]


def find_case(report: Report, kind: Kind, variant: str, concurrency: int) -> Mapping[str, Any]:
    """Return one case of a report.

    Raises:
        MissingError: it was not run.
    """
    for case in report.get("cases", ()):
        if (case["kind"], case["variant"], case["concurrency"]) == (kind, variant, concurrency):
            found: Mapping[str, Any] = case
            return found
    raise MissingError(f"{kind} {variant} {concurrency}")


def _baseline(report: Report, batch: int) -> Mapping[str, Any]:
    """The published package itself where it was measured, else its stand-in."""
    for kind in BASELINES:
        try:
            return find_case(report, kind, "fp32", batch)
        except MissingError:
            continue
    raise MissingError(f"baseline {batch}")


def _check(report: Report, *path: str) -> Any:
    value: Any = report.get("checks", {})
    for key in path:
        if key not in value:
            raise MissingError(" ".join(path))
        value = value[key]
    return value


def _over_baseline(precision: str, concurrency: int, batch: int) -> Callable[[Report], float]:
    def value(report: Report) -> float:
        ours = find_case(report, "engine", precision, concurrency)["tokens_per_s"]
        return float(ours / _baseline(report, batch)["tokens_per_s"])

    return value


def _server_over_engine(precision: str, concurrency: int) -> Callable[[Report], float]:
    def value(report: Report) -> float:
        server = find_case(report, "server", precision, concurrency)["tokens_per_s"]
        return float(server / find_case(report, "engine", precision, concurrency)["tokens_per_s"])

    return value


def _of_case(kind: Kind, precision: str, concurrency: int, key: str) -> Callable[[Report], float]:
    def value(report: Report) -> float:
        case = find_case(report, kind, precision, concurrency)
        if key not in case:
            raise MissingError(key)
        return float(case[key])

    return value


def _of_check(*path: str, unit: float = 1.0) -> Callable[[Report], float]:
    return lambda report: float(_check(report, *path)) / unit


def _equal_share(report: Report) -> float:
    """Share of the identity checks in which all digests were equal."""
    checks = [_check(report, "identity", name) for name in _check(report, "identity")]
    return sum(len(set(one["digests"])) == 1 for one in checks) / len(checks)


_TARGETS = (
    Target(
        "tokens/s, 1 request, int8, over the baseline", 6, 8, True, _over_baseline("int8", 1, 1)
    ),
    Target("16 requests, int8, over the baseline's 1", 20, 30, True, _over_baseline("int8", 16, 1)),
    Target("8 requests, int8, over the baseline's 8", 6, 8, True, _over_baseline("int8", 8, 8)),
    Target("1 request, fp32, over the baseline", 2.3, 3, True, _over_baseline("fp32", 1, 1)),
    Target("16 requests, fp32, over the baseline's 1", 12, 16, True, _over_baseline("fp32", 16, 1)),
    *(
        Target(
            f"step at batch 1 over its bandwidth floor{pages}, {precision}",
            1.3,
            1.15,
            False,
            _of_case("engine", precision, 1, key),
        )
        for precision in ("int8", "fp32")
        for pages, key in (
            ("", "over_memory_floor"),
            (" on 4 KiB pages", "over_small_page_memory_floor"),
        )
    ),
    *(
        Target(
            f"whole path over engine alone, {concurrency} requests, {precision}",
            0.9,
            0.95,
            True,
            _server_over_engine(precision, concurrency),
        )
        for precision in ("int8", "fp32")
        for concurrency in (8, 16)
    ),
    Target("real-time streams", 3, 6, True, _of_check("realtime", "streams")),
    Target(
        "server memory under load, GB (PSS)",
        1.6,
        1.2,
        False,
        _of_check("memory", "peak_pss", unit=GIGABYTE),
    ),
    Target("start to ready, s", 12, 6, False, _of_check("start", "median_s")),
    Target("idle, share of a core", 0.01, None, False, _of_check("idle", "core_share")),
    Target(
        "cost per audio second, long over short text (CPU)",
        1.1,
        None,
        False,
        _of_check("linear", "long_over_short", "cpu_s_per_audio_s"),
    ),
    Target(
        "Python's share of a step, 16 requests, int8",
        0.1,
        None,
        False,
        _of_case("engine", "int8", 16, "host_share"),
    ),
    Target("identity checks passed, share", 1, None, True, _equal_share),
)
