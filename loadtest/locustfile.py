"""Load on a running server: gRPC streams, unary gRPC, HTTP, or arrivals at random times.

    locust -f loadtest/locustfile.py --headless --shape ramp --most-users 16 --shape-s 120
    locust -f loadtest/locustfile.py --headless --shape poisson --rate 5 --shape-s 60
    locust -f loadtest/locustfile.py --headless --shape spike --most-users 32 StreamUser
    locust -f loadtest/locustfile.py                    the same from its web page

Needs the extra `load`. What each request was like goes to --records, one line of JSON each.
loadtest/loadtest.py starts a server, runs this at fixed steps and writes a report.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, ClassVar

_FOLDER = str(Path(__file__).resolve().parent)
if _FOLDER not in sys.path:
    sys.path.insert(0, _FOLDER)

import grpc.experimental.gevent as grpc_gevent  # noqa: E402
from chattts_load import texts  # noqa: E402
from chattts_load.locust_users import HttpUser, OpenLoop, StreamUser, UnaryUser  # noqa: E402
from chattts_load.records import RecordWriter  # noqa: E402
from chattts_load.shapes import SHAPES, Shape  # noqa: E402
from locust import LoadTestShape, events  # noqa: E402

__all__ = ["HttpUser", "OpenLoop", "SpeechShape", "StreamUser", "UnaryUser"]

# NOTE: without this, the first blocking call of gRPC stops every user of the process.
grpc_gevent.init_gevent()
_SPAWN_RATE = 100.0


class SpeechShape(LoadTestShape):
    """Follows --shape."""

    abstract: ClassVar[bool] = False

    def tick(self) -> tuple[int, float, list[type]] | None:
        """Users wanted now and how fast to start them; None ends the test."""
        runner: Any = self.runner
        environment = runner.environment
        options = environment.parsed_options
        shape = Shape(options.shape, options.most_users, options.shape_s)
        users = shape.users_at(time.perf_counter() - self.start_time)
        if users is None:
            return None
        if shape.name == "poisson":
            return 1, _SPAWN_RATE, [OpenLoop]
        return users, _SPAWN_RATE, [one for one in environment.user_classes if one is not OpenLoop]


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def add_arguments(parser: ArgumentParser) -> None:
    """Add what this file needs to locust's own arguments and to its web page."""
    group = parser.add_argument_group("Speech")
    group.add_argument("--grpc-url", default="localhost:8001", help="HOST:PORT")
    group.add_argument("--http-url", default="localhost:8000", help="HOST:PORT")
    group.add_argument("--shape", choices=SHAPES, default="constant", help="load over time")
    group.add_argument("--most-users", type=int, default=8, help="at the highest point")
    group.add_argument("--shape-s", type=float, default=60.0, help="seconds that it lasts")
    group.add_argument("--rate", type=float, default=1.0, help="poisson: arrivals per second")
    group.add_argument("--lengths", default=texts.DEFAULT_LENGTHS, help="weights of the lengths")
    group.add_argument("--languages", default=texts.DEFAULT_LANGUAGES, help="and of the languages")
    group.add_argument("--text-seed", type=int, default=1, help="of the texts and arrivals")
    group.add_argument("--records", default="", help="file for one line per request")


@events.init.add_listener  # type: ignore[untyped-decorator]
def prepare(environment: Any, **_: Any) -> None:
    """Set up the texts."""
    options = environment.parsed_options
    environment.record_writer = None
    environment.text_mix = texts.TextMix(
        texts.load_texts(),
        texts.read_weights(options.lengths, texts.LENGTHS),
        texts.read_weights(options.languages, texts.LANGUAGES),
        options.text_seed,
    )


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def open_records(environment: Any, **_: Any) -> None:
    """Open the file of records."""
    if environment.parsed_options.records:
        environment.record_writer = RecordWriter(Path(environment.parsed_options.records))


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def close_records(environment: Any, **_: Any) -> None:
    """Close the file of records."""
    writer, environment.record_writer = environment.record_writer, None
    if writer:
        writer.close()
