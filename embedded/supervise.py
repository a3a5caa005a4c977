"""Run a tritonserver that comes back by itself: the first process of the container.

    python3 supervise.py tritonserver --model-repository=/models
    python3 supervise.py --control-token-file=/tmp/token tritonserver --model-repository=/models

Everything after the options is the server's command. It is watched and started again when a process
of a model has died or hangs, or when it has ended by itself. SIGTERM and SIGINT drain it: new
requests are refused, running ones get --exit-timeout-secs of the command (30) to finish. Ends with
the server's exit code, 128 + N where signal N ended it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import model_control
from server_traces import private_directory, remove_traces, run_name
from supervisor import Job, Orders, Supervisor

_EVERYWHERE = "0.0.0.0"
_DEFAULTS = {
    "http-address": _EVERYWHERE,
    "http-port": "8000",
    "metrics-port": "8002",
    "exit-timeout-secs": "30",
}
"""Flags of tritonserver that say where and how long it is asked, as it has them by default."""


def values(command: Sequence[str], name: str) -> list[str]:
    """Return the value of each `--name=value` in a server's command."""
    start = f"--{name}="
    return [word.removeprefix(start) for word in command if word.startswith(start)]


def flag(command: Sequence[str], name: str) -> str:
    """Return the last value of a flag, or its default."""
    return [_DEFAULTS[name], *values(command, name)][-1]


def mistake(command: Sequence[str]) -> str:
    """Say why a server's command cannot work, "" if nothing is known against it."""
    if shutil.which(command[0]) is None:
        return f"no program {command[0]!r}"
    folders = values(command, "model-repository")
    # a remote one, s3://…, is the server's to look at
    is_local = folders and not any("://" in folder for folder in folders)
    if is_local and not any(any(Path(folder).glob("*/config.pbtxt")) for folder in folders):
        return f"no model in {', '.join(folders)}"
    return ""


def job(command: Sequence[str], restart: bool) -> Job:
    """Return the job for a server's command line; the environment is this process's."""
    address = flag(command, "http-address")
    # regions of a killed server are found by their names
    prefix = f"--backend-config=python,shm-region-prefix-name={run_name(os.getpid())}"
    return Job(
        command=[*command, prefix],
        environment=dict(os.environ),
        working_directory=None,
        log_file=None,
        host="127.0.0.1" if address == _EVERYWHERE else address,
        http_port=int(flag(command, "http-port")),
        metrics_port=int(flag(command, "metrics-port")),
        exit_timeout_s=float(flag(command, "exit-timeout-secs")),
        restart=restart,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the server's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--no-restart", action="store_true", help="end when the server ends")
    parser.add_argument(
        "--control-token-file",
        type=Path,
        metavar="FILE",
        help="let only those load and unload models who send the secret that is written there",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="tritonserver and its flags")
    arguments = parser.parse_args(argv)
    if not arguments.command:
        parser.error("the server's command is missing")
    if why := mistake(arguments.command):
        print(f"supervise: {why}", file=sys.stderr)
        return 1
    orders = Orders()
    remove_traces(os.getpid())
    private_directory(os.getpid()).mkdir(mode=0o700)
    try:
        if arguments.control_token_file:
            try:
                arguments.command += model_control.restrict(arguments.control_token_file)
            except OSError as error:
                print(f"supervise: --control-token-file: {error}", file=sys.stderr)
                return 1
        supervisor = Supervisor(
            job(arguments.command, not arguments.no_restart), orders, tell=lambda *_: None
        )
        return supervisor.run()
    finally:
        remove_traces(os.getpid())


if __name__ == "__main__":
    sys.exit(main())
