"""Two checks of a load test's own figures: a second client, and a prediction against a real run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .locust_process import Target, run_locust, start_locust
from .probe import Seen
from .profile import Profile
from .records import Record
from .shapes import Shape
from .simulation import serve

_FOLDER = Path(__file__).resolve().parents[1]


def against_a_second_client(
    folder: Path, target: Target, streams: int, seconds: float, settle_s: float
) -> dict[str, Any]:
    """Let locust and the plain client of probe.py speak at once, the same texts in the same order.

    Returns:
        Requests of both, and ratios of locust's figures to the probe's: mean latency per second of
        audio, so that how long the texts were that each got to matters little, and median first
        audio.
    """
    command = [sys.executable, "-m", "chattts_load.probe", "--url", target.grpc_url]
    command += ["--streams", str(streams), "--seconds", str(seconds)]
    command += ["--lengths", target.lengths, "--languages", target.languages]
    shape = Shape("constant", streams, seconds)
    locust = start_locust(folder, "check", target, shape)
    probe = subprocess.run(command, cwd=_FOLDER, stdout=subprocess.PIPE, text=True, check=False)
    records = locust.finish()
    if probe.returncode:
        raise ValueError("the second client failed; its reason is above")
    seen = [Seen(**one) for one in json.loads(probe.stdout)]
    good = [record for record in records if record.is_ok]
    ends_s = [[one.ended_s for one in good], [one.ended_s for one in seen]]
    if not all(ends_s):
        raise ValueError("the check by a second client was too short: nothing ended in it")
    # Only while both were at it: one starts and ends before the other.
    begin_s, end_s = max(map(min, ends_s)) + settle_s, min(map(max, ends_s))
    ours = _typical([one for one in good if begin_s <= one.ended_s <= end_s])
    theirs = _typical([one for one in seen if begin_s <= one.ended_s <= end_s])
    return {
        "streams": 2 * streams,
        "requests": [ours[0], theirs[0]],
        "latency_ratio": ours[1] / theirs[1],
        "first_audio_ratio": ours[2] / theirs[2],
    }


def _typical(requests: Sequence[Record] | Sequence[Seen]) -> tuple[int, float, float]:
    """How many; seconds of latency per second of audio; median seconds to the first audio."""
    if not requests:
        raise ValueError("the check by a second client was too short: nothing ended in it")
    latency_s = sum(one.latency_s for one in requests)
    first_audio_s = median(one.first_audio_s for one in requests)  # one stall says nothing
    return len(requests), latency_s / sum(one.audio_s for one in requests), first_audio_s


def of_the_profile(
    folder: Path,
    target: Target,
    profile: Profile,
    rate: float,
    seconds: float,
    settle_s: float,
) -> dict[str, Any]:
    """Let requests arrive at random times, and compare their latencies with the simulation's.

    The simulation gets the arrivals and lengths that really came: what is checked are the queues,
    not the dice.

    Args:
        folder: for locust's files.
        target: what is asked.
        profile: measured on this server just now.
        rate: arrivals per second.
        seconds: how long they arrive.
        settle_s: what arrives in this time in the beginning is not compared.
    """
    shape = Shape("poisson", 1, seconds)
    records: list[Record] = run_locust(folder, "poisson", target, shape, rate)
    good = sorted((one for one in records if one.is_ok), key=lambda one: one.started_s)
    if not good or good[-1].started_s - good[0].started_s <= settle_s:
        raise ValueError("the check of the profile was too short: nothing arrived in it")
    served = serve(profile, 1, [(one.started_s, one.audio_s) for one in good])
    if served.refused:
        raise ValueError(f"the simulation refuses {served.refused} requests that really ended well")
    begin_s = good[0].started_s + settle_s
    settled = sum(one.started_s < begin_s for one in good)
    measured_s = [one.latency_s for one in good[settled:]]
    predicted_s = served.latencies_s[settled:]
    return {
        "rate": rate,
        "requests": len(measured_s),
        "errors": len(records) - len(good),
        "predicted_over_measured": {
            "mean": float(np.mean(predicted_s) / np.mean(measured_s)),
            **{
                f"p{share}": float(
                    np.percentile(predicted_s, share) / np.percentile(measured_s, share)
                )
                for share in (50, 95, 99)
            },
        },
    }
