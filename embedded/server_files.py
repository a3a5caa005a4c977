"""Assemble a tritonserver with Python backend from the installed nvidia-pytriton wheel.

Knows where the wheel keeps its parts and what the server needs around it: a backend directory
with the stub of this interpreter and our onnxruntime stand-in, a library path, an empty working
directory, and the command line. Starts nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import model_control

THREAD_POOL_SIZE = 224
"""Threads of each Python model. A pending BLS call holds one, and responses need one as well: three
for each of the 64 streams that the front model admits, and a margin."""

STUB_TIMEOUT_S = 120
"""Seconds that a Python model may take to load: the published weights on a busy machine."""

EXIT_TIMEOUT_S = 30
"""Seconds that the server waits for running requests after SIGTERM."""

SHARED_MEMORY_BYTES = 4 * 2**20
"""What a Python model's process shares with the server from the start. The region grows by steps
and never shrinks; with this it does not under full load."""

SHARED_FLAGS = (
    *model_control.FLAGS,
    "--disable-auto-complete-config",
    f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
    f"--backend-config=python,thread-pool-size={THREAD_POOL_SIZE}",
    f"--backend-config=python,stub-timeout-seconds={STUB_TIMEOUT_S}",
    f"--backend-config=python,shm-default-byte-size={SHARED_MEMORY_BYTES}",
)
"""Flags that the embedded server and docker-compose.yml have in common (a test compares)."""

_BACKEND_LIBRARY = "libtriton_python.so"
_BACKEND_UTILS = "triton_python_backend_utils.py"
_EMBEDDED_FLAGS = ("--allow-gpu-metrics=false", "--pinned-memory-pool-byte-size=0")
_STAND_IN_BACKENDS = Path(__file__).resolve().parent / "backends"


class EmbeddedServerError(RuntimeError):
    """The embedded server cannot be assembled, does not start, or has ended by itself."""


@dataclass(frozen=True)
class Ports:
    """TCP ports; each in 1 ... 65535."""

    http: int
    grpc: int
    metrics: int


@dataclass(frozen=True)
class WheelServer:
    """Where the parts of the installed wheel are."""

    binary: Path
    python_backend: Path
    """Folder with libtriton_python.so and triton_python_backend_utils.py."""
    stub: Path
    """The process that runs Python models, built for this interpreter's version."""
    libraries: Path

    @classmethod
    def find(cls) -> WheelServer:
        """Locate the wheel without importing it.

        Raises:
            EmbeddedServerError: it is not installed, or has no stub for this Python version.
        """
        spec = importlib.util.find_spec("pytriton")
        if spec is None or not spec.submodule_search_locations:
            raise EmbeddedServerError(
                "no embedded server: install it with pip install -e '.[serve]'"
            )
        package = Path(spec.submodule_search_locations[0])
        server = package / "tritonserver"
        stubs = server / "python_backend_stubs"
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stub = stubs / version / "triton_python_backend_stub"
        if not stub.exists():
            known = ", ".join(sorted(path.name for path in stubs.glob("*")))
            raise EmbeddedServerError(f"the server has no stub for Python {version}, only {known}")
        return cls(
            binary=server / "bin" / "tritonserver",
            python_backend=server / "backends" / "python",
            stub=stub,
            libraries=package.parent / "nvidia_pytriton.libs",
        )


@dataclass(frozen=True)
class PrivateFiles:
    """The folder of one running server."""

    root: Path

    @property
    def backends(self) -> Path:
        """Backend directory; a trailing slash would break every Python model."""
        return self.root / "backends"

    @property
    def working_directory(self) -> Path:
        """Empty: the stubs import from the working directory before anything else."""
        return self.root / "work"

    @property
    def control_token(self) -> Path:
        """The secret for loading and unloading models."""
        return self.root / "control-token"

    def create(self, wheel: WheelServer) -> None:
        """Create the folder, readable by this user only.

        The library is a copy: the server refuses one that leads out of the backend directory. The
        stand-ins are links whose compiled files stay here, not in the checkout.
        """
        self.root.mkdir(mode=0o700)
        self.working_directory.mkdir()
        python = self.backends / "python"
        python.mkdir(parents=True)
        shutil.copyfile(wheel.python_backend / _BACKEND_LIBRARY, python / _BACKEND_LIBRARY)
        (python / _BACKEND_UTILS).symlink_to(wheel.python_backend / _BACKEND_UTILS)
        (python / wheel.stub.name).symlink_to(wheel.stub)
        for model in _STAND_IN_BACKENDS.glob("*/model.py"):
            backend = self.backends / model.parent.name
            backend.mkdir()
            (backend / model.name).symlink_to(model)


def free_port(host: str) -> int:
    """Return a TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def check_port(host: str, port: int, option: str) -> None:
    """Raise EmbeddedServerError, naming the command-line option, if `port` is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise EmbeddedServerError(
                f"port {port} on {host} cannot be used ({error}); "
                f"choose another with {option}, or 0 for a free one"
            ) from error


def interpreter_directory() -> Path:
    """Return the folder of the running interpreter, where the stubs find their packages.

    Raises:
        EmbeddedServerError: `python3` there is another interpreter.
    """
    executable = Path(sys.executable)
    candidate = executable.parent / "python3"
    if not candidate.exists() or candidate.resolve() != executable.resolve():
        raise EmbeddedServerError(
            f"{candidate} is not the running interpreter {executable}: use a virtual environment"
        )
    return executable.parent


def _interpreter_libraries() -> list[str]:
    """Return the folders with the interpreter's own libpython.

    A system libpython of the same minor version under another standard library fails at import.
    """
    library = sysconfig.get_config_var("INSTSONAME") or ""
    candidates = (sysconfig.get_config_var("LIBDIR"), str(Path(sys.base_prefix) / "lib"))
    return [
        folder for folder in dict.fromkeys(candidates) if folder and Path(folder, library).is_file()
    ]


MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2"
"""Huge pages, where the weights then lie: a step reads all of them, and page walks cost it 3 to 7 %
on a virtual machine. Two arenas: with eight per core the front's 137 threads keep 60 MB of holes,
and no figure gains by it. build/Dockerfile sets the same."""


def server_environment(wheel: WheelServer, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the server's environment: its libraries, this interpreter, no foreign Python paths."""
    environment = dict(inherited)
    for name in ("PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    libraries = [*_interpreter_libraries(), str(wheel.libraries)]
    libraries += filter(None, [inherited.get("LD_LIBRARY_PATH")])
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    path = [str(interpreter_directory()), inherited.get("PATH", os.defpath)]
    environment["PATH"] = os.pathsep.join(path)
    tunables = filter(None, [MALLOC, inherited.get("GLIBC_TUNABLES")])
    environment["GLIBC_TUNABLES"] = ":".join(tunables)
    return environment


def server_command(
    wheel: WheelServer,
    files: PrivateFiles,
    *,
    model_repository: Path,
    host: str,
    ports: Ports,
    region_prefix: str,
    extra_args: Sequence[str],
) -> list[str]:
    """Return the command line, whose secret is written; a flag in `extra_args` wins over ours."""
    endpoints = [
        f"--{name}-{key}={value}"
        for name, port in (("http", ports.http), ("grpc", ports.grpc), ("metrics", ports.metrics))
        for key, value in (("address", host), ("port", port))
    ]
    return [
        str(wheel.binary),
        f"--model-repository={model_repository}",
        f"--backend-directory={files.backends}",
        *SHARED_FLAGS,
        *_EMBEDDED_FLAGS,
        # the stand-ins read the keys of the Python backend
        f"--backend-config=python,shm-region-prefix-name={region_prefix}",
        *endpoints,
        *model_control.restrict(files.control_token),
        *extra_args,
    ]
