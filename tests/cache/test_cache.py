"""The cache of whole libraries: what hits, and what makes another key."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from caching import OTHER, PROGRAM, Refused, entries, works
from compiling import EXAMPLES, PROGRAMS, python

import offload
from offload.compiler import toolchain
from offload.compiler.keys import Keys
from offload.compiler.request import Source


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def test_a_program_is_compiled_once(folder: Path, no_compiler: Callable[[], None]) -> None:
    assert works(offload.compile(PROGRAM, targets=["host"]))
    before = {path: path.read_bytes() for paths in entries(folder).values() for path in paths}
    assert [len(paths) for paths in entries(folder).values()] == [1, 1, 1]
    no_compiler()
    assert works(offload.compile(PROGRAM, targets=["host"]))
    assert {path: path.read_bytes() for paths in entries(folder).values() for path in paths} == before


def test_build_and_compile_share_what_they_compiled(folder: Path, tmp_path: Path) -> None:
    source = EXAMPLES / "saxpy.mlir"
    without = offload.build(source, tmp_path / "saxpy.so", targets=["host"], cache=False)
    data = without.read_bytes()
    assert not folder.exists()
    for _ in range(2):
        offload.build(source, tmp_path / "saxpy.so", targets=["host"])
        assert (tmp_path / "saxpy.so").read_bytes() == data
    offload.build(source, tmp_path / "renamed.so", targets=["host"])  # a library does not hold its file's name
    assert (tmp_path / "renamed.so").read_bytes() == data
    assert [len(paths) for paths in entries(folder).values()] == [1, 1, 1]
    assert works(offload.load(tmp_path / "renamed.so"))


def test_whatever_decides_the_bytes_is_in_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(
        source: str = PROGRAM, targets: tuple[str, ...] = ("host",), *, name: str = "<string>", **options: object
    ) -> str:
        request = offload.api.make_request([Source(name, source.encode())], targets, **options)  # type: ignore[arg-type]
        return Keys(request).library()

    link, same = folder.parent / "a.bc", folder.parent / "b.bc"
    folder.parent.mkdir(parents=True)
    link.write_bytes(b"one")
    same.write_bytes(b"one")
    keys = [
        key(),
        key(OTHER),
        key(PROGRAM + "\n"),
        key(name="saxpy.mlir"),
        key(opt=1),
        key(debug=True),
        key(targets=("host,debug",)),
        key(targets=("host:O=1",)),
        key(targets=("host:native",)),
        key(targets=("nvvm:sm_90",)),
        key(targets=("nvvm:sm_80",)),
        key(targets=("nvvm:sm_90,ftz",)),
        key(targets=("nvvm:sm_90,format=fatbin",)),
        key(targets=("rocdl:gfx942",)),
        key(targets=("host", "nvvm:sm_90")),
        key(runtime="shared"),
        key(soname="libsaxpy.so"),
        key(link=[link]),
        key(targets=(f"host,link={link}",)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(link=[link]) == key(link=[same])
    assert key(targets=(f"host,link={link}",)) == key(targets=(f"host,link={same}",))
    linked = key(link=[link])
    link.write_bytes(b"two")
    assert key(link=[link]) != linked
    assert key(link=[link]) != key(objects=[link])
    script = link.with_name("script")
    named = [key(targets=(f"host,lld=--defsym=x={script} -T {script}",)) for text in "ab" if script.write_text(text)]
    named += [key(targets=(f"nvvm:sm_90,ptxas=--options-file={script}",)) for text in "ab" if script.write_text(text)]
    for option in ("@", "-T"):
        named += [key(targets=(f"host,lld={option}{script}",)) for text in "ab" if script.write_text(text)]
    assert len(set(named)) == 8
    # With lines, the folder that names are relative to is in the library.
    debug = key(debug=True)
    monkeypatch.chdir(folder.parent)
    assert key(debug=True) != debug
    assert key() == keys[0]


def test_an_archive_of_names_is_not_all_that_is_linked(folder: Path, tmp_path: Path) -> None:
    """A thin archive names its members, which its own bytes say nothing of."""
    source = (
        "func.func private @one() -> i64\nfunc.func @f() -> i64 {\n %r = call @one() : () -> i64\n return %r : i64\n}"
    )
    for value in (1, 2):
        (tmp_path / "one.c").write_text(f"long one(void) {{ return {value}; }}")
        subprocess.run(["cc", "-c", "-fPIC", "one.c"], cwd=tmp_path, check=True)
        subprocess.run(["ar", "rcT", "one.a", "one.o"], cwd=tmp_path, check=True)
        assert offload.compile(source, targets=["host"], objects=[tmp_path / "one.a"]).f() == value


def test_a_tool_that_changed_makes_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def key() -> str:
        source = Source("<string>", PROGRAM.encode())
        return Keys(offload.api.make_request([source], ["nvvm:sm_90"])).library()

    for name in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
        (tmp_path / "cuda" / name).parent.mkdir(parents=True)
        (tmp_path / "cuda" / name).write_bytes(b"one")
    usual = key()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    mine = key()
    assert mine != usual
    (tmp_path / "cuda" / "bin" / "ptxas").write_bytes(b"two")
    assert key() not in (usual, mine)
    # The same tools somewhere else are the same.
    (tmp_path / "cuda" / "bin" / "ptxas").write_bytes(b"one")
    shutil.copytree(tmp_path / "cuda", tmp_path / "elsewhere")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "elsewhere"))
    assert key() == mine


def test_the_code_of_a_target_is_in_the_key(folder: Path, tmp_path: Path) -> None:
    """Of a module, of a package, and code that has no file at all."""
    code = """
import sys, types
sys.path.insert(0, ".")
text = "from offload.targets.host import HostTarget as Base\\nclass Mine(Base): pass\\n"
if sys.argv[1] == "nowhere":
    module = types.ModuleType("nowhere")
    exec(text, module.__dict__)
    sys.modules["nowhere"] = module
import importlib
module = importlib.import_module(sys.argv[1])
from offload.api import make_request
from offload.compiler.keys import Keys
from offload.compiler.request import Source
print(Keys(make_request([Source("p", b"module {}")], [module.Mine(chip="x86-64")])).library())
"""

    def key(name: str) -> str:
        return python(code, name, cwd=tmp_path, environment={"OFFLOAD_CACHE_DIR": str(folder)})

    (tmp_path / "package" / "deep").mkdir(parents=True)
    text = "from offload.targets.host import HostTarget as Base\nclass Mine(Base): pass\n"
    (tmp_path / "package" / "deep" / "__init__.py").touch()
    for name in ("module.py", "package/__init__.py", "package/part.py", "package/deep/part.py"):
        (tmp_path / name).write_text(text)
    keys = {name: key(name) for name in ("module", "package.part", "package.deep.part", "nowhere")}
    assert [name for name in keys if key(name) == keys[name]] == ["module", "package.part", "package.deep.part"]
    (tmp_path / "module.py").write_text(text + "# Changed.\n")
    (tmp_path / "package" / "helper.py").write_text("# New.\n")
    assert [name for name in keys if key(name) == keys[name]] == []


def test_what_was_changed_under_a_process_is_not_kept_for_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process has loaded what was there before, of the installation and, where it compiles itself, of targets."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(toolchain, "_first", {})
    (tmp_path / "changed_target.py").write_text(
        "from offload.targets.host import HostTarget as Base\nclass Mine(Base): pass\n"
    )
    mine = importlib.import_module("changed_target").Mine(chip="x86-64")

    def key(target: object) -> str:
        return Keys(offload.api.make_request([Source("<string>", PROGRAM.encode())], [target])).library()

    def of_another_process(target: object) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(toolchain, "_first", {})
            return key(target)

    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    before = key(mine)
    with (tmp_path / "changed_target.py").open("a") as file:
        file.write("# Changed.\n")
    assert len({before, key(mine), of_another_process(mine)}) == 3
    monkeypatch.setenv("OFFLOAD_ISOLATE", "1")
    assert key(mine) == of_another_process(mine)  # a worker loads it again
    usual = key("host")
    (tmp_path / "changed.py").touch()
    ours = [*toolchain._our_python(), tmp_path / "changed.py"]
    monkeypatch.setattr(toolchain, "_our_python", lambda: ours)
    assert len({usual, key("host"), of_another_process("host")}) == 3


def test_a_hit_loads_no_llvm(folder: Path, tmp_path: Path) -> None:
    code = f"""
import sys, offload
for target in ("host", "host:native", "nvvm:sm_90"):
    offload.compile({str(EXAMPLES / "saxpy.mlir")!r}, targets=[target])
print("offload.mlir._native" in sys.modules)
"""
    given = {"OFFLOAD_CACHE_DIR": str(folder)}
    assert python(code, cwd=tmp_path, environment=given) == "True\n"
    assert python(code, cwd=tmp_path, environment=given) == "False\n"


def test_another_program_is_compiled(folder: Path, no_compiler: Callable[[], None]) -> None:
    offload.compile(PROGRAM, targets=["host"])
    assert works(offload.compile(OTHER, targets=["host"]), "other")
    assert len(entries(folder)["library"]) == 2
    no_compiler()
    with pytest.raises(Refused):
        offload.compile(PROGRAM, targets=["host"], opt=0)


def test_messages_name_the_file_that_was_compiled(folder: Path, tmp_path: Path) -> None:
    """Two files with one text are two programs where a message says which of them it comes from."""
    text = (PROGRAMS / "assertions.mlir").read_text()
    for name in ("first.mlir", "second.mlir"):
        (tmp_path / name).write_text(text)
        data = offload.build(tmp_path / name, tmp_path / "a.so", targets=["host"]).read_bytes()
        assert [other for other in (b"first.mlir:", b"second.mlir:") if other in data] == [f"{name}:".encode()]


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "another's", "writable"])
@pytest.mark.parametrize("stage", ["library", "image", "host"])
def test_a_damaged_entry_is_built_again(folder: Path, stage: str, damage: str, tmp_path: Path) -> None:
    source = EXAMPLES / "saxpy.mlir"
    wanted = offload.build(source, tmp_path / "a.so", targets=["host"]).read_bytes()
    offload.compile(OTHER, targets=["host"])
    (entry, other) = sorted(entries(folder)[stage], key=lambda path: path.stat().st_mtime_ns)
    data = entry.read_bytes()
    position = len(data) // 3
    harm = {
        "cut": data[:position],
        "empty": b"",
        "changed": data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :],
        "another's": other.read_bytes(),
        "writable": data,
    }
    entry.unlink()
    entry.write_bytes(harm[damage])
    entry.chmod(0o622 if damage == "writable" else 0o600)
    if stage != "library":
        for path in entries(folder)["library"]:
            path.unlink()
    offload.build(source, tmp_path / "a.so", targets=["host"])
    assert (tmp_path / "a.so").read_bytes() == wanted
    assert entry.read_bytes() == data
    assert entry.stat().st_mode & 0o777 == 0o600


def test_failed_builds_leave_nothing(folder: Path) -> None:
    with pytest.raises(offload.CompileError):
        offload.compile("module { this is no operation }\n", targets=["host"])
    assert entries(folder) == {"library": [], "image": [], "host": []}
    assert [path for name in ("locks", "tmp") for path in (folder / name).iterdir()] == []


def test_who_looks_at_the_passes_gets_them_run(folder: Path, tmp_path: Path) -> None:
    source = EXAMPLES / "saxpy.mlir"
    offload.build(source, tmp_path / "a.so", targets=["host"], reproducer=tmp_path / "reproducer")
    assert not folder.exists()


def test_text_and_paths_are_told_apart(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saxpy.mlir").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    for source in ("saxpy.mlir", Path("saxpy.mlir"), PROGRAM):
        assert works(offload.compile(source, targets=["host"]))
    with pytest.raises(offload.OffloadError, match=r"^cannot read gone\.mlir: No such file or directory$"):
        offload.compile("gone.mlir", targets=["host"])
    with pytest.raises(offload.OffloadError, match=r"^cannot read .*: embedded null byte$"):
        offload.compile("\0", targets=["host"])


def test_a_path_may_have_braces(tmp_path: Path) -> None:
    """As folders of templates have them."""
    source = tmp_path / "{{name}}.mlir"
    source.write_text(PROGRAM)
    assert works(offload.compile(str(source), targets=["host"]))
    offload.build(str(source), tmp_path / "a.so", targets=["host"])
    with pytest.raises(offload.OffloadError, match="this is the text of a program"):
        offload.build("func.func @f() {}", tmp_path / "a.so", targets=["host"])


def test_a_loaded_library_outlives_its_entry(folder: Path) -> None:
    library = offload.compile(PROGRAM, targets=["host"])
    shutil.rmtree(folder)
    assert works(library)


def test_what_changes_while_it_is_built_is_not_kept(tmp_path: Path) -> None:
    """A file that is another one when the linker reads it: what comes out is not what the key says."""
    import subprocess

    import numpy as np

    def compiled(number: int) -> bytes:
        (tmp_path / "q.c").write_text(f"int q(void) {{ return {number}; }}")
        subprocess.run(["cc", "-c", "-fPIC", "-o", tmp_path / f"q{number}.o", tmp_path / "q.c"], check=True)
        return (tmp_path / f"q{number}.o").read_bytes()

    first, second, path = compiled(11), compiled(22), tmp_path / "q.o"
    source = tmp_path / "p.mlir"
    source.write_text("""
    func.func private @q() -> i32
    func.func @get(%x: memref<1xi32>) {
      %c0 = arith.constant 0 : index
      %v = call @q() : () -> i32
      memref.store %v, %x[%c0] : memref<1xi32>
      return
    }
    """)

    def built(name: str, during: bytes | None = None) -> int:
        def progress(text: str) -> None:
            if during is not None:
                (tmp_path / "other.o").write_bytes(during)
                (tmp_path / "other.o").replace(path)

        library = offload.load(
            offload.build(source, tmp_path / name, targets=["host"], objects=[path], progress=progress)
        )
        x = np.zeros(1, np.int32)
        library.get(x)
        return int(x[0])

    path.write_bytes(first)
    assert built("a.so", during=second) == 22
    path.write_bytes(first)
    assert built("b.so") == 11
    assert built("c.so") == 11
