"""A running tritonserver, asked over HTTP what it has loaded and told what to load.

Knows nothing of our models. Standard library only.
"""

from __future__ import annotations

import http
import http.client
import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

HEADER = "chattts-control"
"""Carries the secret that the server asks for (embedded/model_control.py)."""
READY, UNLOADING, UNAVAILABLE = "READY", "UNLOADING", "UNAVAILABLE"

_LIMIT_S = 10.0
_FAILURES = (OSError, http.client.HTTPException)


class ControlError(RuntimeError):
    """The server refused, or gave no answer; the message says what."""


class NoServerError(ControlError):
    """Nobody answers there."""


@dataclass(frozen=True, slots=True)
class VersionState:
    """One version of one model, as the server has it."""

    state: str
    """READY, LOADING, UNLOADING or UNAVAILABLE."""
    reason: str
    """Why it is not available; may be empty."""


class TritonControl:
    """Calls of the model repository extension.

    Args:
        http_url: HOST:PORT of the HTTP endpoint.
        metrics_url: HOST:PORT of the metrics endpoint.
        token: the secret; empty where the server asks for none.
        load_limit_s: seconds that a model may take to load.
    """

    def __init__(self, http_url: str, metrics_url: str, token: str, load_limit_s: float) -> None:
        self.http_url = http_url
        self._metrics_url = metrics_url
        self._token = token
        self._load_limit_s = load_limit_s

    def states(self) -> dict[tuple[str, int], VersionState]:
        """Return the state of each model and version that the server has or had loaded.

        Raises:
            NoServerError: nobody answers.
            ControlError: the server refused.
        """
        entries: list[dict[str, Any]] = json.loads(self._post("repository/index", _LIMIT_S))
        return {
            (entry["name"], int(entry["version"])): VersionState(
                entry.get("state", ""), entry.get("reason", "")
            )
            for entry in entries
            if entry.get("version")
        }

    def load(self, model: str) -> None:
        """Let the server read the model's configuration again and load what is new in it.

        Versions that are loaded and did not change stay as they are; those that are not served any
        more are unloaded when their last request has ended, which is not waited for.

        Raises:
            NoServerError: nobody answers.
            ControlError: a version does not load; those that were loaded stay.
        """
        self._post(f"repository/models/{model}/load", self._load_limit_s)

    def gauge(self, name: str, label: str) -> dict[str, float]:
        """Return a gauge's value per value of a label; raises as `samples`."""
        return {labels[label]: value for labels, value in self.samples(name)}

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and the value of each metric of a family.

        Raises:
            NoServerError: nobody answers.
        """
        url = f"http://{self._metrics_url}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=_LIMIT_S) as response:
                text = response.read().decode()
        except _FAILURES as error:
            where = f"no metrics at {self._metrics_url} (--metrics)"
            raise NoServerError(f"{where}: {error}") from error
        found = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.MULTILINE)
        return [
            (dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)) for labels, value in found
        ]

    def _post(self, path: str, limit_s: float) -> bytes:
        request = urllib.request.Request(
            f"http://{self.http_url}/v2/{path}",
            data=b"{}",
            headers={HEADER: self._token} if self._token else {},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=limit_s) as response:
                content: bytes = response.read()
                return content
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.FORBIDDEN:
                wrong = (
                    "this is not the server's secret" if self._token else "it asks for its secret"
                )
                raise ControlError(f"{self.http_url} refuses: {wrong} (--token-file)") from error
            raise ControlError(_refusal(error.read())) from error
        except TimeoutError as error:
            raise ControlError(f"no answer within {limit_s:g} s") from error
        except _FAILURES as error:
            raise NoServerError(f"no server at {self.http_url} (--http): {error}") from error


def _refusal(body: bytes) -> str:
    """Return the first line of Triton's error, without its traces."""
    try:
        message = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        message = body.decode(errors="replace")
    return message.strip().split("\n\nAt:\n")[0]
