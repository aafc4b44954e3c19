"""Programs for AArch64, run by QEMU's emulation of user programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from runtime_sources import RUNTIME

SYSROOT = Path("/usr/aarch64-linux-gnu")
# Without a GCC for AArch64 clang would take the headers of this machine.
HEADERS = ("-nostdlibinc", "-isystem", str(SYSROOT / "include"))
CLANG = ("clang-22", "--target=aarch64-linux-gnu", *HEADERS, "-O1", "-std=c11", "-D_GNU_SOURCE")
EMULATOR = ("qemu-aarch64", "-L", str(SYSROOT))


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def build_program(source: Path, output: Path, *libraries: Path) -> Path:
    """A C program; start-up files and the C library are those of the cross toolchain."""
    start, files = SYSROOT / "lib", ("libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1")
    done = _run(
        *(*CLANG, f"-I{RUNTIME}", "-fuse-ld=lld", "-nostdlib", "-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1"),
        *(start / "crt1.o", start / "crti.o", source, *libraries, *(start / file for file in files), start / "crtn.o"),
        *("-o", output),
    )
    assert done.returncode == 0, done.stderr
    return output


def run_program(*command: object) -> str:
    """Runs a program and returns what it printed."""
    done = _run(*EMULATOR, *command)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout
