"""The report for people: one table of the cases, one of the checks, one of the targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .targets import GIGABYTE

_MEGABYTE = 1e6
_CASE_COLUMNS = (
    ("kind", "kind", 1.0, "{}"),
    ("variant", "", 1.0, "{}"),
    ("concurrency", "at once", 1.0, "{}"),
    ("tokens_per_s", "tokens/s", 1.0, "{:.1f}"),
    ("floor_tokens_per_s", "floor t/s", 1.0, "{:.0f}"),
    ("over_floor", "over floor", 1.0, "{:.2f}"),
    ("audio_s_per_s", "audio s/s", 1.0, "{:.2f}"),
    ("step_ms_p50", "step p50 ms", 1.0, "{:.1f}"),
    ("step_ms_p99", "p99 ms", 1.0, "{:.1f}"),
    ("first_audio_ms_p50", "first audio p50 ms", 1.0, "{:.0f}"),
    ("first_audio_ms_p99", "p99 ms", 1.0, "{:.0f}"),
    ("peak_rss", "peak RSS MB", _MEGABYTE, "{:.0f}"),
    ("pss", "PSS MB", _MEGABYTE, "{:.0f}"),
    ("host_share", "Python share", 1.0, "{:.3f}"),
)


def render(report: Mapping[str, Any]) -> str:
    """Return the whole report as text."""
    parts = [_machine(report)]
    if report.get("cases"):
        parts.append(table([title for _, title, _, _ in _CASE_COLUMNS], _case_rows(report)))
    parts += list(_check_lines(report))
    if report.get("targets"):
        headings = ["target", "reached", "goal", "stretch", ""]
        parts.append(table(headings, _target_rows(report)))
    return "\n\n".join(parts)


def vocoder_share(case: Mapping[str, Any]) -> float:
    """Return the vocoder's share of the processor time that the server used in a case."""
    used = case["cpu_s"]
    total = sum(used.values())
    return float(used.get("chattts_vocoder", 0.0) / total) if total else 0.0


def _machine(report: Mapping[str, Any]) -> str:
    lines = [
        f"{report['date']}  {report['processor']}, {report['cores']} cores",
        f"checkpoint {report['checkpoint']}; {report['plan']['steps']} steps per request, "
        f"{report['plan']['rounds']} interleaved rounds; max_num_seqs {report['max_num_seqs']}; "
        f"baseline {report['baseline']}",
    ]
    if report.get("machine"):
        machine = report["machine"]
        lines.append(
            f"measured between the cases: read {machine['read_bytes_per_s'] / GIGABYTE:.1f} GB/s "
            f"({machine['small_page_read_bytes_per_s'] / GIGABYTE:.1f} on 4 KiB pages), "
            f"fp32 {machine['fp32_ops_per_s'] / GIGABYTE:.0f} Gop/s, "
            f"int8 {machine['int8_ops_per_s'] / GIGABYTE:.0f} Gop/s "
            f"with {machine['num_threads']} threads"
        )
    return "\n".join(lines)


def _case_rows(report: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            form.format(case[key] / unit if unit != 1.0 else case[key]) if key in case else ""
            for key, _, unit, form in _CASE_COLUMNS
        ]
        for case in report["cases"]
    ]


def _check_lines(report: Mapping[str, Any]) -> Iterator[str]:
    for case in report.get("cases", ()):
        if case["kind"] == "server" and case["concurrency"] == max(
            one["concurrency"] for one in report["cases"] if one["kind"] == "server"
        ):
            yield (
                f"vocoder: {100 * vocoder_share(case):.1f} % of the server's processor time "
                f"({case['variant']}, {case['concurrency']} at once)"
            )
    checks = report.get("checks", {})
    if "realtime" in checks:
        tried = "; ".join(
            f"{count}: {kept_up}"
            for count, kept_up in checks["realtime"]["ahead_of_playback"].items()
        )
        most = checks["realtime"]["streams"]
        yield f"real-time streams: {most} (ahead of playback by streams: {tried})"
    if "memory" in checks:
        found = checks["memory"]
        parts = ", ".join(
            f"{part} {held / _MEGABYTE:.0f}" for part, held in found["pss_by_part_after"].items()
        )
        yield (
            f"memory, {found['streams']} streams of {found['steps']} steps: "
            f"peak {found['peak_pss'] / GIGABYTE:.2f} GB PSS, "
            f"{found['peak_rss'] / GIGABYTE:.2f} GB RSS; "
            f"at rest {found['pss_at_rest'] / GIGABYTE:.2f} GB PSS; afterwards MB: {parts}"
        )
    if "start" in checks:
        yield f"start to ready: {checks['start']['median_s']:.2f} s (median)"
    if "idle" in checks:
        yield f"idle: {100 * checks['idle']['core_share']:.2f} % of a core"
    if "linear" in checks:
        for name in ("short", "long"):
            cost = checks["linear"][name]
            yield (
                f"{name} text, {cost['audio_s']:.0f} s of audio: "
                f"{cost['cpu_s_per_audio_s']:.3f} CPU s and {cost['wall_s_per_audio_s']:.3f} s "
                "per audio second"
            )
    for name, found in checks.get("precision", {}).items():
        yield (
            f"int8 against fp32, {name}: logits cosine {found['logits_cosine']:.5f} (least "
            f"{found['logits_cosine_least']:.5f}), top-1 agreement {found['top_1_agreement']:.4f}, "
            f"changed tokens under fixed noise {found['changed_tokens']:.4f}"
        )
    for name, found in checks.get("identity", {}).items():
        verdict = "equal bits" if len(set(found["digests"])) == 1 else "DIFFERENT BITS"
        preemptions = found.get("num_preemptions", 0)
        with_them = f", {preemptions} pre-emptions" if preemptions else ""
        yield f"identity, {name}, at {found['concurrency']} at once{with_them}: {verdict}"


def _target_rows(report: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            one["name"],
            f"{one['value']:.3g}",
            f"{'>=' if one['is_at_least'] else '<='} {one['goal']:g}",
            "" if one["stretch"] is None else f"{one['stretch']:g}",
            "met" if one["is_met"] else "MISSED",
        ]
        for one in report["targets"]
    ]


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headings in columns as wide as they need to be."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
