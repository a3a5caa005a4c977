"""Two thousand callers leave at random moments: nothing of them stays, and the server lives.

They cancel their gRPC streams as any KServe client does (chattts_client stops its requests by
another one instead). Server 2.51 did not always survive it before the pauses of final_pause.py.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import grpc
import numpy as np
from chattts_soak.watch import Snapshot, Watch
from launcher import EmbeddedServer
from speech_calls import audio, stream
from tritonclient.grpc import InferResult, service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub
from tritonclient.utils import serialize_byte_tensor

NUM_CALLERS = 32
"""At a time; what leavers have left may run a moment longer, and 64 may run at once."""
NUM_WARM_UP = 500
NUM_LEAVERS = 2000
LIFE_S = 0.4
"""About as long as a request takes in the storm: leavers by the clock go within it."""
TEXT = "hello anna, how are you today"
MAX_NEW_TOKENS = 60
"""Three pieces; the last two follow one another at once."""
REFUSAL = "requests are running; try again"
REST_LIMIT_S = 20.0
POOL_THREADS = 40
"""The front's pools start a thread when all others are busy, so a new peak of load adds some."""
GROWTH_BYTES = 4 << 20
"""What shared memory may grow by, for the same reason: 1 MiB at a time, in several regions. One
page for each leaver would come to more."""


@dataclass(frozen=True)
class Leaver:
    """How one caller goes."""

    after_s: float | None
    """Cancels so many seconds after it asked, whatever has come."""
    after_pieces: int
    """Cancels right after so many responses, if `after_s` is None; 3 is after the last."""
    deadline_s: float | None
    """Time limit of the call, which ends it like a cancellation."""

    @classmethod
    def draw(cls, chance: Random) -> Leaver:
        """Draw one: a third by the clock, a half by what came, the rest by a deadline."""
        way = chance.random()
        return cls(
            after_s=chance.uniform(0.0, LIFE_S) if way < 0.35 else None,
            after_pieces=chance.randint(0, 3),
            deadline_s=chance.uniform(0.001, LIFE_S) if way > 0.85 else None,
        )


def request(seed: int) -> service_pb2.ModelInferRequest:
    """The message of one streaming request."""
    message = service_pb2.ModelInferRequest(model_name="chattts")
    text = serialize_byte_tensor(np.array([TEXT.encode()], np.object_)).item()
    values = {
        "text": ("BYTES", text),
        "max_new_tokens": ("INT32", np.int32(MAX_NEW_TOKENS).tobytes()),
        "seed": ("UINT64", np.uint64(seed).tobytes()),
    }
    for name, (datatype, data) in values.items():
        message.inputs.add(name=name, datatype=datatype, shape=[1])
        message.raw_input_contents.append(data)
    return message


def leave(stub: GRPCInferenceServiceStub, leaver: Leaver, seed: int) -> str:
    """Ask and leave; return what the caller had seen then: nothing, a piece, the last or a refusal.

    Raises:
        grpc.RpcError: the call ended otherwise than this caller wanted.
        AssertionError: the server answered with another error.
    """
    call = stub.ModelStreamInfer(iter((request(seed),)), timeout=leaver.deadline_s)
    seen = "nothing"
    try:
        if leaver.after_s is not None:
            time.sleep(leaver.after_s)
        else:
            for _ in range(leaver.after_pieces):
                response = next(call)
                if response.error_message:
                    # The server's clock may be the first to see the deadline.
                    assert leaver.deadline_s or REFUSAL in response.error_message
                    seen = "refusal"
                    break
                is_last = InferResult(response.infer_response).as_numpy("is_final")[0]
                seen = "last" if is_last else "piece"
    except grpc.RpcError as error:
        if leaver.deadline_s is None or error.code() not in (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.CANCELLED,
        ):
            raise
    call.cancel()
    return seen


def storm(server: EmbeddedServer, num_leavers: int, seed: int) -> Counter[str]:
    """Send `num_leavers` callers, NUM_CALLERS at a time; count what they had seen."""
    chance = Random(seed)
    leavers = [Leaver.draw(chance) for _ in range(num_leavers)]
    seeds = [chance.randrange(6) for _ in range(num_leavers)]
    with (
        grpc.insecure_channel(server.grpc_url) as channel,
        ThreadPoolExecutor(NUM_CALLERS) as callers,
    ):
        stub = GRPCInferenceServiceStub(channel)
        return Counter(callers.map(leave, [stub] * num_leavers, leavers, seeds))


def num_processes(snapshot: Snapshot) -> dict[str, int]:
    """Processes of each part of the server."""
    return {name: part.num_processes for name, part in snapshot.parts.items()}


def num_threads(snapshot: Snapshot) -> int:
    """Threads of the whole server."""
    return sum(part.num_threads for part in snapshot.parts.values())


def test_leavers_leave_nothing_behind(
    tiny_repository: Path, server_factory: Callable[..., EmbeddedServer]
) -> None:
    server = server_factory(tiny_repository)  # of its own: a crash would spoil the other tests
    speech = {"text": TEXT, "max_new_tokens": MAX_NEW_TOKENS, "seed": 1}
    before = audio(stream(server, **speech))
    watch = Watch(server)
    storm(server, NUM_WARM_UP, seed=1)
    warm = watch.rest(REST_LIMIT_S)

    seen = storm(server, NUM_LEAVERS, seed=2)
    after = watch.rest(REST_LIMIT_S)  # raises if a process has ended

    assert seen.total() == NUM_LEAVERS
    assert min(seen[what] for what in ("nothing", "piece", "last")) > NUM_LEAVERS / 50, seen
    assert seen["refusal"] < NUM_LEAVERS / 5, seen
    assert after.num_running == 0
    assert after.blocks_used == 0
    assert num_processes(after) == num_processes(warm)
    assert num_threads(after) <= num_threads(warm) + POOL_THREADS
    assert after.shared_memory <= warm.shared_memory + GROWTH_BYTES
    assert "Signal (" not in server.log()
    assert audio(stream(server, **speech)).tobytes() == before.tobytes()
