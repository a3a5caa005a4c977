"""The steps of a release on a scripted server: what is served at each moment, whatever fails."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import release
import repository as layout
from build_runs import run
from conftest import TINY_CHECKPOINT
from release_steps import ORDER, Release, ReleaseError
from repository import FRONT, MODELS, TOKEN_MODEL, UNARY, VOCODER, RepositoryError
from triton_control import ControlError, NoServerError, TritonControl, VersionState
from voice_samples import voice, write

NUM_LOADS = 8
"""Of a release: each model once to load the new version, once to let the old one go."""


class FakeServer(TritonControl):
    """Loads what the configurations say, unless `refuse` raises, and keeps unloaded ones a while.

    At every load it checks that no front is without the models that it calls.
    """

    def __init__(self, repository: Path) -> None:
        super().__init__("unused:0", "unused:0", "", 1.0)
        self.repository = repository
        self.refuse: Callable[[str, int], None] = lambda model, version: None
        self.running: dict[str, float] = {}
        self.loaded = {1: "fp32", 2: "fp32"}
        self.loads: list[tuple[str, list[int]]] = []
        self.on_load: Callable[[int], None] = lambda number: None
        self.num_polls_to_end = 2
        self.ready = {model: set(layout.served(repository, model)) for model in MODELS}
        self._ending: dict[tuple[str, int], int] = {}

    def states(self) -> dict[tuple[str, int], VersionState]:
        found = {
            (model, version): VersionState("READY", "")
            for model, versions in self.ready.items()
            for version in versions
        }
        for key, polls in self._ending.items():
            state = "UNLOADING" if polls > 0 else "UNAVAILABLE"
            found.setdefault(key, VersionState(state, "unloaded"))
            self._ending[key] -= 1
        return found

    def load(self, model: str) -> None:
        wanted = set(layout.served(self.repository, model))
        self.loads.append((model, sorted(wanted)))
        self.on_load(len(self.loads))
        for version in sorted(wanted - self.ready[model]):
            self.refuse(model, version)
        for version in self.ready[model] - wanted:
            self._ending[model, version] = self.num_polls_to_end
        self.ready[model] = wanted
        self._check_chain()

    def gauge(self, name: str, label: str) -> dict[str, float]:
        """Requests that run, and end after a few looks."""
        running = dict(self.running)
        self.running = {version: max(0.0, number - 1) for version, number in running.items()}
        return running

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """What each front was loaded from."""
        return [
            ({"version": str(version), "checkpoint": "tiny", "precision": precision}, 1.0)
            for version, precision in self.loaded.items()
        ]

    def _at_work(self, model: str) -> set[int]:
        ending = {
            version
            for (name, version), polls in self._ending.items()
            if polls > 0 and name == model
        }
        return self.ready[model] | ending

    def _check_chain(self) -> None:
        assert self.ready[FRONT], "nothing is served"
        assert self._at_work(UNARY) <= self._at_work(FRONT)
        for behind in (TOKEN_MODEL, VOCODER):
            assert self._at_work(FRONT) <= self.ready[behind]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions 1 and 2, 1 is served."""
    folder = tmp_path_factory.mktemp("release") / "repository"
    assert run(folder) == 0
    assert run(folder, TINY_CHECKPOINT, "--version", "2") == 0
    return folder


@pytest.fixture
def repository(built: Path, tmp_path: Path) -> Path:
    """A copy whose files are links: what changes must be a new file, as atomic writes make it."""
    return Path(shutil.copytree(built, tmp_path / "repository", copy_function=os.link))


@pytest.fixture
def server(repository: Path) -> FakeServer:
    return FakeServer(repository)


@pytest.fixture
def steps(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> Release:
    monkeypatch.setattr("release_steps._POLL_S", 0.0)
    return Release(server.repository, server, drain_limit_s=5.0, say=print)


def served(repository: Path) -> list[list[int]]:
    return [layout.served(repository, model) for model in MODELS]


def everywhere(*versions: int) -> list[list[int]]:
    return [list(versions)] * len(MODELS)


def refuse(model: str, version: int) -> Callable[[str, int], None]:
    def check(loaded_model: str, loaded_version: int) -> None:
        if (loaded_model, loaded_version) == (model, version):
            raise ControlError("warm-up: not finite")

    return check


def test_publish_goes_from_the_back_to_the_front_and_releases_the_other_way(
    steps: Release, server: FakeServer
) -> None:
    steps.publish(2, keep=False)
    grown = [(model, [1, 2]) for model in ORDER]
    assert server.loads == grown + [(model, [2]) for model in reversed(ORDER)]
    assert served(server.repository) == everywhere(2)


def test_a_second_rollback_does_not_bring_the_bad_version_back(
    steps: Release, server: FakeServer
) -> None:
    steps.publish(2, keep=False)
    steps.rollback()
    assert served(server.repository) == everywhere(1)
    with pytest.raises(ReleaseError, match="nothing to go back to"):
        steps.rollback()
    assert served(server.repository) == everywhere(1)
    steps.publish(2, keep=False)
    steps.rollback()
    assert served(server.repository) == everywhere(1)


def test_a_rollback_that_was_not_finished_goes_on(steps: Release, server: FakeServer) -> None:
    steps.publish(2, keep=False)
    server.num_polls_to_end = 10**9
    hasty = Release(server.repository, server, drain_limit_s=0.05, say=print)
    with pytest.raises(ReleaseError, match="the same command goes on"):
        hasty.rollback()
    server.num_polls_to_end = 2
    server._ending.clear()
    steps.rollback()
    assert served(server.repository) == everywhere(1)


def test_rollback_needs_a_publish(steps: Release) -> None:
    with pytest.raises(ReleaseError, match="nothing to go back to"):
        steps.rollback()


def test_keep_serves_both(
    steps: Release, server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    steps.publish(2, keep=True)
    assert served(server.repository) == everywhere(1, 2)
    assert "a request that names no version gets 2" in capsys.readouterr().out
    steps.publish(2, keep=False)
    assert served(server.repository) == everywhere(2)
    steps.rollback()
    assert served(server.repository) == everywhere(1)


@pytest.mark.parametrize("model", ORDER)
def test_a_refused_version_changes_nothing(model: str, steps: Release, server: FakeServer) -> None:
    server.refuse = refuse(model, 2)
    with pytest.raises(ReleaseError, match="2 is refused, 1 is served as before: warm-up"):
        steps.publish(2, keep=False)
    assert served(server.repository) == everywhere(1)
    assert all(versions == {1} for versions in server.ready.values())
    server.refuse = lambda model, version: None
    steps.publish(2, keep=False)


@pytest.mark.parametrize("number", range(1, NUM_LOADS + 1))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), NoServerError("no server")], ids=type)
def test_an_end_at_any_step_leaves_files_that_serve(
    number: int, error: BaseException, steps: Release, server: FakeServer
) -> None:
    """A server that starts again finds each front with its models, and the command goes on."""

    def fail(load: int) -> None:
        if load == number:
            raise error

    server.on_load = fail
    with pytest.raises((KeyboardInterrupt, ControlError, ReleaseError)):
        steps.publish(2, keep=False)
    restarted = FakeServer(server.repository)
    assert restarted.ready[FRONT] in ({1}, {2}, {1, 2})
    assert restarted.ready[UNARY] <= restarted.ready[FRONT]
    assert restarted.ready[FRONT] <= restarted.ready[TOKEN_MODEL] & restarted.ready[VOCODER]
    Release(server.repository, restarted, 5.0, print).publish(2, keep=False)
    assert served(server.repository) == everywhere(2)


def test_an_old_version_that_does_not_end_is_said_and_the_command_goes_on(
    steps: Release, server: FakeServer
) -> None:
    server.num_polls_to_end = 10**9
    hasty = Release(server.repository, server, drain_limit_s=0.05, say=print)
    with pytest.raises(ReleaseError, match="chattts_unary 1 gets no new requests, but still works"):
        hasty.publish(2, keep=False)
    assert server.ready[TOKEN_MODEL] == {1, 2}
    server.num_polls_to_end = 2
    server._ending.clear()
    steps.publish(2, keep=False)
    assert served(server.repository) == everywhere(2)


def test_a_server_of_another_repository_is_noticed(steps: Release, server: FakeServer) -> None:
    server.load = lambda model: None  # type: ignore[method-assign]
    with pytest.raises(ReleaseError, match="does the server serve this repository"):
        steps.publish(2, keep=False)
    assert served(server.repository) == everywhere(1)


def test_a_damaged_version_is_not_even_tried(steps: Release, server: FakeServer) -> None:
    graph = server.repository / layout.vocoder_file(2)
    content = graph.read_bytes()
    graph.unlink()
    graph.write_bytes(content[:-1])
    with pytest.raises(RepositoryError, match="model.onnx is not as it was built"):
        steps.publish(2, keep=False)
    (server.repository / "chattts_unary" / "1" / "model.py").unlink()
    with pytest.raises(RepositoryError, match=r"chattts_unary/1/model\.py is missing"):
        steps.publish(1, keep=False)
    never = "it was never built, or not to its end; built versions: 1, 2"
    with pytest.raises(RepositoryError, match=never):
        steps.publish(3, keep=False)
    assert not server.loads


def test_status_tells_files_server_and_load(steps: Release, server: FakeServer) -> None:
    server.running = {"1": 3.0}
    first, second = steps.status()
    assert (first["version"], first["served"], first["running_requests"]) == (1, True, 3.0)
    assert first["models"] == dict.fromkeys(MODELS, "READY")
    assert first["checkpoint"] == "tiny (fp32, onnx)"
    assert (second["version"], second["served"], second["models"]) == (2, False, {})
    assert (first["loaded"], second["loaded"]) == ("tiny (fp32)", "")


def test_status_says_what_is_loaded_where_the_folder_holds_something_else(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "TritonControl", lambda *_: server)
    status = ["status", "--repository", str(server.repository)]
    assert release.main(status) == 0
    assert "loaded" not in capsys.readouterr().out
    server.loaded = {1: "int8"}
    assert release.main(status) == 0
    assert "1  tiny (fp32, onnx)  served\n   loaded is tiny (int8)" in capsys.readouterr().out


def test_the_memory_of_a_new_version_is_said(
    steps: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    steps.publish(1, keep=False)
    assert "MB" not in capsys.readouterr().out
    steps.publish(2, keep=False)
    assert "MB beside them" in capsys.readouterr().out


def test_a_metric_is_read_with_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'# HELP a b\na{version="2",checkpoint="x y"} 1\na_b{version="3"} 1\n'
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(text))
    server = TritonControl("unused:0", "unused:0", "", 1.0)
    assert server.samples("a") == [({"version": "2", "checkpoint": "x y"}, 1.0)]
    assert server.gauge("a", "version") == {"2": 1.0}


def test_the_option_of_a_missing_endpoint_is_named() -> None:
    with pytest.raises(NoServerError, match=r"no metrics at 127\.0\.0\.1:9 \(--metrics\)"):
        TritonControl("unused:0", "127.0.0.1:9", "", 1.0).gauge("a", "version")


def test_without_a_server_the_files_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["publish", "2", "--repository", str(repository), "--offline"]) == 0
    assert served(repository) == everywhere(2)
    assert release.main(["rollback", "--repository", str(repository), "--offline"]) == 0
    assert served(repository) == everywhere(1)
    capsys.readouterr()
    assert release.main(["status", "--repository", str(repository), "--offline", "--json"]) == 0
    assert [row["served"] for row in json.loads(capsys.readouterr().out)] == [True, False]


def test_an_unreachable_server_changes_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["publish", "2", "--repository", str(repository), "--http", "127.0.0.1:9"]
    assert release.main(arguments) == 1
    assert "no server at 127.0.0.1:9" in capsys.readouterr().err
    assert served(repository) == everywhere(1)


def test_one_release_at_a_time(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with layout.locked(repository, ""):
        assert release.main(["publish", "2", "--repository", str(repository), "--offline"]) == 1
    assert "another release is at work" in capsys.readouterr().err


def test_voices_that_a_new_version_lacks_are_named(
    repository: Path, steps: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / layout.front_voices(1), voice("anna"))
    write(repository / layout.front_voices(1), voice("bo"))
    write(repository / layout.front_voices(2), voice("bo"))
    steps.publish(2, keep=False)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("voices")]
    assert line == (
        "voices that version 2 does not have: anna; copy their files into "
        "chattts/2/weights/voices to keep them"
    )


def test_models_behind_a_front_that_still_speaks_stay(steps: Release, server: FakeServer) -> None:
    server.running = {"1": 3.0}
    steps.publish(2, keep=False)
    assert server.running == {"1": 0.0}
    assert server.ready == {model: {2} for model in ORDER}
