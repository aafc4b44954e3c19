"""The last step: host object, images, metadata and runtime into one shared library."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from offload.artifact.meta import INTERFACE, is_name, own_symbol
from offload.compiler.native import failures, native
from offload.compiler.request import BuildRequest
from offload.errors import CompileError, Diagnostic, LinkError, OffloadError
from offload.targets.sysroot import Sysroot


def link(
    host_object: bytes,
    container_object: bytes,
    exported: Sequence[str],
    request: BuildRequest,
    folder: Path,
    said_of: Callable[[str, str], Diagnostic | None] = lambda name, message: None,
) -> bytes:
    """The shared library's bytes. Raises LinkError with the linker's own words.

    ``said_of`` puts a message about a function to where the program declares it; None where it does not.
    """
    _check_objects(request.objects)
    host, container, script, result = (folder / file for file in ("host.o", "images.o", "exports.map", "result.so"))
    host.write_bytes(host_object)
    container.write_bytes(container_object)
    sysroot, static = Sysroot(request.architecture), request.runtime == "static"
    # offload_api is in libmgpu.so already where the runtime is shared.
    symbols = [*exported, "offload_modules", *(["offload_api"] if static else [])]
    # For programs in C++, of which two libraries may have functions of one name.
    aliased = [symbol for symbol in symbols if request.soname and is_name(symbol)]
    own = {own_symbol(request.soname, symbol): symbol for symbol in aliased}
    names = "".join(f'    "{symbol}";\n' for symbol in (*symbols, *own))
    script.write_text("{\n  global:\n" + names + "  local: *;\n};\n", encoding="utf-8")
    if static:
        mgpu = ["-u", "offload_api", str(sysroot.runtime("libmgpu.a"))]
    else:
        shared = sysroot.runtime("libmgpu.so")
        mgpu = [str(shared), "-rpath", str(shared.parent)]
    arguments = [
        # nodelete: threads of the runtime's pool run in this library until the process ends.
        *("-shared", "-z", "now", "-z", "noexecstack", "-z", "nodelete"),
        # Bsymbolic: two libraries in one process must not bind to each other.
        *("-Bsymbolic", "--no-undefined", "--build-id=none", "--hash-style=gnu"),
        *(["-soname", request.soname] if request.soname else []),
        *(f'--defsym="{name}"="{symbol}"' for name, symbol in own.items()),
        *(f"--version-script={script}", str(host), str(container)),
        *map(str, request.objects),
        *mgpu,
        # The print functions of MLIR's runner, for programs that declare them (or vector.print) and define none.
        *(str(sysroot.runtime("liboffload_runner.a")), str(sysroot.runtime("liboffload_builtins.a"))),
        *("--as-needed", *map(str, sysroot.system_libraries()), "-o", str(result)),
    ]
    try:
        with failures((), "linking"):
            native().link_elf(arguments)
    except CompileError as error:
        # Our own files are in a folder that is gone then.
        raise _explained(str(error).replace(f"{folder}/", ""), request.architecture, said_of) from error
    return result.read_bytes()


_LINKED = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")
_SCRIPT = re.compile(rb"\s*(?:/\*|[A-Z_]+\s*\()")
"""How linker scripts begin, as libc.so is one; lld takes any text, an empty one too, for such."""


def _check_objects(paths: Sequence[Path]) -> None:
    """Raises LinkError for a file that is nothing to link, and OffloadError for one that cannot be read."""
    for path in paths:
        try:
            with path.open("rb") as file:
                head = file.read(256)
        except OSError as error:
            raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error
        if not head.startswith(_LINKED) and not _SCRIPT.match(head):
            raise LinkError(
                f"cannot link {path}: it is no object file, archive or shared library of ELF; sources in C are "
                "compiled before (cc -c -fPIC), sources in MLIR are given as such"
            )


def _explained(message: str, architecture: str, said_of: Callable[[str, str], Diagnostic | None]) -> LinkError:
    names = dict.fromkeys(re.findall(r"undefined symbol: (\S+)", message))
    if not names:
        advice = f"\n  this library is for {architecture}, and so must its object files be"
        return LinkError(message.rstrip() + (advice if " is incompatible with " in message else ""))
    advice = (
        "the program calls functions that nothing defines; define them in one of the sources, or pass the object file "
        "that has them (--object)"
    )
    places = [said_of(name.removeprefix(INTERFACE), f"undefined symbol: {name}: {advice}") for name in names]
    if all(places):
        return LinkError(diagnostics=[place for place in places if place])
    return LinkError(f"{message.rstrip()}\n  {advice}")
