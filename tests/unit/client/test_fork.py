"""What a fork inherits refuses to work in the child at once, and works on in the parent."""

from __future__ import annotations

import subprocess
import sys

CLIENT = """
import os, sys
from chattts_client import ChatTTSClient

client = ChatTTSClient(sys.argv[1])
client.synthesize("hello")
child = os.fork()
if child == 0:
    try:
        client.synthesize("again")
    except RuntimeError as error:
        print(error)
    client.close()
    with ChatTTSClient(sys.argv[1]) as own:
        print("child speaks", own.synthesize("hello").seed, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent speaks", client.synthesize("hello").seed)
"""

STREAMS = """
import os, sys
from chattts_client import ChatTTSClient

client = ChatTTSClient(sys.argv[1])
ended, half_read = client.stream("hello"), client.stream("hello")
ended.result(), next(half_read)
audios = client.synthesize_many(["one", "two", "three"], concurrency=1)
next(audios)
child = os.fork()
if child == 0:
    for read in (half_read.result, lambda: next(half_read), lambda: next(audios)):
        try:
            read()
        except RuntimeError as error:
            print(error)
    half_read.close()
    del half_read, audios
    print("child has", ended.result().seed, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent has", half_read.result().seed, [audio.seed for audio in audios])
"""


def run(program: str, url: str) -> list[str]:
    command = [sys.executable, "-c", program, url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return run.stdout.splitlines()


def test_the_child_needs_a_client_of_its_own(grpc_url: str) -> None:
    assert run(CLIENT, grpc_url) == [
        "the client was made before a fork; make a new one in this process",
        "child speaks 7",
        "parent speaks 7",
    ]


def test_streams_that_were_open_belong_to_the_parent(grpc_url: str) -> None:
    assert run(STREAMS, grpc_url) == [
        *["the stream was made before a fork; make a new one in this process"] * 2,
        "synthesize_many was made before a fork; make a new one in this process",
        "child has 7",
        "parent has 7 [7, 7]",
    ]
