"""What a changed build compiles again, and that its bytes are those of a build without a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from caching import PROGRAM, built, entries
from compiling import ALL_TARGETS, EXAMPLES, PROGRAMS

import offload

SCALE = """
  gpu.module @scale {
    gpu.func @by_two(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %two = arith.constant 2.0 : f32
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.mulf %v, %two : f32
      memref.store %w, %x[%i] : memref<?xf32>
      gpu.return
    }
  }
"""
ADD = SCALE.replace("@scale", "@add").replace("@by_two", "@two").replace("mulf", "addf")
HOST = """
  func.func @f(%x: memref<?xf32>) {
    %one = arith.constant 1 : index
    %n = arith.constant 32 : index
    gpu.launch_func @scale::@by_two blocks in (%one, %one, %one) threads in (%n, %one, %one) args(%x : memref<?xf32>)
    gpu.launch_func @add::@two blocks in (%one, %one, %one) threads in (%n, %one, %one) args(%x : memref<?xf32>)
    return
  }
"""
OTHER_HOST = HOST.replace("constant 32", "constant 16")
OTHER_ADD = ADD.replace("2.0", "3.0")


def program(*parts: str) -> str:
    return "module attributes {gpu.container_module} {" + "".join(parts) + "}\n"


class Workshop:
    """A source, a cache and an output; ``build`` says what was done and compares with a build without a cache."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.output, self.cache = folder / "p.mlir", folder / "p.so", folder / "cache"
        monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(self.cache))

    def build(self, text: str, targets: tuple[str, ...] = ("host",), **options: object) -> list[str]:
        self.source.write_text(text)
        done = built(self.source, self.output, targets, **options)
        data = self.output.read_bytes()
        built(self.source, self.output, targets, cache=False, **options)
        assert self.output.read_bytes() == data, "the cache changes what comes out"
        return [line for line in done if not line.endswith("from the cache")]


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return Workshop(tmp_path, monkeypatch)


def test_an_added_target_is_the_only_one_compiled(workshop: Workshop) -> None:
    text = program(SCALE, ADD, HOST)
    assert workshop.build(text, ("nvvm:sm_90",)) == [
        "compiling scale for nvvm:sm_90",
        "compiling add for nvvm:sm_90",
        "compiling host code",
        "linking",
    ]
    assert workshop.build(text, ("rocdl:gfx942", "nvvm:sm_90")) == [
        "compiling scale for rocdl:gfx942",
        "compiling add for rocdl:gfx942",
        "linking",
    ]
    # Their order is no matter, nor whether there are fewer.
    assert workshop.build(text, ("nvvm:sm_90", "rocdl:gfx942")) == ["linking"]
    assert workshop.build(text, ("rocdl:gfx942",)) == ["linking"]
    assert workshop.build(text, ("rocdl:gfx942",)) == []
    assert workshop.build(text, ("rocdl:gfx942,O=1",)) == [
        "compiling scale for rocdl:gfx942",
        "compiling add for rocdl:gfx942",
        "linking",
    ]


def test_changed_host_code_has_no_kernel_compiled(workshop: Workshop) -> None:
    targets = ("nvvm:sm_90", "rocdl:gfx942", "host")
    workshop.build(program(SCALE, ADD, HOST), targets)
    assert workshop.build(program(SCALE, ADD, OTHER_HOST), targets) == ["compiling host code", "linking"]
    assert workshop.build(program(SCALE, ADD, HOST), targets, opt=1) == ["compiling host code", "linking"]


def test_a_changed_kernel_is_the_only_one_compiled(workshop: Workshop) -> None:
    workshop.build(program(SCALE, ADD, HOST), ("nvvm:sm_90", "host"))
    assert workshop.build(program(SCALE, OTHER_ADD, HOST), ("nvvm:sm_90", "host")) == [
        "compiling add for nvvm:sm_90",
        "compiling add for host:x86-64",
        "linking",
    ]


def test_lines_matter_only_where_they_are_in_the_code(workshop: Workshop) -> None:
    targets = ("nvvm:sm_90", "host")
    workshop.build(PROGRAM, targets)
    assert workshop.build("// A comment.\n\n" + PROGRAM, targets) == ["linking"]
    workshop.build(PROGRAM, ("nvvm:sm_90",), debug=True)
    assert workshop.build("\n" + PROGRAM, ("nvvm:sm_90",), debug=True) == [
        "compiling saxpy_kernel for nvvm:sm_90",
        "compiling host code",
        "linking",
    ]


@pytest.mark.parametrize("name", ["assertions", "memory", "prints", "temporaries", "strided", "async"])
def test_every_place_that_is_in_the_code_is_in_the_key(name: str, workshop: Workshop) -> None:
    """Moved down by three lines, and then under another name; ``build`` compares the bytes."""
    text = (PROGRAMS / f"{name}.mlir").read_text()
    for moved in (text, f"//\n//\n//\n{text}"):
        workshop.build(moved, ("host", "rocdl:gfx942"))
    workshop.source = workshop.source.with_name("q.mlir")
    workshop.build(text, ("host", "rocdl:gfx942"))


def test_a_moved_assertion_is_compiled_again(workshop: Workshop) -> None:
    check = '%ok = arith.cmpi ult, %i, %i : index\n cf.assert %ok, "no"\n %two'
    text = program(SCALE.replace("%two", check, 1), HOST.replace("@add::@two", "@scale::@by_two"))
    assert "compiling scale for host:x86-64" in workshop.build(text)
    assert workshop.build("// Moved.\n" + text) == ["compiling scale for host:x86-64", "linking"]


@pytest.mark.parametrize("kind", ["isa", "offload", "fatbin"])
def test_every_format_is_kept_with_what_is_known_of_it(kind: str, workshop: Workshop) -> None:
    targets = tuple(f"{target},format={kind}" for target in ("nvvm:sm_90", "rocdl:gfx942"))
    workshop.build(program(SCALE, ADD, HOST), targets)
    assert workshop.build(program(SCALE, ADD, OTHER_HOST), targets) == ["compiling host code", "linking"]


def test_compiled_code_that_a_program_carries_is_not_kept_once_more(workshop: Workshop) -> None:
    text = (PROGRAMS / "ready.mlir").read_text()
    lines = [f"taking the image of {name} for nvvm:sm_90" for name in ("both", "chosen", "carried")]
    assert [line for line in workshop.build(text, ("nvvm:sm_90",)) if line in lines] == lines
    assert entries(workshop.cache)["image"] == []


def test_kernels_of_all_examples_are_compiled_once(workshop: Workshop) -> None:
    for path in sorted(EXAMPLES.glob("*.mlir")):
        workshop.build(path.read_text(), ALL_TARGETS)
        assert workshop.build(f"// Once more.\n{path.read_text()}", ALL_TARGETS)[-1] == "linking"


def test_one_build_many_threads(workshop: Workshop) -> None:
    """Threads that ask for one program wait for the first of them."""
    from concurrent.futures import ThreadPoolExecutor

    workshop.source.write_text(program(SCALE, ADD, HOST))
    with ThreadPoolExecutor(8) as pool:
        outputs = [workshop.output.with_name(f"{i}") / "p.so" for i in range(8)]
        for output in outputs:
            output.parent.mkdir()
        said = list(pool.map(lambda output: built(workshop.source, output), outputs))
    assert sum("compiling host code" in lines for lines in said) == 1
    assert len({output.read_bytes() for output in outputs}) == 1
    assert offload.load(outputs[0]).functions


def test_bitcode_that_changes_while_it_is_linked_is_not_kept(tmp_path: Path) -> None:
    source, linked = tmp_path / "p.mlir", tmp_path / "q.ll"
    source.write_text("""gpu.module @m {
      llvm.func @q() -> i32
      gpu.func @k(%x: memref<1xi32>) kernel {
        %c0 = arith.constant 0 : index
        %v = llvm.call @q() : () -> i32
        memref.store %v, %x[%c0] : memref<1xi32>
        gpu.return
      }
    }""")

    def give(number: int) -> None:
        (tmp_path / "other").write_text(f"define i32 @q() {{\n ret i32 {number}\n}}\n")
        (tmp_path / "other").replace(linked)

    def built(name: str, during: int | None = None) -> int:
        def progress(text: str) -> None:
            if during is not None and text.startswith("compiling m"):
                give(during)

        library = offload.load(
            offload.build(source, tmp_path / name, targets=["host"], link=[linked], progress=progress)
        )
        x = np.zeros(1, np.int32)
        library.kernels.k[1, 1](x)
        return int(x[0])

    give(11)
    assert built("a.so", during=22) == 22
    give(11)
    assert built("b.so") == 11


def test_what_is_gone_after_a_build_is_no_error(tmp_path: Path) -> None:
    linked = tmp_path / "q.ll"
    linked.write_text("define i32 @q() {\n ret i32 1\n}\n")

    def progress(text: str) -> None:
        if text == "linking":
            linked.unlink()

    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "a.so", targets=["host"], link=[linked], progress=progress)
    assert path.exists()
