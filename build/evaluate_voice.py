"""Evaluate a voice on sentences that it never met, and print one line of JSON.

    python build/evaluate_voice.py checkpoints/NAME
    python build/evaluate_voice.py checkpoints/NAME --server http://localhost:8000

English: words that a recogniser hears right. Mandarin: sentences whose nearest recording of the
teacher is their own. Both: whether speech ends by itself, how long it is beside the teacher's, and
what the samples look like. Needs the extra `train` and the packages of
build/train_voice/apt-packages.txt.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from checkpoint import CheckpointError
from train_voice.evaluation import evaluate, evaluate_checkpoint
from train_voice.speaking import ServerSpeaker
from train_voice.teachers import TeacherError

ALL = 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="folder of the checkpoint")
    parser.add_argument("--server", help="ask the server at this URL instead of this process")
    parser.add_argument("--sentences", type=int, default=ALL, help="per language, at most")
    parser.add_argument("--seed", type=int, default=1, help="of a server's requests (default 1)")
    options = parser.parse_args(argv)
    root: Path = options.checkpoint
    try:
        if options.server:
            speaker = ServerSpeaker(options.server, options.seed)
            result = evaluate(speaker, root, options.sentences)
        else:
            result = evaluate_checkpoint(root, options.sentences)
    except (CheckpointError, TeacherError, OSError) as error:
        print(f"evaluate_voice: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
