"""Where the texts of many utterances come from: sources that wait, fail, or are left early."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest
from chattts_client import AsyncChatTTSClient, Audio, ChatTTSClient, ServerError
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest, grpc_url: str) -> Twin:
    return TWINS[request.param](grpc_url, max_retries=0)


def numbered(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    """Speaks as many chunks as the text says."""
    if inputs["text"] == "0":
        raise Failure("INTERNAL", "zero")
    yield from utterance(int(inputs["text"]))


def test_texts_may_come_asynchronously_and_hold_nothing_up(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = numbered
    read = 0

    async def run() -> list[int]:
        goes_on = asyncio.Event()

        async def texts() -> AsyncGenerator[str, None]:
            nonlocal read
            for read in range(1, 100):
                yield str(read)
                if read == 3:
                    await goes_on.wait()

        found = []
        async with (
            AsyncChatTTSClient(grpc_url) as client,
            contextlib.aclosing(client.synthesize_many(texts(), concurrency=2)) as audios,
        ):
            async for audio in audios:
                found.append(len(audio.samples) // 256)
                if len(found) == 3:  # all that were read are here, though the source waits
                    assert read == 3
                    goes_on.set()
                if len(found) == 10:
                    break
        return found

    assert asyncio.run(run()) == [*range(1, 11)]
    assert read <= 10 + 2 * 2


def test_leaving_early_stops_the_wait_for_a_text(grpc_url: str) -> None:
    ends: list[str] = []

    async def texts() -> AsyncGenerator[str, None]:
        try:
            yield "hello"
            await asyncio.Event().wait()
        finally:
            ends.append("stopped")

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            async with contextlib.aclosing(client.synthesize_many(texts())) as audios:
                await anext(audios)
            assert ends == ["stopped"]

    asyncio.run(run())


def failing(texts: list[str]) -> Iterator[str]:
    yield from texts
    raise LookupError("no more")


async def failing_slowly(texts: list[str]) -> AsyncGenerator[str, None]:
    for text in failing(texts):
        await asyncio.sleep(0.01)
        yield text


@pytest.mark.parametrize("return_errors", [False, True])
def test_an_error_of_the_source_waits_for_its_turn(
    twin: Twin, fake: FakeTriton, return_errors: bool
) -> None:
    fake.script = numbered
    audios = twin.synthesize_many(failing(["1", "2", "3"]), return_errors=return_errors)
    found = [len(next(audios).samples) // 256 for _ in range(3)]  # type: ignore[union-attr]
    assert found == [1, 2, 3]
    with pytest.raises(LookupError, match="no more"):
        next(audios)
    assert list(audios) == []


def test_an_error_of_an_asynchronous_source_waits_for_its_turn(
    grpc_url: str, fake: FakeTriton
) -> None:
    fake.script = numbered

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            audios = client.synthesize_many(failing_slowly(["1", "2"]))
            assert [len((await anext(audios)).samples) // 256 for _ in range(2)] == [1, 2]
            with pytest.raises(LookupError, match="no more"):
                await anext(audios)

    asyncio.run(run())


def test_a_chattts_error_of_the_source_takes_no_place_of_an_utterance(
    twin: Twin, fake: FakeTriton
) -> None:
    def source() -> Iterator[str]:
        yield "1"
        raise ServerError("of the source")

    audios = twin.synthesize_many(source(), return_errors=True)
    assert isinstance(next(audios), Audio)
    with pytest.raises(ServerError, match="of the source"):
        next(audios)


def test_a_source_that_waits_holds_up_no_utterance(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = numbered
    is_heard = [threading.Event() for _ in range(3)]

    def texts() -> Iterator[str]:
        """Writes on once what it wrote was heard."""
        for number, heard in enumerate(is_heard, 1):
            yield str(number)
            assert heard.wait(WAIT_S)

    with ChatTTSClient(grpc_url) as client:
        audios = client.synthesize_many(texts())
        for number, (audio, heard) in enumerate(zip(audios, is_heard, strict=False), 1):
            assert len(audio.samples) == number * 256
            heard.set()
        audios.close()


def test_what_comes_while_the_caller_is_busy_begins(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = numbered
    may_go_on = threading.Event()

    def texts() -> Iterator[str]:
        yield "1"
        may_go_on.wait(WAIT_S)
        yield "2"

    with ChatTTSClient(grpc_url) as client:
        audios = client.synthesize_many(texts(), concurrency=1)
        next(audios)
        may_go_on.set()
        deadline_s = time.monotonic() + WAIT_S
        while len(fake.requests) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.005)
        assert len(fake.requests) == 2
        assert len(list(audios)) == 1


def test_what_comes_while_the_task_is_busy_begins(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = numbered

    async def run() -> None:
        may_go_on = asyncio.Event()

        async def texts() -> AsyncGenerator[str, None]:
            yield "1"
            await may_go_on.wait()
            yield "2"

        async with AsyncChatTTSClient(grpc_url) as client:
            audios = client.synthesize_many(texts(), concurrency=1)
            await anext(audios)
            may_go_on.set()
            deadline_s = time.monotonic() + WAIT_S
            while len(fake.requests) < 2 and time.monotonic() < deadline_s:
                await asyncio.sleep(0.005)
            assert len(fake.requests) == 2
            await audios.aclose()

    asyncio.run(run())


def leaving(ends: list[str], wait: Callable[[], object] = lambda: None) -> Iterator[str]:
    try:
        for _ in range(1000):
            yield "1"
            wait()
    finally:
        ends.append("ended")


def test_leaving_early_ends_the_source(twin: Twin, fake: FakeTriton) -> None:
    ends: list[str] = []
    audios = twin.synthesize_many(leaving(ends), concurrency=2)
    next(audios)
    assert ends == []
    audios.close()  # type: ignore[attr-defined] # a generator
    assert ends == ["ended"]


def test_leaving_early_ends_an_asynchronous_source_that_does_not_wait(grpc_url: str) -> None:
    ends: list[str] = []

    async def texts() -> AsyncGenerator[str, None]:
        try:
            while True:
                yield "1"
        finally:
            ends.append("ended")

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            audios = client.synthesize_many(texts(), concurrency=1)
            await anext(audios)
            await audios.aclose()
            assert ends == ["ended"]

    asyncio.run(run())


def test_leaving_early_does_not_wait_for_a_source_that_waits(grpc_url: str) -> None:
    ends: list[str] = []
    may_go_on = threading.Event()
    with ChatTTSClient(grpc_url) as client:
        audios = client.synthesize_many(leaving(ends, lambda: may_go_on.wait(WAIT_S)))
        next(audios)
        audios.close()
        assert ends == []
        (thread,) = (one for one in threading.enumerate() if one.name == "chattts-client-source")
        assert thread.daemon  # nor does the end of Python
        may_go_on.set()
        thread.join(WAIT_S)
    assert ends == ["ended"]


def test_what_is_no_generator_is_not_closed(twin: Twin) -> None:
    class Lines(Iterator[str]):
        is_closed = False

        def __next__(self) -> str:
            return "1"

        def close(self) -> None:
            self.is_closed = True

    lines = Lines()
    audios = twin.synthesize_many(lines, concurrency=1)
    next(audios)
    audios.close()  # type: ignore[attr-defined] # a generator
    assert not lines.is_closed
