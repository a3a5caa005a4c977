"""Worker: a child process that answers JSON commands, in any Python environment."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from server_files import MALLOC

_PACKAGE_PARENT = Path(__file__).resolve().parents[1]
_TAIL_BYTES = 4000


class WorkerError(RuntimeError):
    """The child ended; the message holds the end of what it wrote."""


class Worker:
    """One child process; a context manager that ends it."""

    def __init__(
        self,
        python: Path,
        module: str,
        arguments: Sequence[str],
        log: Path,
        imports: Sequence[Path] = (),
    ) -> None:
        """Start `python -m chattts_bench.workers.MODULE ARGUMENTS`.

        Args:
            python: the interpreter of the child's environment.
            module: file name in workers/, without suffix.
            arguments: the child's command line.
            log: where the child's standard error goes.
            imports: further folders that the child imports from.
        """
        self.log = log
        path = [_PACKAGE_PARENT, *imports]
        # All contestants get the memory pages that the server's processes get.
        settings = {
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "GLIBC_TUNABLES": MALLOC,
        }
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [str(python), "-m", f"{__package__}.workers.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | settings,
            )

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Run a command in the child and return its answer.

        Raises:
            WorkerError: the child ended instead.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            tail = self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
            raise WorkerError(f"{self.log.stem}: the worker ended: {tail}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        # Closing flushes what a child that has ended will not read.
        with contextlib.suppress(BrokenPipeError), self._process:
            pass
