"""What the embedded server is assembled from."""

from __future__ import annotations

import importlib.machinery
import socket
import sys
from pathlib import Path

import pytest
import server_files
from conftest import ROOT
from server_files import (
    MALLOC,
    EmbeddedServerError,
    Ports,
    PrivateFiles,
    WheelServer,
    check_port,
    free_port,
    interpreter_directory,
    server_command,
    server_environment,
)


@pytest.fixture
def wheel(tmp_path: Path) -> WheelServer:
    """A wheel whose parts are empty files."""
    backend = tmp_path / "wheel" / "python"
    backend.mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py", "stub", "tritonserver"):
        (backend / name).touch()
    return WheelServer(
        binary=backend / "tritonserver",
        python_backend=backend,
        stub=backend / "stub",
        libraries=tmp_path / "wheel",
    )


def test_wheel_without_package_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbeddedServerError, match="pip install"):
        WheelServer.find()


def test_unknown_python_version_lists_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tritonserver" / "python_backend_stubs" / "3.8").mkdir(parents=True)
    spec = importlib.machinery.ModuleSpec("pytriton", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    with pytest.raises(EmbeddedServerError, match=r"no stub for Python 3\.\d+, only 3\.8"):
        WheelServer.find()


def test_private_files_are_for_this_user_and_stay_inside(
    wheel: WheelServer, tmp_path: Path
) -> None:
    files = PrivateFiles(tmp_path / "private")
    files.create(wheel)
    assert files.root.stat().st_mode & 0o777 == 0o700
    assert list(files.working_directory.iterdir()) == []
    library = files.backends / "python" / "libtriton_python.so"
    assert library.is_file()
    assert not library.is_symlink()
    assert (files.backends / "onnxruntime" / "model.py").is_file()


def test_environment_has_own_libraries_and_interpreter_first(wheel: WheelServer) -> None:
    inherited = {"PATH": "/bin", "LD_LIBRARY_PATH": "/other", "PYTHONPATH": "x", "HOME": "/h"}
    environment = server_environment(wheel, inherited)
    assert environment["PATH"].split(":") == [str(Path(sys.executable).parent), "/bin"]
    libraries = environment["LD_LIBRARY_PATH"].split(":")
    assert libraries[-2:] == [str(wheel.libraries), "/other"]
    assert environment["HOME"] == "/h"
    assert "PYTHONPATH" not in environment
    assert environment["GLIBC_TUNABLES"] == MALLOC


def test_the_callers_malloc_settings_are_kept(wheel: WheelServer) -> None:
    inherited = {"GLIBC_TUNABLES": "glibc.malloc.check=1"}
    environment = server_environment(wheel, inherited)
    assert environment["GLIBC_TUNABLES"] == f"{MALLOC}:glibc.malloc.check=1"


def test_the_container_asks_for_huge_pages_too() -> None:
    dockerfile = (ROOT / "build" / "Dockerfile").read_text(encoding="utf-8")
    assert f"ENV GLIBC_TUNABLES={MALLOC}\n" in dockerfile


def test_interpreter_without_its_own_python3_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "python3").touch()
    (tmp_path / "python3.11").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3.11"))
    with pytest.raises(EmbeddedServerError, match="use a virtual environment"):
        interpreter_directory()


def test_extra_flags_come_last(wheel: WheelServer, tmp_path: Path) -> None:
    command = server_command(
        wheel,
        PrivateFiles(tmp_path),
        model_repository=Path("/models"),
        host="127.0.0.1",
        ports=Ports(http=1, grpc=2, metrics=3),
        region_prefix="prefix-",
        extra_args=["--log-verbose=1"],
    )
    assert command[-1] == "--log-verbose=1"
    assert f"--backend-directory={tmp_path / 'backends'}" in command
    assert "--backend-config=python,shm-region-prefix-name=prefix-" in command
    assert {"--http-port=1", "--grpc-port=2", "--metrics-port=3"} <= set(command)
    assert set(server_files.SHARED_FLAGS) <= set(command)


def test_free_port_can_be_used_at_once() -> None:
    check_port("127.0.0.1", free_port("127.0.0.1"), "--http-port")


@pytest.mark.parametrize("port", [-1, 65536])
def test_port_outside_the_range_is_named(port: int) -> None:
    with pytest.raises(EmbeddedServerError, match=f"port {port} .*--http-port"):
        check_port("127.0.0.1", port, "--http-port")


def test_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedServerError, match=f"port {port} .*--grpc-port"):
            check_port("127.0.0.1", port, "--grpc-port")
