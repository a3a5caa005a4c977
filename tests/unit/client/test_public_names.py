"""Nothing is public by accident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import chattts_client
import pytest


def test_public_names_are_exactly_those_of_all() -> None:
    public = {
        name
        for name in dir(chattts_client)
        if not name.startswith("_") and not isinstance(getattr(chattts_client, name), ModuleType)
    }
    assert sorted(public) == chattts_client.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Client'"):
        _ = chattts_client.Client


def test_the_package_imports_nothing_before_it_is_used() -> None:
    """So that the command line can meet Ctrl-C from its start."""
    code = (
        "import sys, chattts_client.cli; print('numpy' in sys.modules); "
        "from chattts_client import *; print(ChatTTSClient.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "ChatTTSClient"]


def test_the_package_itself_needs_no_other_module() -> None:
    """So that Ctrl-C finds nothing half loaded in it."""
    code = (
        "import sys; before = {*sys.modules}; import chattts_client; print({*sys.modules} - before)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],  # what is installed may have loaded others
        env={"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "{'chattts_client'}\n"


def test_every_module_is_private() -> None:
    modules = {
        name for name, value in vars(chattts_client).items() if isinstance(value, ModuleType)
    }
    assert all(name.startswith("_") for name in modules - {"cli"})


def test_every_public_class_says_what_it_is() -> None:
    assert all(getattr(chattts_client, name).__doc__ for name in chattts_client.__all__)
