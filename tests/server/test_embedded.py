"""The embedded server with throw-away models: readiness, batching, and why a start fails."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import server_traces
import tritonclient.grpc as triton
from launcher import EmbeddedServer, EmbeddedServerError
from throw_away import (
    SCALE,
    SCALED_CONFIG,
    SLEEPER_MODEL,
    infer_together,
    tensor,
    write_scaled,
    write_sleeper,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server(throw_away_repository: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(throw_away_repository, exit_timeout_s=7) as running:
        yield running


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(server.grpc_url) as connection:
        yield connection


def statistics(client: triton.InferenceServerClient) -> tuple[int, int]:
    """Return how many inferences and how many executions `scaled` has done."""
    (entry,) = client.get_inference_statistics("scaled").model_stats
    return entry.inference_count, entry.execution_count


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


def test_port_in_use_is_named(throw_away_repository: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedServerError, match=rf"port {port} .*--grpc-port"):
            EmbeddedServer(throw_away_repository, grpc_port=port).start()


def test_start_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    code = SLEEPER_MODEL + "    def initialize(self, args):\n        time.sleep(60)\n"
    server = EmbeddedServer(write_sleeper(tmp_path, code), start_timeout_s=1)
    with pytest.raises(EmbeddedServerError, match="not ready after 1 s"):
        server.start()
    assert server.pid is None


def test_missing_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no model repository at"):
        EmbeddedServer(tmp_path / "nowhere").start()
    (tmp_path / "a b").mkdir()
    with pytest.raises(EmbeddedServerError, match="a b: server 2.51 cannot serve from a path with"):
        EmbeddedServer(tmp_path / "a b").start()


def test_log_folder_that_cannot_be_made_is_named(
    throw_away_repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    server = EmbeddedServer(throw_away_repository, log_dir=tmp_path / "file")
    with pytest.raises(EmbeddedServerError, match="cannot prepare the server.*file"):
        server.start()
    assert not server.is_ready()


def test_log_is_kept_where_it_was_asked_for(throw_away_repository: Path, tmp_path: Path) -> None:
    server = EmbeddedServer(throw_away_repository, log_dir=tmp_path / "logs")
    server.start()
    private = server_traces.private_directory(guard_of(server))
    assert private.is_dir()
    server.kill()
    assert not private.exists()
    assert "Started GRPCInferenceService" in (tmp_path / "logs" / "tritonserver.log").read_text()


def guard_of(server: EmbeddedServer) -> int:
    stat = Path(f"/proc/{server.pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def test_files_of_dead_servers_are_removed_at_the_next_start(throw_away_repository: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead, living = ended.pid, os.getpid()
    names = [f"{server_traces.run_name(pid)}x" for pid in (dead, living)]
    regions = [server_traces.SHARED_MEMORY / name for name in names]
    for region in regions:
        region.touch()
    server_traces.private_directory(dead).mkdir()
    try:
        server = EmbeddedServer(throw_away_repository)
        server.start()
        server.kill()
        assert [region.exists() for region in regions] == [False, True]
        assert not server_traces.private_directory(dead).exists()
    finally:
        server_traces.remove_traces(living)
