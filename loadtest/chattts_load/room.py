"""A repository that takes as many requests at once as run in the load test.

perf_analyzer ends at the first refusal, and users that wait after one are fewer at once.
"""

from __future__ import annotations

import re
from pathlib import Path

_PATTERN = re.compile(r'(key: "max_streams" value: { string_value: )"(\d+)"')


def with_room(repository: Path, folder: Path, most: int) -> Path:
    """Return a repository with room for `most` callers.

    Args:
        repository: as it was built; it stays as it is.
        folder: new or as an earlier call left it; gets config.pbtxt files and links to the rest.
        most: requests at once.
    """
    if max_streams_of(repository) >= most:
        return repository
    for model in sorted(path for path in repository.iterdir() if path.is_dir()):
        copy = folder / model.name
        copy.mkdir(parents=True, exist_ok=True)
        config = (model / "config.pbtxt").read_text(encoding="utf-8")
        text = _PATTERN.sub(rf'\1"{most}"', config) if model.name == "chattts" else config
        (copy / "config.pbtxt").write_text(text, encoding="utf-8")
        for version in (path for path in model.iterdir() if path.is_dir()):
            link = copy / version.name
            link.unlink(missing_ok=True)
            link.symlink_to(version)
    return folder


def max_streams_of(repository: Path) -> int:
    """Requests at once that a repository's front takes.

    Raises:
        ValueError: its config.pbtxt does not say.
    """
    path = repository / "chattts" / "config.pbtxt"
    match = _PATTERN.search(path.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"{path} has no max_streams")
    return int(match[2])
