"""The steps of a release: load a version beside the others, switch, let the old one end, unload it.

At every moment each served front has its token model and vocoder, in the files and in the server: a
server that dies and starts again in the middle serves what it can, and the same command goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import stamp
from files import write_json
from repository import (
    FRONT,
    MODELS,
    PYTHON_MODELS,
    TOKEN_MODEL,
    UNARY,
    VOCODER,
    RepositoryError,
    built_versions,
    front_voices,
    serve,
    served,
    voice_names,
)
from triton_control import (
    READY,
    UNAVAILABLE,
    ControlError,
    NoServerError,
    TritonControl,
    VersionState,
)

ORDER = (TOKEN_MODEL, VOCODER, FRONT, UNARY)
"""Each model of a version calls those before it: they are loaded in this order and released in the
reverse one."""
HISTORY_FILE = "releases.json"
RUNNING_METRIC = "chattts_running_requests"
INFO_METRIC = "chattts_info"

_POLL_S = 0.1


class ReleaseError(RuntimeError):
    """What was asked for was refused or is not finished; the message says what is served."""


class Release:
    """Changes what a repository serves, and the running server with it.

    Args:
        repository: the folder that the server reads.
        server: None: no server runs, only the files change.
        drain_limit_s: seconds that running requests get to finish with the old version.
        say: is told each step.
    """

    def __init__(
        self,
        repository: Path,
        server: TritonControl | None,
        drain_limit_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._repository = repository
        self._server = server
        self._drain_limit_s = drain_limit_s
        self._say = say

    def publish(self, version: int, keep: bool) -> None:
        """Serve `version`, and nothing else unless `keep`.

        Raises:
            ReleaseError: the version is refused, or an old one is not released in time.
            RepositoryError: the version is incomplete, or a configuration cannot be read.
            ControlError: the server gives no answer.
        """
        self._publish(version, keep, self._remember)

    def _publish(
        self, version: int, keep: bool, remember: Callable[[int, Collection[int]], None]
    ) -> None:
        check_complete(self._repository, version)
        before = {model: served(self._repository, model) for model in ORDER}
        if self._server:
            # a server that cannot be reached is found before anything is changed
            self._server.states()
            self._server.gauge(RUNNING_METRIC, "version")
        self._say_memory(version, before)
        self._say_lost_voices(version, before[FRONT])
        try:
            for model in ORDER:
                self._apply(model, {*before[model], version})
                self._check_ready(model, {*before[model], version})
        except BaseException as error:
            # also a release that somebody interrupts leaves what was there
            self._restore(before)
            if isinstance(error, ControlError):
                kept = _list(before[FRONT]) or "nothing"
                then = "when it starts again" if isinstance(error, NoServerError) else "as before"
                message = f"version {version} is refused, {kept} is served {then}: {error}"
                raise ReleaseError(message) from error
            raise
        remember(version, before[FRONT])
        if keep:
            highest = max(before[FRONT], default=version)
            self._say(
                f"served: {_list({*before[FRONT], version})}; a request that names no version gets "
                f"{max(highest, version)}"
            )
            return
        self._shrink(dict.fromkeys(ORDER, [version]))
        self._say(f"version {version} is served alone")

    def rollback(self) -> None:
        """Publish the version that was served before the last publish; twice is an error.

        Raises:
            ReleaseError: there is none; and as `publish`.
        """
        previous = self._history().get("previous")
        if not isinstance(previous, int):
            raise ReleaseError(
                f"{self._repository}: nothing to go back to since the first version or the last "
                "rollback; `publish N` serves any version that is built"
            )
        self._publish(previous, keep=False, remember=lambda *_: None)
        # only now, so that the same command goes on with a rollback that was not finished
        write_json(self._repository / HISTORY_FILE, {})

    def status(self) -> list[dict[str, object]]:
        """Return what is known of each version, in order.

        Raises:
            ControlError: the server gives no answer.
            RepositoryError: a configuration cannot be read.
        """
        states = self._server.states() if self._server else {}
        running, loaded = self._running(), self._loaded(states)
        configured = {model: served(self._repository, model) for model in MODELS}
        versions = {*built_versions(self._repository), *(number for _, number in states)}
        versions.update(*configured.values())
        return [
            {
                "version": version,
                "checkpoint": _checkpoint_name(self._repository, version),
                "loaded": loaded.get(version, ""),
                "served": all(version in configured[model] for model in MODELS),
                "models": {
                    model: states[model, version].state
                    for model in MODELS
                    if (model, version) in states
                },
                "running_requests": running.get(str(version), 0.0),
            }
            for version in sorted(versions)
        ]

    def _shrink(self, wanted: Mapping[str, Collection[int]]) -> None:
        """Serve fewer versions: each model goes when those that call it have ended.

        Raises:
            ReleaseError: one has not ended in time.
            ControlError: the server gives no answer.
        """
        for model in reversed(ORDER):
            self._apply(model, wanted[model])
            if left := self._others_at_work(model, wanted[model]):
                self._say(f"{model}: new requests get {_list(wanted[model])}, {_list(left)} ends")
            self._wait_until_gone(model, wanted[model])

    def _apply(self, model: str, versions: Collection[int]) -> None:
        """Write what is served of a model and let the server follow."""
        serve(self._repository, model, versions)
        if self._server:
            self._server.load(model)

    def _check_ready(self, model: str, versions: Collection[int]) -> None:
        if self._server is None:
            return
        states = self._server.states()
        for version in versions:
            found = states.get((model, version))
            if found is None or found.state != READY:
                why = found.reason if found else "does the server serve this repository?"
                raise ControlError(f"{model} {version} is not loaded: {why}")
        self._say(f"{model} {_list(versions)}: ready")

    def _restore(self, before: Mapping[str, Collection[int]]) -> None:
        """Serve what was served before the failure."""
        try:
            self._shrink(before)
        except (ReleaseError, ControlError) as error:
            self._say(f"not all of it is unloaded: {error}")
            # what starts again must not serve it
            for model in ORDER:
                serve(self._repository, model, before[model])

    def _wait_until_gone(self, model: str, versions: Collection[int]) -> None:
        """Wait until no other version of a model is at work.

        Raises:
            ReleaseError: the limit has passed.
        """
        deadline = time.monotonic() + self._drain_limit_s
        while left := self._others_at_work(model, versions):
            if time.monotonic() > deadline:
                raise ReleaseError(
                    f"{model} {_list(left)} gets no new requests, but still works after "
                    f"{self._drain_limit_s:g} s; the same command goes on"
                )
            time.sleep(_POLL_S)

    def _others_at_work(self, model: str, versions: Collection[int]) -> list[int]:
        """Return the other versions of a model that are there, or whose front still speaks.

        A version whose files changed, by a voice that came, is loaded anew at the next release; its
        front of before then ends its streams unseen, but for the gauge.
        """
        states = self._server.states() if self._server else {}
        found = {
            number
            for (name, number), state in states.items()
            if name == model and state.state != UNAVAILABLE
        }
        if model == FRONT:
            found |= {int(number) for number, value in self._running().items() if value > 0}
        return sorted(found - set(versions))

    def _running(self) -> dict[str, float]:
        """Return the running requests by version."""
        return self._server.gauge(RUNNING_METRIC, "version") if self._server else {}

    def _loaded(self, states: Mapping[tuple[str, int], VersionState]) -> dict[int, str]:
        """Return what each ready front was loaded from: the folder may hold something else now."""
        if self._server is None:
            return {}
        ready = {
            version
            for (model, version), found in states.items()
            if model == FRONT and found.state == READY
        }
        return {
            int(labels["version"]): f"{labels['checkpoint']} ({labels['precision']})"
            for labels, value in self._server.samples(INFO_METRIC)
            if value and int(labels["version"]) in ready
        }

    def _say_memory(self, version: int, before: dict[str, list[int]]) -> None:
        if version in before[FRONT]:
            return
        old = sum(_bytes(self._repository, number) for number in before[FRONT])
        new = _bytes(self._repository, version)
        self._say(
            f"weights: {old / 1e6:.0f} MB served, {new / 1e6:.0f} MB beside them until the old are "
            "released, and the memory of what each version speaks"
        )

    def _say_lost_voices(self, version: int, before: Collection[int]) -> None:
        """Name the voices that requests may ask for now and not of the new version."""
        now = set[str]().union(*(voice_names(self._repository, number) for number in before))
        if lost := sorted(now - voice_names(self._repository, version)):
            self._say(
                f"voices that version {version} does not have: {', '.join(lost)}; copy their files "
                f"into {front_voices(version)} to keep them"
            )

    def _history(self) -> dict[str, object]:
        try:
            content = json.loads((self._repository / HISTORY_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _remember(self, version: int, before: Collection[int]) -> None:
        """Write what a rollback returns to; publishing the same again changes nothing."""
        others = [number for number in before if number != version]
        if others:
            write_json(self._repository / HISTORY_FILE, {"previous": max(others)})


def check_complete(repository: Path, version: int) -> None:
    """Check that a version's code is there and its weights are as they were built.

    Raises:
        RepositoryError: naming the first file at fault.
    """
    where = f"{repository}: version {version}"
    damage = stamp.damage(repository, stamp.read_stamp(repository, version))
    if damage:
        built = _list(built_versions(repository)) or "none"
        raise RepositoryError(f"{where}: {damage}; built versions: {built}")
    for model in PYTHON_MODELS:
        code = f"{model}/{version}/model.py"
        if not (repository / code).is_file():
            raise RepositoryError(f"{where}: {code} is missing")


def _bytes(repository: Path, version: int) -> int:
    outputs = stamp.read_stamp(repository, version).get("outputs", {})
    return sum(entry["bytes"] for entry in outputs.values())


def _checkpoint_name(repository: Path, version: int) -> str:
    inputs = stamp.read_stamp(repository, version).get("inputs", {})
    return f"{inputs['name']} ({inputs['precision']}, {inputs['runner']})" if inputs else ""


def _list(versions: Collection[int]) -> str:
    return ", ".join(str(version) for version in sorted(versions))
