"""Options of targets and builds that are none: each is refused in words, wherever it is given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, PROGRAMS

import offload
from offload.errors import OffloadError, TargetError

OPTIONS = PROGRAMS / "options.mlir"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_threads": "many"}, "max_threads=many: max_threads is 1 to 1024, not 'many'"),
        ({"O": "2"}, "O=2: O is 0 to 3, not '2'"),
        ({"O": 3.0}, "O is 0 to 3, not 3.0"),
        ({"maxregs": True}, "maxregs: maxregs is 16 to 255, not True"),
        ({"fast": "yes"}, "fast=yes: fast is True or False, not 'yes'"),
        ({"debug": 0}, "debug is True or False, not 0"),
        ({"index": "32"}, "index=32: unknown index '32'; it is one of 32, 64"),
        ({"format": None}, "format=None: unknown format None; it is one of bin, isa, fatbin, offload"),
        ({"features": ["+ptx80"]}, "features is text, not ['+ptx80']"),
        ({"link": "a.bc"}, "link=a.bc: link is a tuple of texts, not 'a.bc'"),
        ({"chip": 90}, "chip is text, not 90"),
    ],
)
def test_an_option_of_a_wrong_type_from_python(options: dict[str, Any], message: str) -> None:
    from offload.targets.nvvm import NvvmTarget

    with pytest.raises(TargetError, match=re.escape(message) + "$"):
        NvvmTarget(**{"chip": "sm_90", **options})


def test_a_target_is_a_list_of_one() -> None:
    from offload.targets.host import HostTarget

    library = offload.compile(OPTIONS, targets=HostTarget())
    assert [image.target for image in library.metadata.images] == ["host"]


FLAGS = ("debug", "bare_pointers", "bare_pointers_for_host", "cache")


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", 1, None])
def test_flags_of_a_build(name: str, value: object) -> None:  # pybind had its say, or the text "no" meant yes
    with pytest.raises(OffloadError, match=rf"^{name} is True or False, not {value!r}$"):
        offload.compile(OPTIONS, **{name: value})  # type: ignore[arg-type]


def test_a_file_to_link_that_is_not_there() -> None:
    with pytest.raises(OffloadError, match=r"cannot read .*gone\.bc"):
        offload.compile(OPTIONS, targets=["host,link=gone.bc"])


@pytest.mark.parametrize("name", ["link", "objects"])
def test_one_file_needs_no_list(name: str) -> None:  # its letters were taken for files
    with pytest.raises(OffloadError, match=r"^cannot read gone: No such file or directory$"):
        offload.compile(OPTIONS, **{name: "gone"})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["link", "objects"])
@pytest.mark.parametrize("value", [None, 5, [5]])
def test_files_that_are_none(name: str, value: object) -> None:
    message = f"{name} is a path or a list of paths, not {value!r}"
    with pytest.raises(OffloadError, match=f"^{re.escape(message)}$"):
        offload.compile(OPTIONS, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [2.0, "2", None, 4, True])
def test_levels_that_are_none(level: object) -> None:
    with pytest.raises(OffloadError, match=rf"^opt is 0 to 3, not {level!r}$"):
        offload.compile(OPTIONS, opt=level, cache=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("targets", "targets is a spelling, a Target or a list of them, not 5"),
        ("gpu_binary_annotation", "gpu_binary_annotation is a text or a list of texts, not 5"),
    ],
)
def test_lists_that_are_none(name: str, message: str) -> None:
    with pytest.raises(OffloadError, match=f"^{re.escape(message)}$"):
        offload.compile(OPTIONS, **{name: 5})  # type: ignore[arg-type]


def test_annotations_that_are_none() -> None:  # pybind had its say
    with pytest.raises(OffloadError, match=r"^gpu_binary_annotation is a text or a list of texts, not \[5\]$"):
        offload.compile(OPTIONS, gpu_binary_annotation=[5])  # type: ignore[list-item]


def test_a_program_in_place_of_a_path(tmp_path: Path) -> None:
    said = "^sources are paths of files, and this is the text of a program, which offload.compile takes$"
    text = "func.func @f() {\n  return\n}\n"
    for sources in (text, [text], [OPTIONS, text]):
        with pytest.raises(OffloadError, match=said):
            offload.build(sources, tmp_path / "x.so")
    with pytest.raises(
        OffloadError, match=r"^sources is a path, a module of MLIR's Python bindings, or a list of such, not \[b'func"
    ):
        offload.build(text.encode(), tmp_path / "x.so")  # type: ignore[arg-type]
    with pytest.raises(OffloadError, match=r"^source is no text: '\\udc80' at its character 3$"):
        offload.compile("// \udc80\nfunc.func @f() { return }\n")
    with pytest.raises(TypeError, match=r"^name is what diagnostics call the program, a str, not int$"):
        offload.compile("func.func @f() { return }", name=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^builds is a list with the arguments of each build, not those of one$"):
        offload.build_all({"sources": "a.mlir", "output": "a.so"})  # type: ignore[arg-type]


def test_one_of_many_builds_is_wrong(tmp_path: Path) -> None:
    right = {"sources": EXAMPLES / "scale.mlir", "output": tmp_path / "a.so"}
    for wrong, said in [
        ("b.mlir", "builds[1] is of type str; each is a dict of build's arguments by name"),
        ({"sources": "b.mlir"}, "builds[1]: missing a required argument: 'output'"),
        ({**right, "target": "host"}, "builds[1]: got an unexpected keyword argument 'target'"),
    ]:
        with pytest.raises(TypeError, match=f"^{re.escape(said)}"):
            offload.build_all([right, wrong])  # type: ignore[list-item]
    assert not list(tmp_path.iterdir())  # none has begun


@pytest.mark.parametrize("sources", [None, 5, [5]])
def test_sources_that_are_none(sources: object, tmp_path: Path) -> None:
    message = f"sources is a path, a module of MLIR's Python bindings, or a list of such, not {sources!r}"
    with pytest.raises(OffloadError, match=f"^{re.escape(message)}$"):
        offload.build(sources, tmp_path / "x.so")  # type: ignore[arg-type]
