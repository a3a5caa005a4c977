"""Whether the teachers of the small voice are installed (build/train_voice/apt-packages.txt)."""

from __future__ import annotations

import ctypes

import pytest

LIBRARIES = ("libflite_cmu_us_slt.so.1", "libespeak-ng.so.1")


def are_installed() -> bool:
    """Say whether the libraries of both teachers can be loaded."""
    try:
        return all(ctypes.CDLL(name) for name in LIBRARIES)
    except OSError:
        return False


needs_teachers = pytest.mark.skipif(not are_installed(), reason="flite or espeak-ng is missing")
