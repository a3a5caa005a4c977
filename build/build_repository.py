"""Turn a checkpoint in the published layout into a model repository that Triton loads.

    python build/build_repository.py --checkpoint checkpoints/demo --precision int8
    python build/build_repository.py --checkpoint checkpoints/demo --output /tmp/repository

Every graph is compared with a NumPy reference before anything is moved into place. A second run
with the same checkpoint and options finds its stamp and does nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import stamp
from checkpoint import Checkpoint, CheckpointError, required_files
from files import INTERRUPTED, move_into_place, write_bytes

if TYPE_CHECKING:
    from artifacts import Runner, Written
    from gpt_graph import Precision

OWN_REPOSITORY = Path(__file__).resolve().parent.parent / "model_repository"
STAGING = "chattts/1/weights/.building"
"""Where files lie until all are finished: git ignores it, Triton does not look there, and it is
on the repository's own file system."""
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8", "int8-weights")
GENERATED = ("weights", "model.onnx", "__pycache__")
"""Names that a copy of the source leaves out."""
OPTIONAL_INPUTS = ("domain_words.txt", "voices.json", "UNTRAINED")


class BuildError(RuntimeError):
    """The repository cannot be built; the message says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="directory with asset/")
    parser.add_argument("--output", type=Path, default=OWN_REPOSITORY, help="model repository")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="int8: linear layers and KV cache; int8-weights: linear layers alone",
    )
    parser.add_argument("--runner", choices=("onnx", "torch"), default="onnx")
    options = parser.parse_args(argv)
    if options.runner == "torch" and options.precision != "fp32":
        parser.error("--runner torch needs --precision fp32")
    try:
        build(options.checkpoint, options.output, options.precision, options.runner)
    except KeyboardInterrupt:
        print("build_repository: interrupted; run it again", file=sys.stderr)
        return INTERRUPTED
    except (BuildError, CheckpointError, OSError, ValueError) as error:
        print(f"build_repository: {error}", file=sys.stderr)
        return 1
    return 0


def build(
    checkpoint_root: Path, repository: Path, precision: Precision, runner: Runner = "onnx"
) -> None:
    """Bring `repository` to what the checkpoint and options ask for; print a line per file.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        BuildError: a graph fails its check, or another build writes the same repository.
    """
    started = time.monotonic()
    checkpoint = Checkpoint.open(checkpoint_root)
    copy_source(repository)
    check_root(repository)
    known = stamp.read_stamp(repository)
    inputs = _inputs(checkpoint, precision, runner, known)
    if stamp.is_current(repository, inputs, known):
        print(f"{repository}: up to date ({checkpoint.name}, {precision}, {runner})")
        return
    with staging(repository) as folder:
        written = _write(checkpoint, folder, precision, runner)
        _move(folder, repository, [file.path for file in written], inputs)
    elapsed_s = time.monotonic() - started
    print(f"{repository}: built from {checkpoint.name} ({precision}, {runner}), {elapsed_s:.1f} s")


def _inputs(
    checkpoint: Checkpoint, precision: Precision, runner: Runner, known: stamp.Record
) -> stamp.Record:
    names = [*required_files()]
    names += [name for name in OPTIONAL_INPUTS if (checkpoint.root / name).exists()]
    old = known.get("inputs", {}).get("checkpoint", {})
    return {
        "checkpoint": stamp.describe(checkpoint.root, names, old),
        "name": checkpoint.name,
        "precision": precision,
        "runner": runner,
        "code": stamp.code_version(),
    }


def _write(
    checkpoint: Checkpoint, folder: Path, precision: Precision, runner: Runner
) -> list[Written]:
    # imported late: onnx and onnxruntime take longer to import than an up-to-date run needs
    from artifacts import RepositoryWriter
    from selfcheck import CheckError

    written = []
    try:
        for file in RepositoryWriter(checkpoint, folder, precision, runner).write():
            size_mb = (folder / file.path).stat().st_size / 1e6
            print(f"  {file.path}  {size_mb:.2f} MB  {file.note}".rstrip(), flush=True)
            written.append(file)
    except CheckError as error:
        raise BuildError(str(error)) from error
    return written


def _move(folder: Path, repository: Path, names: list[str], inputs: stamp.Record) -> None:
    """Replace the repository's files; without its stamp it counts as incomplete meanwhile."""
    from artifacts import optional_files

    stamp.remove_stamp(repository)
    for name in set(optional_files()) - set(names):
        (repository / name).unlink(missing_ok=True)
    for name in names:
        move_into_place(folder / name, repository / name)
    stamp.write_stamp(repository, inputs, names)


@contextmanager
def staging(repository: Path) -> Iterator[Path]:
    """Yield an empty, locked folder on the repository's file system and remove it afterwards.

    What a killed run left there is removed first.
    """
    folder = repository / STAGING
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildError(f"{repository}: another build is writing there") from error
        for leftover in folder.iterdir():
            shutil.rmtree(leftover)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def copy_source(repository: Path) -> None:
    """Copy code and configurations of this checkout's models to another repository.

    Python files there that no longer exist here are removed; unchanged files are not touched.
    """
    if repository.resolve() == OWN_REPOSITORY:
        return
    source = _source_files(OWN_REPOSITORY)
    for model in {name.parts[0] for name in source}:
        for old in (repository / model).rglob("*.py"):
            if old.relative_to(repository) not in source:
                old.unlink()
    for name in source:
        data, target = (OWN_REPOSITORY / name).read_bytes(), repository / name
        if not target.exists() or target.read_bytes() != data:
            write_bytes(target, data)


def check_root(repository: Path) -> None:
    """Check that every folder in the repository is a model; another one stops the server.

    Raises:
        BuildError: a folder has no configuration.
    """
    for folder in sorted(repository.iterdir()):
        if folder.is_dir() and not (folder / "config.pbtxt").exists():
            raise BuildError(f"{folder}: not a model, and Triton loads nothing beside it; move it")


def _source_files(repository: Path) -> set[Path]:
    """Return the files of the models that are source, relative to the repository."""
    names = {path.relative_to(repository) for path in repository.glob("*/**/*") if path.is_file()}
    return {name for name in names if not set(GENERATED) & set(name.parts)}


if __name__ == "__main__":
    sys.exit(main())
