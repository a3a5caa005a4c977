"""Guards that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from supervisor import Job
from unit.embedded.guards import Guard


@pytest.fixture
def start_guard() -> Iterator[Callable[[Job], Guard]]:
    started: list[Guard] = []

    def start(job: Job) -> Guard:
        started.append(Guard(job))
        return started[-1]

    yield start
    for guard in started:
        guard.close()
