"""What serving costs besides speed: start, memory, idle, real time, cost along the text."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from chattts_client import ChatTTSClient
from launcher import EmbeddedServer

from . import processes, speech
from .plan import TEXT, Plan

_SETTLE_S = 2.0
# Two do not fit into one segment of the front end, so each sentence becomes a segment.
_SENTENCE = (
    "the train to london leaves at half past seven and the train to paris leaves at half past nine."
)


def start_to_ready(repository: Path, plan: Plan) -> dict[str, Any]:
    """Seconds from the start of the server to its readiness; median of several."""
    seconds = []
    for _ in range(plan.starts):
        server = EmbeddedServer(repository)
        started = time.perf_counter()
        server.start()
        seconds.append(time.perf_counter() - started)
        server.kill()
    return {"median_s": statistics.median(seconds), "seconds": seconds}


def memory_under_load(repository: Path, plan: Plan) -> dict[str, Any]:
    """Peak memory of all processes of a fresh server while streams run."""
    with speech.running(repository) as (server, client):
        assert server.pid is not None
        tree = processes.server_tree(server.pid)
        at_rest = processes.memory(tree)
        requests = speech.equal_requests(TEXT, plan.memory_streams, plan.memory_steps)
        with processes.MemoryPeak(lambda: processes.memory(tree)) as sampled:
            speech.speak_all(client, requests)
        parts = processes.pss_by_part(processes.server_tree(server.pid))
    return {
        "streams": plan.memory_streams,
        "steps": plan.memory_steps,
        "peak_pss": sampled.peak.pss,
        "peak_rss": sampled.peak.rss,
        "pss_at_rest": at_rest.pss,
        "pss_by_part_after": parts,
    }


def idle(server: EmbeddedServer, client: ChatTTSClient, plan: Plan) -> dict[str, Any]:
    """Share of a core that a server uses that has spoken and now has nothing to do."""
    assert server.pid is not None
    speech.speak_all(client, speech.equal_requests(TEXT, 2, plan.steps))
    time.sleep(_SETTLE_S)
    tree = processes.server_tree(server.pid)
    before = processes.cpu_s(tree)
    time.sleep(plan.idle_s)
    after = processes.cpu_s(tree)
    shares = {part: (after[part] - before[part]) / plan.idle_s for part in after}
    return {"seconds": plan.idle_s, "core_share": sum(shares.values()), "by_part": shares}


def realtime_streams(client: ChatTTSClient, plan: Plan) -> dict[str, Any]:
    """Most streams of which none ever waits for audio, in several repetitions.

    All start at once. Playback begins with the first audio that arrives. One repetition each finds
    the first count that fails; from there down the first that passes all repetitions counts.
    """
    tried: dict[int, list[int]] = {}

    def passes(count: int, repetition: int) -> bool:
        first_seed = 1000 * repetition
        requests = [
            speech.Request(TEXT, plan.realtime_steps, first_seed + number)
            for number in range(count)
        ]
        spoken, _ = speech.speak_all(client, requests)
        num_ahead = sum(one.is_ahead_of_playback for one in spoken)
        tried.setdefault(count, []).append(num_ahead)
        return num_ahead == count

    most = 0
    while most < plan.realtime_limit and passes(most + 1, 0):
        most += 1
    while most and not all(passes(most, n) for n in range(1, plan.realtime_repetitions)):
        most -= 1
    return {"streams": most, "steps": plan.realtime_steps, "ahead_of_playback": tried}


def linear_cost(server: EmbeddedServer, client: ChatTTSClient, plan: Plan) -> dict[str, Any]:
    """Processor and wall seconds per second of audio, of a short and of a long utterance."""
    assert server.pid is not None
    tree = processes.server_tree(server.pid)
    costs = []
    for segments in plan.linear_segments:
        before = sum(processes.cpu_s(tree).values())
        text = " ".join([_SENTENCE] * segments)
        spoken, elapsed_s = speech.speak_all(client, [speech.Request(text, plan.linear_steps, 7)])
        used_s = sum(processes.cpu_s(tree).values()) - before
        if len(spoken[0].summary.text_segments) != segments:
            raise RuntimeError(f"{len(spoken[0].summary.text_segments)} segments, not {segments}")
        audio_s = spoken[0].audio_s
        costs.append(
            {
                "audio_s": audio_s,
                "cpu_s_per_audio_s": used_s / audio_s,
                "wall_s_per_audio_s": elapsed_s / audio_s,
            }
        )
    short, long = costs
    ratio = {key: long[key] / short[key] for key in ("cpu_s_per_audio_s", "wall_s_per_audio_s")}
    return {"short": short, "long": long, "long_over_short": ratio}
