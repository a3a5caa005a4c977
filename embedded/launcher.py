"""Run the real tritonserver of the nvidia-pytriton wheel: no Docker, no root, no GPU.

`EmbeddedServer` starts it, waits until all models are ready, says why when they are not, and
leaves no process, shared-memory region or file of its own behind.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import server_traces
from guard_link import GuardLink
from http_exchange import NO_ANSWER, OK
from server_files import (
    EXIT_TIMEOUT_S,
    EmbeddedServerError,
    Ports,
    PrivateFiles,
    WheelServer,
    check_port,
    free_port,
    server_command,
    server_environment,
)
from server_health import HEALTH_BODY, HEALTH_PATH, READY_PATH
from server_log import explain_failure, has_crashed, has_no_voice
from supervisor import KILL, STOP, Job

__all__ = ["EmbeddedServer", "EmbeddedServerError"]

_POLL_INTERVAL_S = 0.05
_START_ATTEMPTS = 3
"""Tries at a start that failed by chance: a free port that another process took first, or a crash
of server 2.51 while its Python models load on a starved machine (see docs/decisions.md)."""
_HEALTH_LIMIT_S = 5.0
_PORT_TAKEN = "already in use"


class _CrashError(EmbeddedServerError):
    """The server process crashed."""


class EmbeddedServer:
    """One tritonserver process tree, as a context manager or with `start` and `stop`."""

    def __init__(
        self,
        model_repository: str | os.PathLike[str],
        *,
        host: str = "127.0.0.1",
        http_port: int = 0,
        grpc_port: int = 0,
        metrics_port: int = 0,
        log_dir: str | os.PathLike[str] | None = None,
        start_timeout_s: float = 300.0,
        exit_timeout_s: int = EXIT_TIMEOUT_S,
        restart: bool = False,
        extra_args: Sequence[str] = (),
    ) -> None:
        """Only take the settings; `start` does the work.

        Args:
            model_repository: folder with one folder per model.
            host: IPv4 address to listen on; 0.0.0.0 lets other machines in.
            http_port: 0 picks a free port, as for the other two.
            grpc_port: see `http_port`.
            metrics_port: see `http_port`.
            log_dir: keeps tritonserver.log; default: a folder that goes away with the server.
            start_timeout_s: seconds until all models must be ready.
            exit_timeout_s: seconds that running requests get to finish in `stop`.
            restart: once it has been well, start it again when one of its processes has died or
                hangs, or when it has ended by itself; without, callers of a dead model wait.
            extra_args: further tritonserver flags, which win over the built-in ones.
        """
        self.model_repository = Path(model_repository).resolve()
        self.host = host
        self.log_file: Path | None = None
        self.control_token_file: Path | None = None
        self.ports: Ports | None = None
        self._wanted = Ports(http=http_port, grpc=grpc_port, metrics=metrics_port)
        self._log_dir = None if log_dir is None else Path(log_dir).resolve()
        self._start_timeout_s = start_timeout_s
        self._exit_timeout_s = exit_timeout_s
        self._restart = restart
        self._extra_args = list(extra_args)
        self._log_offset = 0
        self._guard: GuardLink | None = None

    def __enter__(self) -> EmbeddedServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Process id of tritonserver, another one after a restart; None if it does not run."""
        return None if self._guard is None else self._guard.server_pid

    @property
    def http_url(self) -> str:
        """HOST:PORT for tritonclient.http."""
        return f"{self._client_host}:{self._running_ports.http}"

    @property
    def grpc_url(self) -> str:
        """HOST:PORT for tritonclient.grpc and chattts_client."""
        return f"{self._client_host}:{self._running_ports.grpc}"

    @property
    def metrics_url(self) -> str:
        """Where Prometheus scrapes, with scheme and path."""
        return f"http://{self._client_host}:{self._running_ports.metrics}/metrics"

    @property
    def _client_host(self) -> str:
        return "127.0.0.1" if self.host == "0.0.0.0" else self.host

    @property
    def _running_ports(self) -> Ports:
        if self.ports is None:
            raise EmbeddedServerError("the server is not running")
        return self.ports

    def start(self) -> None:
        """Start the server and wait until every model is ready.

        Raises:
            EmbeddedServerError: with the reason from the server's log; nothing is left running.
        """
        if self._guard is not None:
            raise EmbeddedServerError("the server is running already")
        if not self.model_repository.is_dir():
            raise EmbeddedServerError(f"no model repository at {self.model_repository}")
        if any(character.isspace() for character in str(self.model_repository)):
            reason = "server 2.51 cannot serve from a path with a space"
            raise EmbeddedServerError(f"{self.model_repository}: {reason}")
        if not any(self.model_repository.glob("*/config.pbtxt")):
            raise EmbeddedServerError(f"no model in {self.model_repository}")
        server_traces.remove_stale_traces()
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                self._start_once()
            except EmbeddedServerError as error:
                is_race = _PORT_TAKEN in str(error) and 0 in asdict(self._wanted).values()
                is_by_chance = is_race or isinstance(error, _CrashError)
                if not is_by_chance or attempt == _START_ATTEMPTS:
                    raise
            else:
                return

    def _start_once(self) -> None:
        ports = self._choose_ports()
        try:
            self._launch(ports)
            self._wait_until_ready(time.monotonic() + self._start_timeout_s)
        except OSError as error:
            self.kill()
            raise EmbeddedServerError(f"cannot prepare the server: {error}") from error
        except BaseException:
            self.kill()
            raise

    def _choose_ports(self) -> Ports:
        wanted = asdict(self._wanted)
        names_by_port: dict[int, list[str]] = {}
        for name, port in wanted.items():
            if port:
                names_by_port.setdefault(port, []).append(f"--{name}-port")
                check_port(self.host, port, f"--{name}-port")
        for port, names in names_by_port.items():
            if len(names) > 1:
                both = " and ".join(names)
                raise EmbeddedServerError(f"{both} are {port}: each needs its own, or 0")
        return Ports(**{name: port or free_port(self.host) for name, port in wanted.items()})

    def _launch(self, ports: Ports) -> None:
        """Start the guard, lay out the private files under its id, and hand it the job."""
        wheel = WheelServer.find()
        environment = server_environment(wheel, os.environ)
        self._guard = guard = GuardLink()
        files = PrivateFiles(server_traces.private_directory(guard.pid))
        files.create(wheel)
        self._open_log(files.root)
        self.control_token_file = files.control_token
        command = server_command(
            wheel,
            files,
            model_repository=self.model_repository,
            host=self.host,
            ports=ports,
            region_prefix=server_traces.run_name(guard.pid),
            extra_args=[f"--exit-timeout-secs={self._exit_timeout_s}", *self._extra_args],
        )
        job = Job(
            command=command,
            environment=environment,
            working_directory=str(files.working_directory),
            log_file=str(self.log_file),
            host=self._client_host,
            http_port=ports.http,
            metrics_port=ports.metrics,
            exit_timeout_s=self._exit_timeout_s,
            restart=self._restart,
        )
        guard.give(job)
        self.ports = ports

    def _open_log(self, private: Path) -> None:
        folder = self._log_dir or private
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / "tritonserver.log"
        self.log_file.touch()
        self._log_offset = self.log_file.stat().st_size

    def _wait_until_ready(self, deadline: float) -> None:
        while not (self._is_well() and self.is_ready()):
            if self.pid is None or has_no_voice(self.log()):
                self._fail("the server did not start")
            if time.monotonic() > deadline:
                self._fail(f"the server was not ready after {self._start_timeout_s:g} s")
            time.sleep(_POLL_INTERVAL_S)

    def _fail(self, what: str) -> NoReturn:
        log = self.log()
        is_crash = has_crashed(log) and not has_no_voice(log)
        kind = _CrashError if is_crash else EmbeddedServerError
        raise kind(f"{what}: {explain_failure(log)}")

    def is_ready(self) -> bool:
        """Ask the server's readiness endpoint; False when it does not answer or does not run.

        Release 2.51 says True as long as all models are loaded, dead or not.
        """
        return self._status("GET", READY_PATH, None) == OK

    def is_healthy(self) -> bool:
        """Let the model `chattts` ask the token model and the vocoder; False without good answers.

        The check does not count as a running request, and works however many there are.
        """
        return self._status("POST", HEALTH_PATH, HEALTH_BODY) == OK

    def _is_well(self) -> bool:
        """Whether the guard has found that the first speech has ended; it watches all processes."""
        return self._guard is not None and self._guard.is_well

    def _status(self, method: str, path: str, body: str | None) -> int:
        """Ask; return the HTTP status, NO_ANSWER if the server does not answer or does not run."""
        if self.ports is None:
            return NO_ANSWER
        connection = http.client.HTTPConnection(self.http_url, timeout=_HEALTH_LIMIT_S)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return NO_ANSWER
        finally:
            connection.close()

    def log(self) -> str:
        """Return what this server has written so far; empty after `stop` without a log_dir."""
        if self.log_file is None or not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as file:
            file.seek(self._log_offset)
            return file.read().decode(errors="replace")

    def wait(self) -> NoReturn:
        """Block until the server ends by itself and is not started again.

        Raises:
            EmbeddedServerError: always, since only `stop` ends it in order.
        """
        if self._guard is None:
            raise EmbeddedServerError("the server is not running")
        self._fail(f"the server ended by itself with exit code {self._guard.wait()}")

    def stop(self) -> int | None:
        """Let running requests finish, end the server, and remove its traces.

        The model `chattts` refuses requests that arrive meanwhile with UNAVAILABLE; after
        `exit_timeout_s` the running ones are cut off. Unloading takes about a second per Python
        model instance; `kill` where nothing runs.
        A second interrupt while it waits ends the server at once.

        Returns:
            The server's exit code (0 after an orderly end), None if it was not running.
        """
        try:
            return self._end(STOP)
        except KeyboardInterrupt:
            self.kill()
            raise

    def kill(self) -> int | None:
        """End the server at once and remove its traces; returns as `stop` does."""
        return self._end(KILL)

    def _end(self, order: bytes) -> int | None:
        if self._guard is None:
            return None
        code = self._guard.end(order)
        self._guard = self.ports = None
        return code
