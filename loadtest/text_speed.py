"""Measure how long the text front end takes, and that it is linear in the length of the text.

    python loadtest/text_speed.py
    python loadtest/text_speed.py --tokenizer checkpoints/demo/asset/tokenizer/tokenizer.json

Prints milliseconds per 100 characters, then one JSON line. Texts are made from a seed: Mandarin,
English and mixed sentences with numbers, dates, amounts, addresses and acronyms.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "model_repository" / "chattts" / "1"))

from chattts_pipeline.vocabulary import Vocabulary  # noqa: E402
from chattts_text import FrontEnd, SegmentLimits, Switches  # noqa: E402

DEFAULT_TOKENIZER = ROOT / "checkpoints" / "demo" / "asset" / "tokenizer" / "tokenizer.json"
PARTS = (
    "今天的会议改到{month}月{day}日下午{hour}点，请大家准时参加。",
    "价格是¥{big}.00，比去年上涨了{day}.5%。",
    "麻烦把 Q{small} 的 KPI dashboard 用 PyTorch 2.{small} 跑一遍。",
    "气温-{small}℃到{day}℃，风速{day}m/s，湿度{day}%。",
    "客服热线 400-820-{year}，取件码 00{day}，详见 docs.example.com。",
    "The meeting on May {day}, {year} starts at {hour}:30 pm and costs ${big}.50. ",
    "Don't forget: version {small}.{day}.1 is {day}% faster, e.g. on NVIDIA GPUs. ",
    "他说：“这本书真好看！”你觉得呢？我们一起去看看吧。",
    "Please send it to support@example.com before the {day}th, thanks! ",
)
ROUNDS = 7
WARM_UP_CHARACTERS = 2_000


def sentence(generator: random.Random) -> str:
    """Return one sentence."""
    return generator.choice(PARTS).format(
        month=generator.randint(1, 12),
        day=generator.randint(1, 28),
        hour=generator.randint(1, 12),
        year=generator.randint(1990, 2030),
        small=generator.randint(1, 9),
        big=f"{generator.randint(1000, 99_999):,}",
    )


def generate(characters: int, generator: random.Random) -> str:
    """Return a text of so many characters."""
    sentences: list[str] = []
    while sum(map(len, sentences)) < characters:
        sentences += [sentence(generator) for _ in range(characters // 20 + 1)]
    return "".join(sentences)[:characters]


def measure(front_end: FrontEnd, characters: int, generator: random.Random) -> float:
    """Return the median of milliseconds per 100 characters over fresh texts of one length."""
    times = []
    for _ in range(ROUNDS):
        text = generate(characters, generator)
        started = time.perf_counter()
        front_end.prepare(text, Switches())
        times.append((time.perf_counter() - started) * 1000 / (characters / 100))
    return statistics.median(times)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path, default=DEFAULT_TOKENIZER)
    parser.add_argument("--lengths", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)

    generator = random.Random(arguments.seed)
    limits = SegmentLimits(max_characters=400, joined_s=20.0)
    front_end = FrontEnd(Vocabulary(arguments.tokenizer), {}, limits)
    front_end.prepare(generate(WARM_UP_CHARACTERS, generator), Switches())
    found = {length: measure(front_end, length, generator) for length in arguments.lengths}
    for length, milliseconds in found.items():
        print(f"{length:>8} characters: {milliseconds:6.2f} ms per 100 characters")
    print(json.dumps({"ms_per_100_characters": {str(k): round(v, 3) for k, v in found.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
