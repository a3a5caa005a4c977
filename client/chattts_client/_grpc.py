"""The gRPC transport: one bidirectional stream per request, many requests per connection.

It uses tritonclient's generated stubs directly, because its client classes allow one stream per
client at a time. Errors arrive inside the stream, as text that begins with their status. Triton can
end the stream with a real status instead (header `triton_grpc_error`), but server 2.51 then crashes
when errors meet other streams.

A request is stopped by another one that names it, and read to its end: the call of a caller who
leaves early is not cancelled, since a cancellation that meets the last response crashes server 2.51
now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from pathlib import Path
from typing import Any

import grpc
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from . import _grpc_messages as messages
from ._answers import Reader, read_facts
from ._exceptions import closed, error_in_stream
from ._json import JsonObject
from ._main_thread import Interruptible
from ._protocol import STOP_LIMIT_S, Question, SpeechRequest, health_request
from ._settings import Endpoint
from ._tls import Tls, ssl_context

_CHANNEL_OPTIONS = (
    # Equal channels of a process would share one connection, which a load balancer gives to one
    # server.
    ("grpc.use_local_subchannel_pool", 1),
    # A whole utterance is one message (96 kB per second); gRPC's default limit is 4 MiB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A connection that has died unseen is found while a request waits on it. Not sooner: Triton
    # closes connections that ping more often than every 300 s while nothing is sent.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A server that restarts is back within seconds; gRPC would wait for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


class GrpcTransport(Interruptible):
    """One connection to a server; safe for use by several threads, and against Ctrl-C."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(_BlockingTransport(endpoint))


class _BlockingTransport:
    """What it does, by threads that no Ctrl-C interrupts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel = _channel(grpc, endpoint, _credentials(endpoint.tls))
        self._stub = GRPCInferenceServiceStub(self._channel)
        self._headers = endpoint.headers

    def start(self, request: SpeechRequest, timeout_s: float | None) -> GrpcCall:
        """Send a request; errors show when the answer is received."""
        message = messages.infer_message(request)
        try:
            call = self._infer(message, timeout_s)
        except ValueError as error:  # the client was closed between two tries
            raise closed(request.request_id) from error
        return GrpcCall(call, message, self)

    def stop(self, message: Any) -> None:
        """Ask for the end of the request which `message` started; returns when it was heard."""
        for _ in self._infer(messages.stop_message(message), STOP_LIMIT_S):
            pass

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        if asked.about == "facts":
            call = self.start(health_request(asked.version), timeout_s)
            facts = read_facts(call.receive())
            call.receive()  # its end: a call that is left open keeps memory of server 2.51
            return facts
        name, message = messages.question(asked)
        try:
            found = getattr(self._stub, name)(message, timeout=timeout_s, metadata=self._headers)
        except grpc.RpcError as error:
            raise messages.call_error(error, "") from error
        return messages.reply(asked, found)

    def close(self) -> None:
        """Close the connection; running requests are cancelled."""
        self._channel.close()

    def _infer(self, message: Any, timeout_s: float | None) -> Any:
        return self._stub.ModelStreamInfer(
            iter((message,)), timeout=timeout_s, metadata=self._headers
        )


class GrpcCall:
    """One running request."""

    def __init__(self, call: Any, message: Any, transport: _BlockingTransport) -> None:
        self._call = call
        self._message = message
        self._transport = transport
        self._is_stopped = False
        self._reading = threading.Lock()  # gRPC allows one reader at a time

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        request_id = self._message.id
        try:
            with self._reading:
                response = next(self._call, None)
                if self._is_stopped:  # by another thread
                    raise closed(request_id)
                if response is not None and response.error_message:
                    self._read_to_the_end()
                    raise error_in_stream(response.error_message, request_id)
        except grpc.RpcError as error:
            left_s = self._call.time_remaining()
            raise messages.call_error(error, request_id, left_s) from error
        return None if response is None else messages.reader(response)

    def _read_to_the_end(self) -> None:
        for _ in self._call:
            pass

    def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""
        self._is_stopped = True
        if not self._call.is_active():
            return
        limit = threading.Timer(STOP_LIMIT_S, self._call.cancel)
        limit.start()
        with contextlib.suppress(grpc.RpcError):  # nobody waits for the answer any more
            self._transport.stop(self._message)
            with self._reading:
                self._read_to_the_end()
        limit.cancel()
        self._call.cancel()

    def cancel(self) -> None:
        """Cancel the call, where nobody waits for the request to end."""
        self._is_stopped = True
        self._call.cancel()


class AsyncGrpcTransport:
    """The asynchronous twin; belongs to the event loop of its first request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._credentials = _credentials(endpoint.tls)
        self._channel: Any = None
        self._stub: Any = None
        self.is_closed = False
        """Whether running requests were cancelled."""

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncGrpcCall:
        """Send a request; errors show when the answer is received."""
        message = messages.infer_message(request)
        try:
            call = self._infer(message, timeout_s)
        except grpc.aio.UsageError as error:  # the client was closed between two tries
            raise closed(request.request_id) from error
        return AsyncGrpcCall(call, message, self)

    async def stop(self, message: Any) -> None:
        """Ask for the end of the request which `message` started; returns when it was heard."""
        async for _ in self._infer(messages.stop_message(message), STOP_LIMIT_S):
            pass

    async def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        if asked.about == "facts":
            call = self.start(health_request(asked.version), timeout_s)
            facts = read_facts(await call.receive())
            await call.receive()  # its end: as in the synchronous twin
            return facts
        name, message = messages.question(asked)
        method = getattr(self._connect(), name)
        try:
            found = await method(message, timeout=timeout_s, metadata=self._endpoint.headers)
        except grpc.RpcError as error:
            raise messages.call_error(error, "") from error
        return messages.reply(asked, found)

    async def close(self) -> None:
        """Close the connection; running requests are cancelled."""
        self.is_closed = True
        if self._channel is not None:
            await self._channel.close()

    def _connect(self) -> Any:
        # NOTE: an asyncio channel binds to the running loop, so it is made inside one.
        if self._stub is None:
            self._channel = _channel(grpc.aio, self._endpoint, self._credentials)
            self._stub = GRPCInferenceServiceStub(self._channel)
        return self._stub

    def _infer(self, message: Any, timeout_s: float | None) -> Any:
        return self._connect().ModelStreamInfer(
            messages.once(message), timeout=timeout_s, metadata=self._endpoint.headers
        )


class AsyncGrpcCall:
    """One running request."""

    def __init__(self, call: Any, message: Any, transport: AsyncGrpcTransport) -> None:
        self._call = call
        self._message = message
        self._transport = transport
        self._is_stopped = False
        self._reading = asyncio.Lock()

    async def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        request_id = self._message.id
        try:
            async with self._reading:
                response = await self._call.read()
                if self._is_stopped:  # by another task
                    raise closed(request_id)
                if response is not grpc.aio.EOF and response.error_message:
                    await self._read_to_the_end()
                    raise error_in_stream(response.error_message, request_id)
        except grpc.RpcError as error:
            left_s = self._call.time_remaining()
            raise messages.call_error(error, request_id, left_s) from error
        except asyncio.CancelledError:
            if self._is_stopped or self._transport.is_closed:
                raise closed(request_id) from None
            left_s = self._call.time_remaining()
            if _is_task_cancelled(left_s):
                raise
            raise messages.not_sent(request_id, left_s) from None
        return None if response is grpc.aio.EOF else messages.reader(response)

    async def _read_to_the_end(self) -> None:
        while await self._call.read() is not grpc.aio.EOF:
            pass

    async def _stop_and_read(self) -> None:
        await self._transport.stop(self._message)
        async with self._reading:
            await self._read_to_the_end()

    async def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""
        self._is_stopped = True
        if self._call.done():
            return
        try:
            with contextlib.suppress(grpc.RpcError, asyncio.TimeoutError):
                await asyncio.wait_for(self._stop_and_read(), STOP_LIMIT_S)
        finally:
            self._call.cancel()

    def cancel(self) -> None:
        """Cancel the call, where nobody can wait for the request to end."""
        self._is_stopped = True
        self._call.cancel()


def _is_task_cancelled(left_s: float | None) -> bool:
    """Whether a CancelledError is for the task; gRPC raises one too where it could not send.

    Before Python 3.11 a task does not tell: a call whose time is over was not sent then.
    """
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return bool(cancelling()) if cancelling else left_s is None or left_s > 0


def _channel(kind: Any, endpoint: Endpoint, credentials: Any) -> Any:
    """A channel of grpc or grpc.aio; nothing is sent yet."""
    if credentials is None:
        return kind.insecure_channel(endpoint.url, options=_CHANNEL_OPTIONS)
    return kind.secure_channel(endpoint.url, credentials, options=_CHANNEL_OPTIONS)


def _credentials(tls: Tls | None) -> Any:
    """Certificates for gRPC; None: not encrypted.

    Raises:
        ValueError: a file is no good.
    """
    if tls is None:
        return None
    ssl_context(tls)  # only to check the files: gRPC takes any bytes, and never connects
    roots = _system_roots() if tls.ca_file is None else Path(tls.ca_file).read_bytes()
    key, certificates = (
        None if file is None else Path(file).read_bytes() for file in (tls.key_file, tls.cert_file)
    )
    return grpc.ssl_channel_credentials(roots, key, certificates)


def _system_roots() -> bytes | None:
    """What OpenSSL trusts here, as PEM; None: it has no list, and gRPC's own one counts."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None:
        return Path(paths.cafile).read_bytes()
    files = [] if paths.capath is None else sorted(Path(paths.capath).glob("*.[0-9]"))
    return b"\n".join(file.read_bytes() for file in files) or None
