"""Run a real Prometheus with the rules of monitoring/, which scrapes a server on this machine."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

PROGRAM = shutil.which("prometheus")
"""None where it is not installed; Debian's package of that name has it."""
MONITORING = Path(__file__).resolve().parents[2] / "monitoring"

_LIMIT_S = 30.0
_POLL_INTERVAL_S = 0.1


@dataclass(frozen=True)
class Series:
    """One line of the answer to a query."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]
    """Time in seconds of the epoch, and value; NaN and infinite ones are left out."""


class Prometheus:
    """One Prometheus process, as a context manager; its data go away with it.

    Args:
        target: HOST:PORT of the server's metrics endpoint.
        interval_s: whole seconds between two scrapes, and between two evaluations of the rules.
    """

    def __init__(self, target: str, interval_s: int = 1) -> None:
        self._target = target
        self._interval_s = interval_s
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def __enter__(self) -> Prometheus:
        if PROGRAM is None:
            raise FileNotFoundError("no prometheus; Debian: apt-get install prometheus")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        self._url = f"http://{address}"
        self._folder = folder = Path(tempfile.mkdtemp(prefix="chattts-prometheus-"))
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(self._config(address)), encoding="utf-8")
        command = [PROGRAM, f"--config.file={config}", f"--web.listen-address={address}"]
        command += [f"--storage.tsdb.path={folder / 'data'}", "--log.level=error"]
        self._process = subprocess.Popen(command, cwd=folder)
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _config(self, address: str) -> dict[str, Any]:
        """Return monitoring/prometheus.yml, other targets, a shorter interval, nobody told."""
        path = MONITORING / "prometheus.yml"
        config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        interval = f"{self._interval_s}s"
        config["global"] = dict.fromkeys(config["global"], interval)
        config["rule_files"] = [str(MONITORING / pattern) for pattern in config["rule_files"]]
        del config["alerting"]
        server, itself = config["scrape_configs"]
        server["static_configs"] = [{"targets": [self._target]}]
        itself["static_configs"] = [{"targets": [address]}]
        return config

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _LIMIT_S
        while True:
            try:
                with urllib.request.urlopen(f"{self._url}/-/ready", timeout=_LIMIT_S):
                    return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("prometheus did not start; it has said why") from error
            time.sleep(_POLL_INTERVAL_S)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def query(self, expr: str) -> list[Series]:
        """Return what an expression gives now.

        Raises:
            ValueError: Prometheus refuses it; with its reason.
        """
        found = self._get("query", query=expr)
        if found["resultType"] == "scalar":
            return [_series({}, [found["result"]])]
        return [_series(one["metric"], [one["value"]]) for one in found["result"]]

    def query_range(self, expr: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """Return an expression's values at times of the epoch, `step_s` apart.

        Raises:
            ValueError: Prometheus refuses it; with its reason.
        """
        found = self._get("query_range", query=expr, start=start_s, end=end_s, step=step_s)
        return [_series(one["metric"], one["values"]) for one in found["result"]]

    def rule_errors(self) -> dict[str, str]:
        """Return the last error of each rule that has one, by name."""
        groups = self._get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}

    def _get(self, what: str, **parameters: str | float) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=_LIMIT_S) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error


def _series(labels: dict[str, str], points: list[list[Any]]) -> Series:
    read = ((float(when), float(value)) for when, value in points)
    return Series(labels, tuple(point for point in read if math.isfinite(point[1])))
