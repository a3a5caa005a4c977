"""What the client and gRPC cost at 16 streams, and whether its memory stays flat over 5,000 calls.

    python loadtest/client_overhead.py
    python loadtest/client_overhead.py --repository /tmp/a --streams 16 --rounds 20 --calls 0

The synchronous client, the asynchronous one and a bare gRPC stub that decodes nothing load one
server in turns, each with the same streams. Figures in percent, medians over the rounds with the
middle 90 % of such medians (bootstrap):

- processor: the processor time of this process, in which only client and gRPC run, as a share of
  what all cores have in the wall time of the streams: what they take from a busy machine.
- over_bare: how much longer all streams take than with the bare stub.
- outside: the share of a stream's time, as its caller sees it, that is not in the server's own
  measurement of it: both directions of gRPC, and what a request waits in Triton before the
  speech model sees it. The bare stub has it too.

Then many short calls of one client: the memory of this process after each tenth of them. Prints a
table and, last, one line of JSON. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
from chattts_bench.arguments import add_built, number
from chattts_bench.report import table
from chattts_client import AsyncChatTTSClient, Audio, ChatTTSClient, SpeechOptions
from metrics_cost import median_and_range
from tritonclient.grpc import service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench.speech import running  # noqa: E402

TARGET_PERCENT = 3.0
"""Most that client and gRPC may cost at 16 streams: of the processors, and over the bare stub."""
CLIENTS = ("sync", "async")
CALLERS = (*CLIENTS, "bare")
_TEXT = "the train to london leaves at half past seven"
_SHORT_STEPS = 24
_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Load:
    """One load of the server by one contestant."""

    wall_s: float
    """Seconds until all streams had ended."""
    own_cpu_s: float
    """Processor seconds of this process."""
    outside_percent: float
    """Median over the streams of the time outside the server, in percent."""


Stream = tuple[float, float]
"""Seconds that a stream took for its caller, and by the server's own measurement."""


class Clock:
    """Runs from its making on."""

    def __init__(self) -> None:
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def load(self, streams: Sequence[Stream]) -> Load:
        """Return what it took to speak these."""
        wall_s, cpu_s = time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s
        outside = [100 * (1 - inside_s / elapsed_s) for elapsed_s, inside_s in streams]
        return Load(wall_s, cpu_s, statistics.median(outside))


def seen(audio: Audio) -> Stream:
    """Return how long an utterance took."""
    return audio.elapsed_s, audio.timings.total_ms / 1000


def fixed(seed: int, steps: int) -> SpeechOptions:
    """Return the options of speech of a fixed length."""
    return {"seed": seed, "min_new_tokens": steps, "max_new_tokens": steps}


def bare_request(seed: int, steps: int) -> Any:
    """The message of one stream, made by hand."""
    message = service_pb2.ModelInferRequest(model_name="chattts")
    text = _TEXT.encode()
    inputs = {
        "text": ("BYTES", len(text).to_bytes(4, "little") + text),
        "stream": ("BOOL", b"\1"),
        "seed": ("UINT64", seed.to_bytes(8, "little")),
        "min_new_tokens": ("INT32", steps.to_bytes(4, "little")),
        "max_new_tokens": ("INT32", steps.to_bytes(4, "little")),
    }
    for name, (datatype, raw) in inputs.items():
        message.inputs.add(name=name, datatype=datatype, shape=[1])
        message.raw_input_contents.append(raw)
    return message


def inside_s(last: Any) -> float:
    """Return the server's own measurement in the last response of a bare stream."""
    response = last.infer_response
    index = [output.name for output in response.outputs].index("metadata")
    metadata = json.loads(response.raw_output_contents[index][4:])
    return float(metadata["timings"]["total_ms"]) / 1000


class Contestants:
    """The three callers of one server; they take turns."""

    def __init__(self, url: str, client: ChatTTSClient, streams: int, steps: int) -> None:
        self._url = url
        self._client = client
        self._seeds = range(streams)
        self._steps = steps
        self._requests = [bare_request(seed, steps) for seed in self._seeds]

    def load(self, name: str) -> Load:
        """Load the server as sync, async or bare; connecting and starting threads is not timed."""
        if name == "async":
            return asyncio.run(self._load_async())
        with ThreadPoolExecutor(len(self._seeds)) as pool:
            barrier = threading.Barrier(len(self._seeds))
            list(pool.map(lambda _: barrier.wait(), self._seeds))
            return self._load_sync(pool) if name == "sync" else self._load_bare(pool)

    def _load_sync(self, pool: ThreadPoolExecutor) -> Load:
        def speak(seed: int) -> Stream:
            with self._client.stream(_TEXT, **fixed(seed, self._steps)) as stream:
                return seen(stream.result())

        clock = Clock()
        return clock.load(list(pool.map(speak, self._seeds)))

    def _load_bare(self, pool: ThreadPoolExecutor) -> Load:
        with grpc.insecure_channel(self._url) as channel:
            grpc.channel_ready_future(channel).result(_LIMIT_S)
            stub = GRPCInferenceServiceStub(channel)

            def read(message: Any) -> tuple[float, Any]:
                start_s = time.perf_counter()
                last = None
                for last in stub.ModelStreamInfer(iter((message,)), timeout=_LIMIT_S):
                    if last.error_message:
                        raise RuntimeError(last.error_message)
                return time.perf_counter() - start_s, last

            clock = Clock()
            ended = list(pool.map(read, self._requests))
            return clock.load([(elapsed_s, inside_s(last)) for elapsed_s, last in ended])

    async def _load_async(self) -> Load:
        async with AsyncChatTTSClient(self._url, timeout_s=_LIMIT_S, max_retries=0) as client:
            await client.normalize(_TEXT)

            async def speak(seed: int) -> Stream:
                async with client.stream(_TEXT, **fixed(seed, self._steps)) as stream:
                    return seen(await stream.result())

            clock = Clock()
            return clock.load(await asyncio.gather(*map(speak, self._seeds)))


def memory_over(client: ChatTTSClient, calls: int, streams: int) -> dict[str, Any]:
    """Make many short calls, every other one a stream; return what they add to this process."""

    def call(seed: int) -> None:
        if seed % 2:
            client.synthesize(_TEXT, **fixed(seed, _SHORT_STEPS))
        else:
            with client.stream(_TEXT, **fixed(seed, _SHORT_STEPS)) as stream:
                for _ in stream:
                    pass

    def held_bytes() -> int:
        gc.collect()
        return int(psutil.Process().memory_info().rss)

    tenth, rss = calls // 10, []
    with ThreadPoolExecutor(streams) as pool:
        for index in range(10):
            list(pool.map(call, range(index * tenth, (index + 1) * tenth)))
            rss.append(held_bytes())
    return {
        "calls": 10 * tenth,
        "rss_mb": [round(one / 1e6, 1) for one in rss],
        "second_half_grew_mb": round((rss[-1] - rss[4]) / 1e6, 1),
    }


def summary(rounds: Sequence[Mapping[str, Load]]) -> dict[str, Any]:
    """Return each client's figures in percent, and whether the target is met."""
    found: dict[str, Any] = {"rounds": len(rounds), "target_percent": TARGET_PERCENT}
    cores = os.cpu_count() or 1
    for caller in CALLERS:
        figures = {
            "processor": [
                100 * loads[caller].own_cpu_s / loads[caller].wall_s / cores for loads in rounds
            ],
            "outside": [loads[caller].outside_percent for loads in rounds],
        }
        if caller in CLIENTS:
            figures["over_bare"] = [
                100 * (loads[caller].wall_s / loads["bare"].wall_s - 1) for loads in rounds
            ]
        for name, values in figures.items():
            middle, low, high = median_and_range(values)
            found[f"{caller}_{name}_percent"] = round(middle, 2)
            found[f"{caller}_{name}_percent_range"] = [round(low, 2), round(high, 2)]
    judged = [
        found[f"{client}_{name}_percent"]
        for client in CLIENTS
        for name in ("processor", "over_bare")
    ]
    return {**found, "target_is_met": max(judged) <= TARGET_PERCENT}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_built(parser)
    parser.add_argument("--streams", type=number(1, 64), default=16, help="at once; %(default)s")
    parser.add_argument("--steps", type=number(24, 2048), default=192, help="each; %(default)s")
    parser.add_argument("--rounds", type=number(2, 1000), default=12, help="%(default)s")
    parser.add_argument(
        "--calls", type=number(0, 10**6), default=5000, help="for memory, 0 = none; %(default)s"
    )
    arguments = parser.parse_args(argv)
    rounds: list[dict[str, Load]] = []
    memory: dict[str, Any] = {}
    with running(arguments.repository) as (server, client):
        contestants = Contestants(server.grpc_url, client, arguments.streams, arguments.steps)
        for name in CALLERS:
            contestants.load(name)  # warm
        for index in range(arguments.rounds):
            order = CALLERS[index % 3 :] + CALLERS[: index % 3]
            rounds.append({name: contestants.load(name) for name in order})
        if arguments.calls >= 10:
            memory = memory_over(client, arguments.calls, arguments.streams)
    rows = [
        [
            name,
            f"{statistics.median(loads[name].wall_s for loads in rounds):.3f}",
            f"{statistics.median(loads[name].own_cpu_s for loads in rounds):.3f}",
            f"{statistics.median(loads[name].outside_percent for loads in rounds):.2f}",
        ]
        for name in CALLERS
    ]
    print(table(["caller", "all streams, s", "own processor, s", "outside the server, %"], rows))
    print(json.dumps({"streams": arguments.streams, **summary(rounds), **memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
