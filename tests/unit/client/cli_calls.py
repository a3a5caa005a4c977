"""What tests of the command line share."""

from __future__ import annotations

import wave
from pathlib import Path

# A background job of a shell ignores interrupts, and so would its children.
INTERRUPTIBLE = """
import signal, sys
from chattts_client.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""
CSV = """text,name,seed,refine,speed,options
hello,greeting,7,yes,,
"two
lines",,,,1.5,"{""a"": 1}"
"""
JSONL = """{"text": "hello", "seed": 7}

{"text": "bye", "name": "b", "speed": 2, "voice": "zh"}
"""


def frames(path: Path) -> int:
    """Samples of a WAV file."""
    with wave.open(str(path)) as file:
        return file.getnframes()
