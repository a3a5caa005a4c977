"""One engine in a process of its own: `python -m chattts_engine.engine_process FD`.

The socket FD carries an EngineJob in, Ready or Refused out, then commands in and chunks, snapshots
and failures out. The process ends when the other side of the socket does, however that happens.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from .config import EngineConfig
from .loading import LoadedEngine, load_engine, num_gpus, warm_up
from .messages import EngineJob, Failure, Ready, Refused, Stop
from .torch_options import TorchOptions
from .worker import EngineWorker


def serve(connection: Connection[Any, Any]) -> None:
    """Load the engine that the first message asks for, and run it until told to stop."""
    job: EngineJob = connection.recv()
    try:
        loaded, ready = _load(job)
    except Exception as error:
        connection.send(Refused(f"{type(error).__name__}: {error}"))
        return
    connection.send(ready)
    worker = EngineWorker(
        loaded.engine,
        time.monotonic,
        on_chunk=connection.send,
        on_snapshot=connection.send,
        on_failure=lambda trace: connection.send(Failure(trace)),
        on_death=_die,
    )
    while not isinstance(command := connection.recv(), Stop):
        worker.put(command)
    worker.stop()


def _load(job: EngineJob) -> tuple[LoadedEngine, Ready]:
    gpus = num_gpus(job.weights)
    options = replace(job.torch_options, device=f"cuda:{job.index % gpus}" if gpus else "cpu")
    config = job.config if gpus else _with_own_cores(job.config)
    loaded = load_engine(job.weights, config, torch_options=options)
    warm_up(loaded.engine)
    ready = Ready(
        loaded.engine.max_num_tokens,
        loaded.engine.block_manager.num_blocks,
        max(1, gpus),
        _computes(loaded, options),
    )
    return loaded, ready


def _with_own_cores(config: EngineConfig) -> EngineConfig:
    """Return the config with this engine's share of the cores, where the operator names none."""
    if config.num_threads or config.num_engines < 2:
        return config
    return replace(config, num_threads=max(1, len(os.sched_getaffinity(0)) // config.num_engines))


def _computes(loaded: LoadedEngine, options: TorchOptions) -> str:
    gpt = loaded.engine.gpt
    if gpt.runner == "torch":
        return f"torch {options.dtype_name} on {options.device}"
    return f"{gpt.runner} {gpt.precision}"


def _die(trace: str) -> None:
    """End at once: the router sees it, and gives what ran here to another engine."""
    sys.stderr.write(f"chattts_gpt: {trace}")
    sys.stderr.flush()
    os._exit(1)


def main() -> None:
    """Serve the socket whose number is the only argument; end quietly with the other side."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    try:
        serve(connection)
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
