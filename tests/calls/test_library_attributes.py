"""Attributes of libraries that are set: a misspelt one is told, and so is one that nobody would read."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from unittest import mock

import pytest
from compiling import on_host

PROGRAM = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"


def test_a_misspelt_setting() -> None:
    library: Any = on_host(PROGRAM)
    with pytest.raises(AttributeError, match="no attribute to be set 'auto_stag'; did you mean 'auto_stage'"):
        library.auto_stag = True
    assert not library.auto_stage
    library.auto_stage = True
    assert library.auto_stage


@pytest.mark.parametrize("name", ["twice", "device", "backend", "kernels", "functions", "signatures", "path", "use"])
def test_what_a_library_has_is_not_set(name: str) -> None:
    library: Any = on_host(PROGRAM)
    before = repr(getattr(library, name))
    with pytest.raises(AttributeError, match=f"^'{name}' of the program is not to be set to 3: "):
        setattr(library, name, 3)
    assert repr(getattr(library, name)) == before
    assert library.twice(2.0) == 4


def test_what_is_called_instead_of_a_function() -> None:
    """By tests, and by who measures."""
    library: Any = on_host(PROGRAM)
    twice = library.twice
    with mock.patch.object(library, "twice", lambda x: twice(x) + 1):
        assert library.twice(2.0) == 5
    with mock.patch.object(library, "stream") as stream:
        library.stream()
        stream.assert_called_once_with()
    assert library.twice is twice


@pytest.mark.parametrize("before", [False, True])
def test_a_setting_for_a_while(before: bool) -> None:
    library: Any = on_host(PROGRAM)
    library.auto_stage = before
    with mock.patch.object(library, "auto_stage", not before):
        assert library.auto_stage is not before
    assert library.auto_stage is before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "auto_stage", not before)
        assert library.auto_stage is not before
    assert library.auto_stage is before


def test_a_function_that_is_away_for_a_while() -> None:
    library: Any = on_host(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(library, "twice")
        with pytest.raises(AttributeError, match="'twice'"):
            _ = library.twice
    assert library.twice(2.0) == 4


@pytest.mark.parametrize("instead", [mock.DEFAULT, {"k": print}])
def test_what_stands_for_the_kernels(instead: Any) -> None:
    library: Any = on_host(PROGRAM)
    kernels = library.kernels
    with mock.patch.object(library, "kernels", instead):
        library.kernels["k"](1)
    assert library.kernels is kernels


def test_copies_and_subclasses() -> None:
    """What is derived may have more."""
    library: Any = on_host(PROGRAM)
    for again in (copy.deepcopy(library), pickle.loads(pickle.dumps(library))):
        assert again.twice(2.0) == 4

    class More(type(library)):  # type: ignore[misc]
        note = ""

    more: Any = More.__new__(More)
    more.__dict__.update(library.__dict__)
    more.note, more.other = "mine", 1
    assert (more.note, more.other, more.twice(2.0)) == ("mine", 1, 4)
