"""What does the machine code of bench/hardware's kernels look like beside nvcc's, where there is no GPU to measure it?

``python bench/sass.py`` compiles them for sm_90, reads the machine code with nvdisasm and prints a table: ours in MLIR,
and CUDA C++ by nvcc. It needs nvcc and nvdisasm: on PATH, in CUDA_HOME, /usr/local/cuda, or the wheels nvidia-cuda-nvcc
and nvidia-cuda-nvdisasm. None of it says how fast a kernel is. ``--save`` writes bench/results/sass.json, from which
scripts/docs_hardware.py makes a table.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from common import RESULTS, heading, version_of, write_figures  # noqa: E402 - the folders above come first
from hardware import ours, sass  # noqa: E402
from hardware.with_nvcc import SOURCE  # noqa: E402
from offload.targets import nvvm  # noqa: E402
from offload.targets.tools import (  # noqa: E402
    from_environment,
    from_folder,
    from_path,
    from_site_packages,
    run_tool,
    search,
)

import offload  # noqa: E402
from offload import artifact  # noqa: E402
from offload.errors import ToolkitError  # noqa: E402

THREADS = {"matmul_kernel": 384, "transpose": 512, "histogram": 512, "spmv": 128}
"""Threads of a block, where they are not 256."""
DYNAMIC_BYTES = {"matmul_kernel": 196608}
"""Workgroup memory that a launch adds; as in programs/matmul.mlir."""
_MANGLED = re.compile(r"^_ZN\d+_GLOBAL__N__.*?\d([a-z]+(?:[A-Z][a-z]+)*)KernelE")


def tool(name: str) -> Path:
    """nvcc or nvdisasm. Raises ToolkitError where it is not found."""
    # In the order in which the target looks for ptxas, so that both are of one release.
    steps = (
        from_environment("CUDA_HOME"), from_site_packages("nvidia/cu13"), from_folder("/usr/local/cuda"),
        from_path(name),
    )  # fmt: skip
    wheel = "nvidia-cuda-nvcc" if name == "nvcc" else f"nvidia-cuda-{name}"
    return search(name, [f"bin/{name}"], steps, f"pip install {wheel}, or set CUDA_HOME to a CUDA toolkit").need()


def disassembled(cubin: Path) -> dict[str, sass.Code]:
    """The functions of a file of machine code."""
    return sass.read(run_tool([tool("nvdisasm"), "-c", cubin], f"disassemble {cubin}"))


def of_program(program: Any, folder: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """The kernels of one of our programs."""
    (folder / "k.mlir").write_text(program.text)
    path = offload.build(folder / "k.mlir", folder / "k.so", targets=[program.targets[0]])
    read = artifact.read(path)
    for image, info in zip(read.images, read.metadata.images, strict=True):
        (folder / "k.cubin").write_bytes(image.data)
        functions = disassembled(folder / "k.cubin")
        for name, resources in info.resources.items():
            threads, dynamic = THREADS.get(name, 256), DYNAMIC_BYTES.get(name, 0)
            yield name, sass.facts(functions[name], resources, threads, dynamic)


def of_nvcc(folder: Path) -> dict[str, dict[str, int]]:
    """The kernels of bench/peers/hardware/kernels.cu, under our names."""
    cubin = folder / "peers.cubin"
    said = run_tool(
        [tool("nvcc"), "-O3", "-std=c++17", "-gencode", "arch=compute_90,code=sm_90", "-Xptxas", "-v", "-cubin", SOURCE,
         "-o", cubin],
        f"compile {SOURCE}",
    )  # fmt: skip
    functions = disassembled(cubin)
    return {
        plain(name): sass.facts(functions[name], resources, 256)
        for name, resources in nvvm._resources(said).items()
    }  # fmt: skip


def plain(name: str) -> str:
    """``layer_norm`` of the name that nvcc gives layerNormKernel. Raises ValueError for one it does not know."""
    match = _MANGLED.match(name)
    if match is None:
        raise ValueError(f"{name} is not the name of a kernel in {SOURCE.name}")
    word = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", match[1])
    return {"sum": "reduction"}.get(word, word)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Ours and nvcc's kernels, by name and then by compiler."""
    peers = of_nvcc(folder)
    found = []
    for kernel in ours.KERNELS:
        for name, own in of_program(ours.kernel_program(kernel), folder):
            found.append({"kernel": name, "offload": own, **({"nvcc": peers[name]} if name in peers else {})})
    for element in ours.ELEMENTS:
        for _, own in of_program(ours.matmul_program(element), folder):
            found.append({"kernel": f"matmul {element}", "offload": own})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the facts there")
    parser.add_argument("--save", action="store_true", help="write them to results/sass.json")
    parser.set_defaults(saved=RESULTS / "sass.json")
    given = parser.parse_args()
    try:
        versions = {name: version_of(tool(name)) for name in ("nvcc", "nvdisasm")}
        with tempfile.TemporaryDirectory() as folder:
            found = rows(Path(folder))
    except ToolkitError as error:
        print(error, file=sys.stderr)
        return 3
    for row in found:
        for compiler in ("offload", "nvcc"):
            if compiler in row:
                print(f"{row['kernel']:14} {compiler:8}", *(f"{name} {value}" for name, value in row[compiler].items()))
    write_figures(given, {**heading(__doc__, versions), "kernels": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
