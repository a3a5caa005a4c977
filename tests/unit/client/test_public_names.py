"""Nothing is public by accident."""

from __future__ import annotations

from types import ModuleType

import chattts_client


def test_public_names_are_exactly_those_of_all() -> None:
    public = {
        name
        for name, value in vars(chattts_client).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert sorted(public) == chattts_client.__all__


def test_every_module_is_private() -> None:
    modules = {
        name for name, value in vars(chattts_client).items() if isinstance(value, ModuleType)
    }
    assert all(name.startswith("_") for name in modules - {"cli"})


def test_every_public_class_says_what_it_is() -> None:
    assert all(getattr(chattts_client, name).__doc__ for name in chattts_client.__all__)
