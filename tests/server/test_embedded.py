"""The embedded server with a throw-away repository: start, batching, errors, drain, no remains."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import server_guard
import tritonclient.grpc as triton
from launcher import EmbeddedServer, EmbeddedServerError
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0
SCALE = np.array([1.0, 2.0, 4.0], np.float32)

SCALED_CONFIG = """
name: "scaled"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 200000 }
instance_group [ { count: 1 kind: KIND_AUTO } ]
parameters [ { key: "intra_op_thread_count" value: { string_value: "1" } } ]
"""
SLEEPER_CONFIG = """
name: "sleeper"
backend: "python"
max_batch_size: 0
input [ { name: "seconds" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "facts" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
SLEEPER_MODEL = """
import json, os, sys, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        seconds = pb_utils.get_input_tensor_by_name(request, "seconds").as_numpy()[0]
        if seconds:
            print("sleeping", flush=True)
        time.sleep(float(seconds))
        facts = {"prefix": sys.prefix, "version": sys.version, "path": sys.path,
                 "cwd": sorted(os.listdir(os.getcwd())), "environment": dict(os.environ)}
        array = np.array([json.dumps(facts)], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("facts", array)])
"""


def write_scaled(repository: Path, config: str = SCALED_CONFIG) -> Path:
    """y (B, N, 3) = x (B, N, 3) * SCALE; a last dimension other than 3 or 1 is an error."""
    version = repository / "scaled" / "1"
    version.mkdir(parents=True)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "scale"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n", "size"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "n", "size"])],
        [numpy_helper.from_array(SCALE, "scale")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), version / "model.onnx")
    (repository / "scaled" / "config.pbtxt").write_text(config)
    return repository


def write_sleeper(repository: Path, code: str = SLEEPER_MODEL) -> Path:
    version = repository / "sleeper" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(code)
    (repository / "sleeper" / "config.pbtxt").write_text(SLEEPER_CONFIG)
    return repository


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("throw-away")
    return write_sleeper(write_scaled(folder))


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(repository, exit_timeout_s=7) as running:
        yield running


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(server.grpc_url) as connection:
        yield connection


def tensor(name: str, array: np.ndarray) -> triton.InferInput:
    given = triton.InferInput(name, array.shape, "FP32")
    given.set_data_from_numpy(array)
    return given


def infer_together(
    client: triton.InferenceServerClient, arrays: Sequence[np.ndarray]
) -> list[np.ndarray | Exception]:
    """Send all at once to `scaled`; return outputs or errors in the order of `arrays`."""
    answers: queue.Queue[tuple[int, np.ndarray | Exception]] = queue.Queue()
    for index, array in enumerate(arrays):

        def done(result: Any, error: Exception | None, index: int = index) -> None:
            answers.put((index, error or result.as_numpy("y")))

        client.async_infer("scaled", [tensor("x", array)], done, client_timeout=DEADLINE_S)
    return [value for _, value in sorted(answers.get(timeout=DEADLINE_S) for _ in arrays)]


def statistics(client: triton.InferenceServerClient) -> tuple[int, int]:
    """Return how many inferences and how many executions `scaled` has done."""
    (entry,) = client.get_inference_statistics("scaled").model_stats
    return entry.inference_count, entry.execution_count


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not reached: {what}"
        time.sleep(0.02)


# --- the running server -----------------------------------------------------------------------


def test_server_is_ready_and_infers(client: triton.InferenceServerClient) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    assert client.is_server_ready()
    (y,) = infer_together(client, [x])
    np.testing.assert_array_equal(y, x * SCALE)


def test_concurrent_requests_of_equal_shape_run_as_one(
    client: triton.InferenceServerClient,
) -> None:
    inferences, executions = statistics(client)
    arrays = [np.full((1, 5, 3), index, np.float32) for index in range(8)]
    for x, y in zip(arrays, infer_together(client, arrays), strict=True):
        np.testing.assert_array_equal(y, x * SCALE)
    after = statistics(client)
    assert after[0] - inferences == 8
    assert after[1] - executions <= 4


def test_batch_and_single_items_share_one_execution(client: triton.InferenceServerClient) -> None:
    arrays = [np.full((size, 2, 3), size, np.float32) for size in (1, 3, 2)]
    for x, y in zip(arrays, infer_together(client, arrays), strict=True):
        np.testing.assert_array_equal(y, x * SCALE)


def test_unequal_lengths_are_answered_each_with_its_own(
    client: triton.InferenceServerClient,
) -> None:
    arrays = [np.full((1, length, 3), length, np.float32) for length in (1, 7, 3, 7, 1)]
    for x, y in zip(arrays, infer_together(client, arrays), strict=True):
        np.testing.assert_array_equal(y, x * SCALE)


def test_bad_shape_fails_alone(client: triton.InferenceServerClient) -> None:
    good = np.ones((1, 2, 3), np.float32)
    first, bad, last = infer_together(client, [good, np.ones((1, 2, 5), np.float32), good])
    assert isinstance(bad, triton.InferenceServerException)
    assert "onnx runtime error" in str(bad)
    np.testing.assert_array_equal(first, good * SCALE)
    np.testing.assert_array_equal(last, good * SCALE)


def facts(client: triton.InferenceServerClient) -> dict[str, Any]:
    result = client.infer("sleeper", [tensor("seconds", np.zeros(1, np.float32))])
    parsed: dict[str, Any] = json.loads(result.as_numpy("facts")[0])
    return parsed


def test_python_models_run_on_this_interpreter(client: triton.InferenceServerClient) -> None:
    seen = facts(client)
    assert seen["prefix"] == sys.prefix
    assert seen["version"] == sys.version


def test_working_directory_is_empty_and_checkout_cannot_be_imported(
    client: triton.InferenceServerClient,
) -> None:
    seen = facts(client)
    assert seen["cwd"] == []
    assert "PYTHONPATH" not in seen["environment"]
    assert not [path for path in seen["path"] if path in (str(ROOT), str(ROOT / "embedded"))]


def test_exit_timeout_reaches_the_server(server: EmbeddedServer) -> None:
    (row,) = [line for line in server.log().splitlines() if line.startswith("| exit_timeout")]
    assert row.split("|")[2].strip() == "7"


# --- what goes wrong at the start --------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("TYPE_FP32 dims: [ -1, -1 ] } ]\noutput", "TYPE_INT32 dims: [ -1, -1 ] } ]\noutput"),
         "input 'x': TYPE_INT32 does not fit tensor(float)"),
        (("TYPE_FP32 dims: [ -1, -1 ] } ]\ndyn", "TYPE_FP32 dims: [ -1 ] } ]\ndyn"),
         "output 'y': dims [-1, -1] do not fit"),
        (('name: "y"', 'name: "z"'), "output 'z' is not in the graph, which has: y"),
        (('string_value: "1"', 'string_value: "many"'), "intra_op_thread_count: 'many' is outside"),
        (('backend: "onnxruntime"', 'backend: "onnxruntime" default_model_filename: "a.onnx"'),
         "unable to find"),
        (("TYPE_FP32", "TYPE_FLOAT"), 'Unknown enumeration value of "TYPE_FLOAT"'),
    ],
)  # fmt: skip
def test_bad_configuration_is_named_in_the_error(
    tmp_path: Path, change: tuple[str, str], reason: str
) -> None:
    assert change[0] in SCALED_CONFIG
    server = EmbeddedServer(write_scaled(tmp_path, SCALED_CONFIG.replace(*change, 1)))
    with pytest.raises(EmbeddedServerError) as caught:
        server.start()
    assert reason in str(caught.value)
    assert server.pid is None


def test_exception_in_initialize_is_in_the_error(tmp_path: Path) -> None:
    code = SLEEPER_MODEL + "    def initialize(self, args):\n        raise ValueError('max: 0')\n"
    with pytest.raises(EmbeddedServerError, match=r"sleeper.*ValueError: max: 0"):
        EmbeddedServer(write_sleeper(tmp_path, code)).start()


def test_default_model_filename_is_honoured(
    tmp_path: Path, server_factory: Callable[..., EmbeddedServer]
) -> None:
    config = SCALED_CONFIG + 'default_model_filename: "other.onnx"\n'
    write_scaled(tmp_path, config)
    version = tmp_path / "scaled" / "1"
    (version / "model.onnx").rename(version / "other.onnx")
    assert server_factory(tmp_path).is_ready()


def test_port_in_use_is_named(repository: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedServerError, match=rf"port {port} .*--grpc-port"):
            EmbeddedServer(repository, grpc_port=port).start()


def test_start_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    code = SLEEPER_MODEL + "    def initialize(self, args):\n        time.sleep(60)\n"
    server = EmbeddedServer(write_sleeper(tmp_path, code), start_timeout_s=1)
    with pytest.raises(EmbeddedServerError, match="not ready after 1 s"):
        server.start()
    assert server.pid is None


def test_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no model repository at"):
        EmbeddedServer(tmp_path / "nowhere").start()


def test_log_is_kept_where_it_was_asked_for(repository: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(repository, log_dir=tmp_path / "logs")
    server.start()
    private = server_guard.private_directory(guard_of(server))
    assert private.is_dir()
    server.kill()
    assert not private.exists()
    assert "Started GRPCInferenceService" in (tmp_path / "logs" / "tritonserver.log").read_text()


def guard_of(server: EmbeddedServer) -> int:
    stat = Path(f"/proc/{server.pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


# --- the command -------------------------------------------------------------------------------


class Command:
    """`embedded/serve.py` as a process, with what it has printed."""

    def __init__(self, repository: Path, *options: str) -> None:
        ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "embedded/serve.py",
                "--model-repository",
                repository,
                *ports,
                *options,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> dict[str, str]:
        """Return what it prints: name -> endpoint."""
        assert self.process.stdout is not None
        printed = {}
        for line in self.process.stdout:
            name, _, value = line.strip().partition(" ")
            printed[name] = value
            if name == "ready":
                return printed
        raise AssertionError(self.process.communicate())

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return exit code and stderr."""
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors

    def tree(self) -> list[int]:
        """Return the ids of guard, server and stubs."""
        found, pending = [], [self.process.pid]
        while pending:
            pid = pending.pop()
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                children = [int(child) for child in task.read_text().split()]
                pending += children
                found += children
        return found


@pytest.fixture
def serve() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(repository: Path, *options: str) -> Command:
        started.append(Command(repository, *options))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.communicate()


def assert_all_gone(pids: Sequence[int]) -> None:
    """Nothing of the process tree and none of its files may be left."""
    wait_until(lambda: not any(map(server_guard.is_alive, pids)), "processes ended")
    for pid in pids:
        assert not list(server_guard.SHARED_MEMORY.glob(f"{server_guard.run_name(pid)}*"))
        assert not server_guard.private_directory(pid).exists()


def start_sleeping(client: triton.InferenceServerClient, log: Path) -> queue.Queue[Any]:
    """Start a request of one second; return when the model has it."""
    answers: queue.Queue[Any] = queue.Queue()
    client.async_infer(
        "sleeper",
        [tensor("seconds", np.ones(1, np.float32))],
        lambda result, error: answers.put(error or result),
        client_timeout=DEADLINE_S,
    )
    wait_until(lambda: "sleeping" in log.read_text(), "request running")
    return answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_lets_running_requests_finish(
    serve: Callable[..., Command], repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = serve(repository, "--log-dir", str(tmp_path))
    printed = command.wait_until_ready()
    pids = command.tree()
    with triton.InferenceServerClient(printed["grpc"]) as client:
        answers = start_sleeping(client, tmp_path / "tritonserver.log")
        command.process.send_signal(number)
        answer = answers.get(timeout=DEADLINE_S)
    assert not isinstance(answer, Exception)
    assert command.finish() == (0, "stopped\n")
    assert len(pids) >= 4  # guard, server, two stubs
    assert_all_gone(pids)


def test_nothing_is_left_when_the_command_is_killed(
    serve: Callable[..., Command], repository: Path
) -> None:
    command = serve(repository)
    command.wait_until_ready()
    pids = command.tree()
    command.process.kill()
    assert_all_gone(pids)


def test_nothing_is_left_when_server_and_command_are_killed(
    serve: Callable[..., Command], repository: Path
) -> None:
    command = serve(repository)
    command.wait_until_ready()
    pids = command.tree()
    guard, server = pids[:2]
    os.kill(server, signal.SIGKILL)
    code, errors = command.finish()
    assert code == 1
    assert "ended by itself with exit code 137" in errors
    assert_all_gone([guard, *pids])


def test_interrupt_while_models_load_leaves_nothing(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    slow = "    def initialize(self, args):\n        print('loading', flush=True); time.sleep(60)\n"
    write_sleeper(tmp_path / "models", SLEEPER_MODEL + slow)
    command = serve(tmp_path / "models", "--log-dir", str(tmp_path))
    log = tmp_path / "tritonserver.log"
    wait_until(lambda: log.exists() and "loading" in log.read_text(), "model loading")
    pids = command.tree()
    command.process.send_signal(signal.SIGINT)
    assert command.finish() == (0, "stopped\n")
    assert_all_gone(pids)


def test_failure_has_exit_code_1_and_the_reason(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    write_sleeper(tmp_path, "import not_there\n")
    code, errors = serve(tmp_path).finish()
    assert code == 1
    assert "No module named 'not_there'" in errors


def test_repository_without_weights_names_the_command_that_writes_them(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    shutil.copytree(
        ROOT / "model_repository",
        tmp_path / "models",
        ignore=shutil.ignore_patterns("weights", "model.onnx"),
    )
    code, errors = serve(tmp_path / "models").finish()
    assert code == 1
    assert "python build/build_repository.py --checkpoint checkpoints/demo --output" in errors


def test_files_of_dead_servers_are_removed_at_the_next_start(repository: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead, living = ended.pid, os.getpid()
    regions = [server_guard.SHARED_MEMORY / f"{server_guard.run_name(p)}x" for p in (dead, living)]
    for region in regions:
        region.touch()
    server_guard.private_directory(dead).mkdir()
    try:
        server = EmbeddedServer(repository)
        server.start()
        server.kill()
        assert [region.exists() for region in regions] == [False, True]
        assert not server_guard.private_directory(dead).exists()
    finally:
        server_guard.remove_traces(living)
