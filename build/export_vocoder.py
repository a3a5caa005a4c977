"""Export the vocoder alone, by either of its two paths, and check it against the reference.

    python build/export_vocoder.py --checkpoint checkpoints/demo --path hidden --output vocoder.onnx
    python build/export_vocoder.py --checkpoint checkpoints/demo --path codes --output codes.onnx

hidden: `hidden` (batch, steps, hidden size) float32, the path that build_repository.py deploys.
codes: `codes` (batch, steps, 4) int32 in 0 ... 624, as chattts_gpt returns them.
Both are run chunk by chunk, any number of steps per call: `mask` (batch, steps) is 1 for the steps
of the segment and 0 after its end; `state` (batch, state_size) is zeros, then `next_state` of the
call before; `audio` (batch, 512 * steps) float32 at 24 kHz comes `context_steps` steps late. Both
numbers stand in the file's metadata.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from checkpoint import Checkpoint, CheckpointError
from files import atomic_path
from selfcheck import CheckError, check_vocoder
from vocoder_graph import write_code_vocoder, write_hidden_vocoder


def export(checkpoint: Checkpoint, path: str, output: Path) -> str:
    """Write the vocoder of `path` (hidden or codes) to `output`; return what its check found.

    Raises:
        CheckError: the graph computes something else than the reference; nothing is written.
    """
    is_code_path = path == "codes"
    write = write_code_vocoder if is_code_path else write_hidden_vocoder
    with atomic_path(output) as temporary:
        temporary.write_bytes(write(checkpoint).onnx)
        return check_vocoder(temporary, checkpoint, is_code_path)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="directory with asset/")
    parser.add_argument("--path", choices=("hidden", "codes"), default="hidden")
    parser.add_argument("--output", type=Path, required=True, help="ONNX file to write")
    options = parser.parse_args(argv)
    try:
        note = export(Checkpoint.open(options.checkpoint), options.path, options.output)
    except (CheckError, CheckpointError, OSError, ValueError) as error:
        print(f"export_vocoder: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {options.path} path, {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
