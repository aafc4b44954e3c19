"""Builds small artifacts for the tests of the Python runtime: C functions, a C kernel image, the runtime."""

from __future__ import annotations

import atexit
import functools
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from runtime_sources import RUNTIME

import offload.runtime
from offload.artifact import (
    Argument,
    Image,
    ImageInfo,
    KernelSignature,
    Metadata,
    Signature,
    container_object,
)
from offload.errors import SignatureError
from offload.paths import package_file
from offload.runtime import Library

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu11", "-O1", "-fPIC", "-D_GNU_SOURCE", f"-I{RUNTIME}"]


def scalar(dtype: str, name: str = "x") -> Argument:
    return Argument(name, "scalar", dtype)


def memref(dtype: str, *shape: int | None, name: str = "x", space: str = "any", **layout: object) -> Argument:
    return Argument(name, "memref", dtype, shape, space=space, **layout)  # type: ignore[arg-type]


ANY = memref("float32", None)


def _functions() -> tuple[Signature, ...]:
    n = scalar("int64", "n")
    loose = memref("float32", None, None, strides=(None, None), offset=None)
    echoes = ("int8", "uint64", "int64", "bool", "float32", "float64", "float16", "bfloat16")
    table: list[tuple[str, list[Argument], list[Argument]]] = [
        ("scale", [scalar("float32", "a"), ANY], []),
        ("weigh", [memref("float32", None, 4)], [scalar("float64")]),
        ("weigh_strided", [loose], [scalar("float64")]),
        ("increment", [memref("float32")], []),
        ("fourth", [memref("float32", None, strides=(1,), offset=4)], [scalar("float32")]),
        (
            "layout",
            [memref("float32", None, 4, strides=(None, 1), offset=0), memref("int64", 5, name="out")],
            [],
        ),
        ("conjugate", [scalar("complex64", "z")], [scalar("complex64")]),
        ("iota", [n], [memref("int32", None)]),
        ("twice", [n], [memref("int32", None), memref("int32", None)]),
        (
            "several",
            [n],
            [
                scalar("bool"),
                memref("float64", 2, None),
                scalar("float16"),
                scalar("complex64"),
                scalar("int8"),
            ],
        ),
        ("same", [ANY], [ANY]),
        ("tail", [ANY], [memref("float32", None, strides=(1,), offset=1)]),
        ("constant", [], [memref("int32", 3)]),
        ("device_made", [n], [memref("float32", None, space="device")]),
        ("on_device", [memref("float32", None, space="device")], []),
        ("on_host", [memref("float32", None, space="host")], []),
        ("fails", [n], [memref("int32", None)]),
        ("wait_for", [memref("int64", 1, name="flag")], []),
        ("brain", [memref("bfloat16", None)], []),
        ("brain_device", [memref("bfloat16", None, space="device")], []),
        ("small", [scalar("float8_e4m3fn")], [scalar("float8_e4m3fn")]),
        ("from_the_future", [memref("float3", None)], []),
        ("use", [memref("float32", None, name="in"), memref("float32", None, name="1")], []),
        *((f"echo_{dtype}", [scalar(dtype)], [scalar(dtype)]) for dtype in echoes),
    ]
    symbols = {
        "weigh_strided": "weigh",
        "brain": "bytes",
        "brain_device": "bytes",
        "small": "echo_int8",
        "from_the_future": "bytes",
        "use": "on_host",
    }
    return tuple(
        Signature(name, f"_mlir_ciface_{symbols.get(name, name)}", tuple(args), tuple(results))
        for name, args, results in table
    )


def _kernels() -> tuple[KernelSignature, ...]:
    vector = [memref("float32", None, name=name, space="device") for name in "xy"]
    scalars = [
        scalar(dtype, name)
        for name, dtype in zip("bihfcd", ("bool", "int8", "float16", "bfloat16", "complex128", "float64"), strict=True)
    ]
    return (
        KernelSignature("saxpy", "kernels", (scalar("float32", "a"), *vector)),
        KernelSignature("report", "kernels", (memref("float64", None, name="out", space="device"), *scalars)),
    )


@functools.cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="offload-tests-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def compile_c(*arguments: str | Path) -> None:
    result = subprocess.run(["cc", *FLAGS, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def real_runtime() -> tuple[str | Path, ...]:
    """The runtime, linked in as artifacts have it."""
    return "-Wl,-u,offload_api", package_file("lib/libmgpu.a")


@functools.cache
def host_image() -> Image:
    path = folder() / "kernels.host.so"
    compile_c("-shared", "-fvisibility=hidden", "-o", path, HERE / "kernels.c")
    return Image(
        "kernels",
        "host",
        "",
        f"{platform.machine()}-unknown-linux-gnu",
        "bin",
        ("saxpy", "report"),
        path.read_bytes(),
    )


def metadata(**changes: object) -> Metadata:
    image = host_image()
    info = ImageInfo(image.module, image.target, image.chip, image.format, image.kernels)
    fields: dict[str, object] = {
        "functions": _functions(),
        "kernels": _kernels(),
        "images": (info,),
        **changes,
    }
    return Metadata(**fields)  # type: ignore[arg-type]


def build(name: str, meta: Metadata, *inputs: str | Path) -> Path:
    """Links an artifact from C sources, objects and compiler flags."""
    container = folder() / f"{name}.container.o"
    container.write_bytes(container_object([host_image()] if meta.images else [], meta, platform.machine()))
    path = folder() / f"{name}.so"
    compile_c("-shared", "-o", path, HERE / "functions.c", container, *inputs)
    return path


@functools.cache
def real_path() -> Path:
    return build("real", metadata(), *real_runtime())


def fake_path(name: str, size: str = "sizeof(mgpuApi)", version: str = "version", **changes: object) -> Path:
    return build(
        name,
        metadata(**changes),
        HERE / "fake.c",
        f"-DFAKE_SIZE={size}",
        f"-DFAKE_VERSION={version}",
    )


@functools.cache
def real() -> Library:
    """An artifact with the real runtime; its backend is the CPU."""
    library = offload.runtime.load(real_path())
    library.use("host")
    return library


@functools.cache
def fake() -> Library:
    """An artifact with the fake runtime, which says that it has a GPU."""
    functions = (
        *_functions(),
        Signature("synchronized", "_mlir_ciface_synchronized", (), (scalar("int64"),)),
    )
    return offload.runtime.load(fake_path("fake", functions=functions))


def refusal(function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(SignatureError) as caught:
        function(*args, **kwargs)
    return str(caught.value)
