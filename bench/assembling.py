"""Is PTX assembled faster in a process of its own or inside of this one?

For the kernels of bench/build.py's saxpy and thirty: ptxas as a process that is started with its PTX (``process``),
one that waits for it (``started ahead``, as builds do it: from the PTX to the end), nvPTXCompiler and nvJitLink as
libraries of this process, loaded before. One chip, and four at a time in threads. Wall and processor time, of medians;
ways take turns. A library that is not installed is named. nvPTXCompiler comes as a static library, of which a compiler
makes a shared one here.

    python bench/assembling.py [--runs N] [--json FILE] [--save]     pip install nvidia-nvptxcompiler nvidia-nvjitlink
"""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from builds.programs import programs
from builds.toolkit import wheel_toolkit
from common import RESULTS, arguments_of, heading, spread, version_of, write_figures
from offload.targets import nvvm
from offload.targets.tools import RunningTool

from offload.api import make_request
from offload.compiler.builds import emit
from offload.compiler.request import Source

CHIPS = ("sm_90", "sm_100", "sm_103", "sm_120")
PROGRAMS = ("saxpy", "thirty")
Assemble = Callable[[bytes, str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table."""
    options = arguments_of(__doc__, "runs", 15, "runs of each way", RESULTS / "assembling.json").parse_args(arguments)
    ptxas = nvvm.NvvmTarget._ptxas().need()
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        ways, missing = ways_in(Path(folder), ptxas)
        figures = [figure for name in PROGRAMS for figure in measure(name, ways, ptx_of(name, folder), options.runs)]
    print(f"{'wall ms':>9} {'cpu ms':>9}  way")
    for each in figures:
        label = f"{each['program']}, {each['chips']} at a time, {each['way']}"
        print(f"{1e3 * each['wall']['median']:9.1f} {1e3 * each['processor']['median']:9.1f}  {label}")
    for line in missing:
        print(f"missing: {line}")
    write_figures(options, {**heading(__doc__, {"ptxas": version_of(ptxas)}), "missing": missing, "ways": figures})
    return 0


def ptx_of(name: str, folder: str) -> bytes:
    """The PTX of a program's kernels for the first chip."""
    source = Path(folder) / f"{name}.mlir"
    source.write_text(programs()[name].mlir)
    (emitted,) = emit(make_request([Source.read(source)], [f"nvvm:{CHIPS[0]}"]), "isa")
    return bytes(emitted.data)


def ways_in(folder: Path, ptxas: Path) -> tuple[dict[str, Assemble | None], list[str]]:
    """Every way by name (None: the process that waits), and what is not installed."""

    def process(text: bytes, chip: str) -> None:
        tool(ptxas, folder, chip).finish(text)

    ways: dict[str, Assemble | None] = {"process": process, "started ahead": None}
    missing = []
    root = wheel_toolkit()
    static = root / "lib" / "libnvptxcompiler_static.a" if root else None
    if static and static.exists():
        ways["nvPTXCompiler"] = with_nvptxcompiler(static, folder)
    else:
        missing.append("nvPTXCompiler: pip install nvidia-nvptxcompiler")
    linker = next(iter(sorted((root / "lib").glob("libnvJitLink.so.*"))), None) if root else None
    if linker:
        ways["nvJitLink"] = with_nvjitlink(linker)
    else:
        missing.append("nvJitLink: pip install nvidia-nvjitlink")
    return ways, missing


def tool(ptxas: Path, folder: Path, chip: str) -> RunningTool:
    """ptxas, waiting for its PTX."""
    return RunningTool([ptxas, "-v", "-O3", f"-arch={chip}", "-", "-o", folder / f"{chip}.cubin"], "assemble")


def with_nvptxcompiler(static: Path, folder: Path) -> Assemble:
    """nvPTXCompiler.h's functions, called as its documentation does."""
    shared = folder / "libnvptxcompiler.so"
    whole = ["-Wl,--whole-archive", str(static), "-Wl,--no-whole-archive"]
    subprocess.run(["c++", "-shared", "-o", shared, *whole, "-lpthread", "-lm"], check=True)
    library = ctypes.CDLL(str(shared))

    def assemble(text: bytes, chip: str) -> None:
        handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        words = (ctypes.c_char_p * 3)(f"--gpu-name={chip}".encode(), b"--verbose", b"-O3")
        check(library.nvPTXCompilerCreate(ctypes.byref(handle), ctypes.c_size_t(len(text)), text))
        check(library.nvPTXCompilerCompile(handle, len(words), words))
        check(library.nvPTXCompilerGetCompiledProgramSize(handle, ctypes.byref(size)))
        check(library.nvPTXCompilerGetCompiledProgram(handle, ctypes.create_string_buffer(size.value)))
        check(library.nvPTXCompilerDestroy(ctypes.byref(handle)))

    return assemble


def with_nvjitlink(path: Path) -> Assemble:
    """nvJitLink.h's functions; their names have the major version of the library."""
    library, major = ctypes.CDLL(str(path)), path.name.rpartition(".")[2]

    def assemble(text: bytes, chip: str) -> None:
        def call(name: str, *values: object) -> None:
            check(getattr(library, f"__nvJitLink{name}_{major}_0")(*values))

        handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        words = (ctypes.c_char_p * 2)(f"-arch={chip}".encode(), b"-verbose")
        call("Create", ctypes.byref(handle), ctypes.c_uint32(len(words)), words)
        call("AddData", handle, 2, text + b"\0", ctypes.c_size_t(len(text) + 1), b"kernels.ptx")
        call("Complete", handle)
        call("GetLinkedCubinSize", handle, ctypes.byref(size))
        call("GetLinkedCubin", handle, ctypes.create_string_buffer(size.value))
        call("Destroy", ctypes.byref(handle))

    return assemble


def check(code: int) -> None:
    """Raises RuntimeError for the code of a call that failed."""
    if code:
        raise RuntimeError(f"a call failed with code {code}")


def measure(program: str, ways: dict[str, Assemble | None], ptx: bytes, runs: int) -> list[dict[str, object]]:
    """Wall and processor seconds of every way, for one chip and for all of them in threads."""
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for run in range(runs + 1):
        for name, way in ways.items():
            for count in (1, len(CHIPS)):
                taken = timed(way, ptx, CHIPS[:count])
                if run:  # the first fills the file caches
                    times.setdefault((name, count), []).append(taken)
    return [
        {
            "program": program,
            "way": name,
            "chips": count,
            "wall": spread([wall for wall, _ in taken]),
            "processor": spread([processor for _, processor in taken]),
        }
        for (name, count), taken in times.items()
    ]


def timed(way: Assemble | None, ptx: bytes, chips: Sequence[str]) -> tuple[float, float]:
    """Wall and processor seconds; with None, of processes that have been waiting for a while."""
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        tools = {} if way else {chip: tool(nvvm.NvvmTarget._ptxas().need(), Path(folder), chip) for chip in chips}
        if tools:
            time.sleep(0.1)

        def assemble(chip: str) -> None:
            if way:
                way(ptx, chip)
            else:
                tools[chip].finish(ptx)

        threads = [threading.Thread(target=assemble, args=(chip,)) for chip in chips]
        started, used = time.perf_counter(), processor_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - started, processor_time() - used


def processor_time() -> float:
    """Seconds that this process and those that it has waited for have used."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    sys.exit(main())
