"""The Triton kernels without a GPU: right in the interpreter, and they compile for each device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
triton = pytest.importorskip("triton")

POINTER_ALIGNMENT = [["tt.divisibility", 16]]
SIZES = {"NUM_HEADS": 12, "DIM": 64, "DIM_PADDED": 64, "HALF_PADDED": 32, "BLOCK_SIZE": 16}


def test_the_kernels_compute_what_the_plain_operations_do() -> None:
    file = Path(__file__).with_name("interpreted_kernels.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def compile_for(
    capability: int, kernel: Any, signature: dict[str, str], constants: dict[str, Any], warps: int
) -> Any:
    """Compile down to machine code; the compiler and its assembler come with the package."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    pointers = [name for name, kind in signature.items() if kind.startswith("*")]
    source = ASTSource(
        fn=kernel,
        signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constexprs=constants,
        attrs={(list(signature).index(name),): POINTER_ALIGNMENT for name in pointers},
    )
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(source, target=target, options={"num_warps": warps})


@pytest.mark.parametrize("capability", [80, 89, 90])
@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
def test_the_kernels_compile(
    capability: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chattts_engine import torch_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    data = dict.fromkeys(["qkv", "out", "keys", "values"], f"*{kind}")
    tables = {"tables": "*i32", "positions": "*i32", "cos": "*fp32", "sin": "*fp32"}
    rest = {"scale": "fp32", "table_width": "i32"}
    constants = {**SIZES, "TILE": torch_kernels.TILE}
    attention = compile_for(
        capability,
        torch_kernels._decode_attention,
        {**data, **tables, **rest},
        constants,
        torch_kernels.ATTENTION_WARPS,
    )
    # A multiprocessor of the smallest of these devices has 100 KiB for all its programs.
    assert attention.metadata.shared <= 16 * 1024
    norm = {"residual": "*fp32", "delta": f"*{kind}", "weight": "*fp32", "out": f"*{kind}"}
    constants = {"HAS_DELTA": True, "SIZE": 768, "SIZE_PADDED": 1024}
    compile_for(
        capability, torch_kernels._add_rms_norm, {**norm, "eps": "fp32"}, constants, warps=4
    )
    gate = dict.fromkeys(["gate_up", "out"], f"*{kind}")
    constants = {"SIZE": 3072, "SLICE": torch_kernels.SLICE}
    compile_for(capability, torch_kernels._gated_silu, gate, constants, warps=4)
