"""One HTTP request and its answer, for a process with a single thread that must never wait."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

OK, NOT_FOUND = 200, 404
NO_ANSWER, TOO_LATE = 0, -1
"""In place of a status: nobody listens or the connection was cut; it is open but silent."""

_RECEIVE_BYTES = 65536
_LENGTH = re.compile(rb"^content-length:\s*(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
_CHUNKED = re.compile(rb"^transfer-encoding:\s*chunked\s*$", re.IGNORECASE | re.MULTILINE)
_LAST_CHUNK = b"0\r\n\r\n"
_SHOWN_CHARACTERS = 300


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    """HTTP status, NO_ANSWER or TOO_LATE."""
    body: str
    """The body as it was sent, chunk sizes included; without an answer, why."""

    def __str__(self) -> str:
        shown = " ".join(self.body.split())[:_SHOWN_CHARACTERS]
        return f"HTTP {self.status}: {shown}" if self.status > 0 else shown


class Exchange:
    """A connection of its own, which the caller may `select` on and has to `step`.

    Args:
        address: IPv4 address and port.
        path: what to ask for.
        limit_s: seconds until it is over without an answer.
        body: JSON to post; empty: GET.
        clock: monotonic time in seconds.
    """

    def __init__(
        self,
        address: tuple[str, int],
        path: str,
        limit_s: float,
        body: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: {address[0]}\r\n"
        head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self._unsent = head.encode() + body.encode()
        self._received = bytearray()
        self._limit_s = limit_s
        self._clock = clock
        self._started_s = clock()
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.connect_ex(address)  # what it fails with shows when the request is sent

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a step gets further."""
        return self._socket.fileno()

    def step(self) -> Answer | None:
        """Do what can be done without waiting; return the answer when the exchange is over."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            while received := self._socket.recv(_RECEIVE_BYTES):
                self._received += received
                if self._is_whole():
                    break
        except BlockingIOError:
            if self._clock() - self._started_s < self._limit_s:
                return None
            return self._end(Answer(TOO_LATE, f"no answer in {self._limit_s:g} s"))
        except OSError as error:
            return self._end(Answer(NO_ANSWER, f"no answer: {error.strerror}"))
        return self._end(self._parse())

    def close(self) -> None:
        """Give the exchange up."""
        self._socket.close()

    def _is_whole(self) -> bool:
        """Say whether the answer has come to its end: a busy Triton closes seconds later."""
        head, separator, body = bytes(self._received).partition(b"\r\n\r\n")
        if not separator:
            return False
        if _CHUNKED.search(head):
            return body.endswith(_LAST_CHUNK)
        length = _LENGTH.search(head)
        return length is not None and len(body) >= int(length[1])

    def _end(self, answer: Answer) -> Answer:
        self.close()
        return answer

    def _parse(self) -> Answer:
        head, _, body = bytes(self._received).partition(b"\r\n\r\n")
        words = head.split(maxsplit=2)
        if len(words) < 2 or not words[1].isdigit():
            return Answer(NO_ANSWER, "no answer: the connection was closed")
        return Answer(int(words[1]), body.decode(errors="replace"))
