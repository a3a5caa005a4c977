"""Triton's perf_analyzer: installed into an environment of its own, run, and its results read.

The binary comes with tritonclient 2.50.0, whose dependencies contradict ours, so nothing but that
wheel and the CUDA runtime that the binary is linked against (no GPU needed) is installed, and never
beside ours. It also wants libb64 from the system; where it is missing and apt is at hand, its
package is unpacked beside the binary, which needs no root.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .playback import Playback
from .records import Record
from .texts import Text

_PACKAGES = ("tritonclient==2.50.0", "nvidia-cuda-runtime-cu12==12.9.79")
_LIBB64 = "libb64-0d"
_WAV_HEADER_BYTES = 44
_BYTES_PER_SECOND = 2 * 24000
_NANOSECONDS = 1e9
_MICROSECONDS = 1e6


class PerfAnalyzerError(Exception):
    """It cannot be installed, or ended with an error; the message says why."""


@dataclass(frozen=True, slots=True)
class PerfAnalyzer:
    """An installed perf_analyzer."""

    binary: Path
    library_folders: Sequence[Path]

    @classmethod
    def install(cls, work: Path) -> PerfAnalyzer:
        """Return the one below `work`, installed if it is not there.

        Raises:
            PerfAnalyzerError: it cannot be.
        """
        folder = work / "venv-perf-analyzer"
        stamp = folder / "installed"
        wanted = repr(_PACKAGES)
        if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted):
            _run([sys.executable, "-m", "venv", "--clear", folder])
            pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet")
            _run([*pip, "--no-deps", *_PACKAGES])
            stamp.write_text(wanted, encoding="utf-8")
        runtime = next(folder.glob("lib/python*/site-packages/nvidia/cuda_runtime/lib"))
        found = cls(folder / "bin" / "perf_analyzer", (runtime, folder / "libb64"))
        missing = found.run("--version", check=False).stderr
        if "libb64" in missing:
            _unpack_libb64(folder)
            missing = found.run("--version", check=False).stderr
        if "error while loading" in missing:
            raise PerfAnalyzerError(f"{missing.strip()}; apt-get install {_LIBB64} may help")
        return found

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it.

        Raises:
            PerfAnalyzerError: it ended with an error, unless `check` is false.
        """
        paths = ":".join(map(str, self.library_folders))
        done = subprocess.run(
            [str(self.binary), *arguments],
            env=os.environ | {"LD_LIBRARY_PATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            # it may print its usage after the reason
            lines = done.stderr.splitlines()[:6] or done.stdout.splitlines()[-10:]
            reason = "\n".join(lines)
            raise PerfAnalyzerError(f"perf_analyzer ended with {done.returncode}:\n{reason}")
        return done


def speech_input(drawn: Sequence[tuple[Text, int]]) -> dict[str, Any]:
    """Input data for the model chattts: texts and seeds; samples come back as base64 of 16 bit."""
    return {
        "data": [
            {
                "text": _value(text.text),
                "voice": _value(text.language),
                "seed": _value(seed),
                "encoding": _value("wav_base64"),
            }
            for text, seed in drawn
        ]
    }


def tensor_input(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Input data of arrays: rows of arrays by input name, each without the batch dimension."""
    return {
        "data": [
            {
                name: {
                    "content": {"b64": base64.b64encode(array.tobytes()).decode()},
                    "shape": list(array.shape),
                }
                for name, array in row.items()
            }
            for row in rows
        ]
    }


def read_speech_export(path: Path, texts: Sequence[Text]) -> list[Record]:
    """Read a profile export of the model chattts as records, one per request.

    Args:
        path: what --profile-export-file wrote.
        texts: those that were spoken, so that their lengths are known.
    """
    known = {text.text: text for text in texts}
    (experiment,) = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    records = [_record(request, known) for request in experiment["requests"]]
    return sorted(records, key=lambda record: record.ended_s)


def read_latencies(path: Path) -> dict[str, float]:
    """Read the one line of a CSV report: requests per second and percentiles in seconds."""
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    percentiles = {
        f"latency_p{number}_s": float(row[f"p{number} latency"]) / _MICROSECONDS
        for number in (50, 90, 95, 99)
    }
    return {"qps": float(row["Inferences/Second"]), **percentiles}


def _value(value: str | int) -> dict[str, Any]:
    return {"content": [value], "shape": [1]}


def _record(request: Mapping[str, Any], known: Mapping[str, Text]) -> Record:
    text = known[request["request_inputs"]["text"]]
    sent_s = request["timestamp"] / _NANOSECONDS
    arrivals_s = [(stamp - request["timestamp"]) / _NANOSECONDS for stamp in _stamps(request)]
    durations_s = _durations_s(request["response_outputs"])
    pieces = [pair for pair in zip(arrivals_s, durations_s, strict=True) if pair[1] > 0]
    playback = Playback([pair[0] for pair in pieces], [pair[1] for pair in pieces])
    waits_s = playback.waits_s
    return Record(
        kind="stream",
        language=text.language,
        length=text.length,
        characters=len(text.text),
        started_s=sent_s,
        latency_s=arrivals_s[-1],
        first_audio_s=playback.arrivals_s[0] if pieces else 0.0,
        audio_s=sum(durations_s),
        waits=len(waits_s),
        waited_s=sum(waits_s),
        error="" if pieces else "no audio",
    )


def _stamps(request: Mapping[str, Any]) -> list[int]:
    return [int(stamp) for stamp in request["response_timestamps"]]


def _durations_s(outputs: Sequence[Mapping[str, Any]]) -> list[float]:
    """Seconds of audio of each response; the first one that has any begins with a WAV's header."""
    header = _WAV_HEADER_BYTES
    durations_s = []
    for output in outputs:
        size = len(base64.b64decode(output.get("audio_bytes", "")))
        durations_s.append(max(0, size - header) / _BYTES_PER_SECOND)
        header = 0 if size else header
    return durations_s


def _unpack_libb64(folder: Path) -> None:
    try:
        _run(["apt-get", "download", _LIBB64], folder)
        package = next(folder.glob(f"{_LIBB64}_*.deb"))
        _run(["dpkg-deb", "--extract", package, folder / "deb"])
        library = next((folder / "deb").rglob("libb64.so.0d"))
        (folder / "libb64").symlink_to(library.parent)
    except (OSError, StopIteration, PerfAnalyzerError) as error:
        raise PerfAnalyzerError(f"perf_analyzer needs {_LIBB64}: {error}") from error


def _run(command: Sequence[str | Path], folder: Path | None = None) -> None:
    """Run a command; its output is progress."""
    done = subprocess.run(list(map(str, command)), cwd=folder, stdout=sys.stderr, check=False)
    if done.returncode:
        raise PerfAnalyzerError(f"{' '.join(map(str, command))} ended with {done.returncode}")
