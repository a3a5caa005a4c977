"""Run the tests on the device, measure its speed, and print one JSON line last.

    tests/gpu/run.sh

Exit status 0 if every test passed and everything was measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import torch
import triton

ROOT = Path(__file__).resolve().parents[2]
TESTS = ["tests/gpu", "tests/unit/engine/interpreted_kernels.py"]
WEIGHTS = Path("chattts_gpt/1/weights")
DEVICE = os.environ.get("TORCH_TEST_DEVICE", "cuda:0")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
PYTEST += ["-W", "default"]  # a driver's or library's warning is no failure of ours
PYTEST += ["-o", "junit_family=xunit1"]  # the one that keeps what tests record


def main() -> int:
    """Check everything; return the exit status."""
    started = time.perf_counter()
    is_cuda = DEVICE.startswith("cuda")
    if is_cuda and not torch.cuda.is_available():
        sys.stdout.write(json.dumps({"error": f"{DEVICE}: PyTorch sees no CUDA device"}) + "\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = build_weights(folder, "full" if is_cuda else "tiny")
        environment = {**os.environ, "TORCH_TEST_WEIGHTS": str(weights)}
        if not is_cuda:
            environment["TRITON_INTERPRET"] = "1"
        report: dict[str, Any] = {"device": device_facts(), **tests(folder, environment)}
        try:
            report["speed"] = speed(weights, is_cuda)
        except Exception as error:  # the tests' result is worth printing all the same
            report["speed"] = None
            report["error"] = repr(error)
    report["seconds"] = round(time.perf_counter() - started, 1)
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if report["failed"] == 0 and report["passed"] and report["speed"] else 1


def build_weights(folder: Path, size: str) -> Path:
    """Make an untrained checkpoint and build it for torch; return its weights folder."""
    checkpoint, repository = folder / "checkpoint", folder / "repository"
    make = [sys.executable, str(ROOT / "build" / "make_checkpoint.py"), "--size", size]
    build = [sys.executable, str(ROOT / "build" / "build_repository.py"), "--runner", "torch"]
    subprocess.run([*make, "--output", str(checkpoint)], check=True)
    build += ["--checkpoint", str(checkpoint), "--output", str(repository)]
    subprocess.run(build, check=True)
    return repository / WEIGHTS


def device_facts() -> dict[str, Any]:
    """Return what was tested, as the libraries name it."""
    name = torch.cuda.get_device_name(DEVICE) if DEVICE.startswith("cuda") else DEVICE
    return {"name": name, "torch": torch.__version__, "triton": triton.__version__}


def tests(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Run the tests in a process of their own; return counts, names of failures and properties."""
    result = folder / "junit.xml"
    command = [*PYTEST, f"--junitxml={result}", *TESTS]
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    cases = list(ElementTree.parse(result).getroot().iter("testcase"))
    failed = [
        case.get("name")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    measured = {
        str(each.get("name")): float(str(each.get("value")))
        for case in cases
        for each in case.iter("property")
    }
    return {
        "passed": len(cases) - len(failed) - skipped,
        "failed": len(failed),
        "skipped": skipped,
        "failures": failed,
        **measured,
    }


def speed(weights: Path, is_cuda: bool) -> Any:
    """Measure; at tiny size and two concurrencies without a GPU."""
    import speed as measurement

    if is_cuda:
        return measurement.measure(weights, DEVICE)
    return measurement.measure(weights, DEVICE, concurrencies=(1, 2))


if __name__ == "__main__":
    sys.exit(main())
