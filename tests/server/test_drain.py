"""An orderly stop: what is being spoken is spoken to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from chattts_client import AudioChunk, ChatTTSClient
from launcher import EmbeddedServer

LONG_TEXT = "hello world. " * 6
STEPS = 400
SAMPLES = 6 * (512 * STEPS - 256)


def test_stop_lets_running_streams_finish(
    tiny_repository: Path, server_factory: Callable[[Path], EmbeddedServer]
) -> None:
    server = server_factory(tiny_repository)
    options = {"seed": 1, "min_new_tokens": STEPS, "max_new_tokens": STEPS}
    with ChatTTSClient(server.grpc_url) as client, client.stream(LONG_TEXT, **options) as stream:
        chunks: list[AudioChunk] = [next(stream)]
        stopper = threading.Thread(target=server.stop)
        stopper.start()
        chunks += stream
        stopper.join(60)
    assert not stopper.is_alive()
    assert chunks[-1].is_final
    assert sum(len(chunk.samples) for chunk in chunks) == SAMPLES
