"""A second opinion on latency: plain threads and gRPC stubs, none of our client and no gevent.

    python -m chattts_load.probe --url HOST:PORT --streams 4 --seconds 20

Speaks the texts that locust speaks, in the same order, and prints a list of what it saw as JSON.
"""

from __future__ import annotations

import argparse
import json
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import grpc
from tritonclient.grpc import service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from . import texts

_BYTES_PER_SECOND = 4 * 24000


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one request."""

    ended_s: float
    """Unix time of the end of the answer."""
    latency_s: float
    """Seconds from the call to there."""
    first_audio_s: float
    """Seconds from the call to the first samples."""
    audio_s: float
    """Seconds of audio."""


def main(argv: Sequence[str] | None = None) -> None:
    """Speak for a while and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--lengths", default=texts.DEFAULT_LENGTHS)
    parser.add_argument("--languages", default=texts.DEFAULT_LANGUAGES)
    arguments = parser.parse_args(argv)
    mix = texts.TextMix(
        texts.load_texts(),
        texts.read_weights(arguments.lengths, texts.LENGTHS),
        texts.read_weights(arguments.languages, texts.LANGUAGES),
        seed=1,
    )
    lock = threading.Lock()
    seen: list[Seen] = []
    end = time.monotonic() + arguments.seconds

    def speak() -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(arguments.url, options=options) as channel:
            stub = GRPCInferenceServiceStub(channel)
            while time.monotonic() < end:
                with lock:
                    text, seed = mix.draw()
                seen.append(_one(stub, text, seed))

    threads = [threading.Thread(target=speak) for _ in range(arguments.streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([asdict(one) for one in seen]))


def _one(stub: GRPCInferenceServiceStub, text: texts.Text, seed: int) -> Seen:
    message = service_pb2.ModelInferRequest(model_name="chattts")
    for name, datatype, raw in (
        ("text", "BYTES", _string(text.text)),
        ("voice", "BYTES", _string(text.language)),
        ("seed", "UINT64", struct.pack("<Q", seed)),
    ):
        message.inputs.add(name=name, datatype=datatype, shape=[1])
        message.raw_input_contents.append(raw)
    first_s, num_bytes = 0.0, 0
    started = time.monotonic()
    for response in stub.ModelStreamInfer(iter((message,))):
        if response.error_message:
            raise RuntimeError(response.error_message)
        answer = response.infer_response
        for output, raw in zip(answer.outputs, answer.raw_output_contents, strict=True):
            if output.name == "audio" and raw:
                first_s = first_s or time.monotonic() - started
                num_bytes += len(raw)
    latency_s = time.monotonic() - started
    return Seen(time.time(), latency_s, first_s, num_bytes / _BYTES_PER_SECOND)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


if __name__ == "__main__":
    main()
