"""Writes docs/targets.md from the fields of the targets' classes; ``--check`` only compares."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from offload.targets import Target, options, registry

PAGE = Path(__file__).resolve().parent.parent / "docs" / "targets.md"
HEAD = """# Targets

A target is written `NAME:CHIP,OPTION,OPTION=VALUE`: `nvvm:sm_90a,O=2,fast,ftz`, `rocdl:gfx942,wave64`, `host`. `native`
stands for what is in the machine. `offload targets` lists the chips. This page is written by `scripts/docs_targets.py`
from the classes in `targets/`. That a chip is listed says that code for it is made;
[On hardware](hardware.md) says which have run it.

| option | takes | default | {names} | meaning |
|---|---|---|{lines}---|
"""
TAIL = """
Options of a build as a whole, on the command line and in Python:

| command line | Python | meaning |
|---|---|---|
| `-g` | `debug=True` | `debug` for every target, and line information in the host code |
| `--bare-pointers` | `bare_pointers=True` | `bare_pointers` for every target, and the same in launches |
| `--bare-pointers-for-host` | `bare_pointers_for_host=True` | host functions as C sees them, and declared ones |
| `-O LEVEL` | `opt=LEVEL` | level of the host code |
| `--arch ARCH` | `arch=ARCH` | `x86_64` or `aarch64`: [the CPU](host.md) of the library; not for `offload.compile` |
| `--link FILE` | `link=[FILE]` | bitcode or LLVM IR text for the kernels of every target |
| `--object FILE` | `objects=[FILE]` | object file or archive for the host code |
| `--runtime shared` | `runtime="shared"` | the library needs `libmgpu.so`; not for `offload.compile` |
| `--gpu-binary-annotation NAME` | `gpu_binary_annotation=NAME` | it holds compiled code ([programs](index.md)) |
| `--reproducer DIR` | `reproducer=DIR` | where a pass fails, the IR before it; not for `offload.compile` |
| `--no-cache` | `cache=False` | everything is compiled, nothing kept ([the cache](caching.md)) |
| `--executor URL` | `executor=URL` | it is compiled elsewhere ([builds](building.md)) |

## Notes

* **Line information** names the source as it was given to the build; relative names start at the folder of the
  build. It goes with every level.
* **index=32** changes arithmetic and addresses inside kernels. Launches stay as they are: a parameter is passed by
  its address, of which a kernel with 32-bit indices reads the low half, so targets of both widths stand in one
  library. Values that do not fit are not noticed. Kernels whose memrefs have `index` elements, or that take an
  address as an index, are refused.
* **Bare pointers** need memrefs of static shape with the identity layout; others are an error at the kernel. The
  kernels' names, types and `lib.kernels.k[grid, block](array)` stay the same.
* **Bare pointers for the host** make `f(float *x)` of `@f(%x: memref<4xf32>)`: for the public functions of a program,
  and for those it declares and calls (in an `--object`). A returned memref is a pointer, two results a struct.
  Python calls as ever. A declaration with `llvm.emit_c_interface` is called through that interface.
* **max_threads** is a promise to the vendor's compiler. A `known_block_size` of a kernel comes first; one that is
  larger is an error. On the CPU a launch with a larger block fails with a `DeviceError`, as the drivers do.
* **link** takes bitcode whose triple and data layout are the target's, or that names none. Of it only what the
  kernels call goes into the image; a file that another one needs comes behind that one. A function that stays
  undefined, or is of another type than the program declares, is an error at its call.
* **format**: `bin` loads everywhere; `fatbin` adds PTX for newer chips (NVIDIA) or is clang's bundle (AMD); `isa`
  is PTX, which the driver compiles (NVIDIA), or assembly for readers; `offload` is LLVM bitcode for other tools.
  What no driver loads says so when a kernel is launched. The other names that MLIR's `gpu-module-to-binary` has for
  them (`binary`, `fatbinary`, `assembly`, `offloading`, `llvm`) will do too.
* **Loops of a thread** (`scf.for`) that only load take four steps at a time on GPUs, so that four loads
  are on their way at once; what steps hand on, such as a sum, keeps its order. On NVIDIA's this is done where the
  step is no number: ptxas does it for the others. `llvm.loop_annotation` on a loop says otherwise, and reaches LLVM.
* **Matrices of `gpu.subgroup_mma`** are those of NVIDIA's warp instructions, for every target: 32 threads have one in
  common. AMD's matrix units multiply where they have the shape: 16 rows, 16 columns, `f16` or 8-bit integers, on
  gfx11 and gfx12 with waves of 32 threads; on gfx908, gfx90a, gfx94x and gfx950 `f16`, `si8` and `f32`, where it is
  known that 64 threads ask for the same: blocks of a constant size, a multiple of 64, whose matrices are named and
  whose branches are taken by `gpu.subgroup_id`, block ids, arguments and constants. Elsewhere, and on the CPU, each
  thread multiplies for its part, and so it does on gfx125x, whose units have other shapes. Where the units of another
  chip are not used, a warning says why. Sums of `f16` are added up as `f32` there, and `f32` is not rounded to `tf32`
  first. Those of gfx90a take denormal numbers of `f16` for zero, and denormal sums of them.
* **Workgroup memory** begins, for `nvvm`, where the instructions want it that take it as tiles: at multiples of 128
  bytes for TMA, of 256, 512 or 1024 with a swizzle, of 32 for `gpu.subgroup_mma` and of 16 for `nvgpu.ldmatrix`. An
  `alignment` of the program's own is only raised. Tiles inside of one memory lie where the program puts them.
"""


def render() -> str:
    classes = registry().all()
    fields: dict[str, dataclasses.Field[object]] = {}
    for cls in (Target, *classes.values()):
        fields |= {field.name: field for field in dataclasses.fields(cls)}
    names = sorted(classes)
    lines = []
    for name, field in fields.items():
        if not options.meaning(field):
            raise SystemExit(f"option {name} has no meaning: declare it with offload.targets.options.option")
        default = "" if field.default in ("", (), 0, False) else f"`{field.default}`"
        marks = ["yes" if name in {f.name for f in dataclasses.fields(classes[cls])} else "" for cls in names]
        lines.append(
            f"| `{name}` | {options.values(field)} | {default} | {' | '.join(marks)} | {options.meaning(field)} |"
        )
    head = HEAD.format(names=" | ".join(f"`{name}`" for name in names), lines="---|" * len(names))
    return head + "\n".join(lines) + "\n" + TAIL


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
