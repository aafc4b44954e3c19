"""Writes what each processor that LLVM knows must have to run code for it, for the runtime to compare with the one it
runs on: ``runtime_c/host/processors_x86_64.def`` and ``processors_aarch64.def``.

A feature is listed where LLVM uses it of its own accord (it encrypts and hashes nothing by itself) and the processor
says whether it has it: on x86 by cpuid, on AArch64 by what Linux tells in AT_HWCAP and AT_HWCAP2. Run it again for
another LLVM; a test compares.

    python scripts/processors.py
"""

from __future__ import annotations

from pathlib import Path

from offload.compiler.native import native

FOLDER = Path(__file__).resolve().parent.parent / "runtime_c" / "host"

# LLVM's name: leaf and register of cpuid, as host/cpu.c calls them, and the bit; from the manuals of Intel (325383,
# CPUID) and AMD (24594).
# "AVX", "AVX512" and "APX" are the registers that the system has to save.
X86 = {
    "sse3": "leaf1.c, 0, NONE", "ssse3": "leaf1.c, 9, NONE", "fma": "leaf1.c, 12, AVX", "cx16": "leaf1.c, 13, NONE",
    "sse4.1": "leaf1.c, 19, NONE", "sse4.2": "leaf1.c, 20, NONE", "movbe": "leaf1.c, 22, NONE",
    "popcnt": "leaf1.c, 23, NONE",
    "avx": "leaf1.c, 28, AVX", "f16c": "leaf1.c, 29, AVX",
    "sahf": "extended.c, 0, NONE", "lzcnt": "extended.c, 5, NONE", "sse4a": "extended.c, 6, NONE",
    "xop": "extended.c, 11, AVX", "fma4": "extended.c, 16, AVX", "tbm": "extended.c, 21, NONE",
    "bmi": "leaf7.b, 3, NONE", "avx2": "leaf7.b, 5, AVX", "bmi2": "leaf7.b, 8, NONE",
    "avx512f": "leaf7.b, 16, AVX512", "avx512dq": "leaf7.b, 17, AVX512", "avx512ifma": "leaf7.b, 21, AVX512",
    "avx512cd": "leaf7.b, 28, AVX512", "avx512bw": "leaf7.b, 30, AVX512", "avx512vl": "leaf7.b, 31, AVX512",
    "avx512vbmi": "leaf7.c, 1, AVX512", "avx512vbmi2": "leaf7.c, 6, AVX512", "gfni": "leaf7.c, 8, NONE",
    "avx512vnni": "leaf7.c, 11, AVX512", "avx512bitalg": "leaf7.c, 12, AVX512",
    "avx512vpopcntdq": "leaf7.c, 14, AVX512", "avx512fp16": "leaf7.d, 23, AVX512", "avxvnni": "leaf7_1.a, 4, AVX",
    "avx512bf16": "leaf7_1.a, 5, AVX512", "avxifma": "leaf7_1.a, 23, AVX",
    "avxvnniint8": "leaf7_1.d, 4, AVX", "avxneconvert": "leaf7_1.d, 5, AVX", "avxvnniint16": "leaf7_1.d, 10, AVX",
    "avx10.1": "leaf7_1.d, 19, AVX512", "egpr": "leaf7_1.d, 21, APX",
}  # fmt: skip

# LLVM's name: AT_HWCAP (1) or AT_HWCAP2 (2), and the bit, from Linux' arch/arm64/include/uapi/asm/hwcap.h.
ARM = {
    "lse": "1, 8", "fullfp16": "1, 10", "rdm": "1, 12",
    "complxnum": "1, 14", "rcpc": "1, 15", "sha3": "1, 17", "dotprod": "1, 20",
    "sve": "1, 22", "fp16fml": "1, 23", "lse2": "1, 25", "rcpc-immo": "1, 26",
    "sve2": "2, 1", "sve-bitperm": "2, 4", "f64mm": "2, 11",
    "i8mm": "2, 13", "bf16": "2, 14", "cssc": "2, 34", "sve2p1": "2, 36", "mops": "2, 43",
}  # fmt: skip

LEVELS = {"armv8.1-a": "+v8.1a", "armv9-a": "+v9a"}
"""Names that LLVM has as features of the generic processor."""

HEAD = """/* {name}: what code for each processor uses, by LLVM {version}; made by scripts/processors.py.
 *
 * FEATURE(NAME, {place}), in the order of the bits of PROCESSOR(NAME, BITS).
 */
"""


def text_of(name: str, triple: str, place: str, features: dict[str, str]) -> str:
    """The file of an architecture."""
    known = set(native().known_features(triple))
    if missing := [feature for feature in features if feature not in known]:
        raise SystemExit(f"LLVM has no features {missing} any more")
    lines = [HEAD.format(name=name, place=place, version=native().llvm_version.split(".")[0])]
    lines += [f'FEATURE("{feature}", {found})\n' for feature, found in features.items()]
    for processor in sorted(native().known_processors(triple)):
        used = set(native().features_of(triple, processor, ""))
        lines.append(f'PROCESSOR("{processor}", {bits(used, features)})\n')
    if "aarch64" in triple:
        for level, feature in LEVELS.items():
            lines.append(
                f'PROCESSOR("{level}", {bits(set(native().features_of(triple, "generic", feature)), features)})\n'
            )
    return "".join([*lines, "#undef FEATURE\n#undef PROCESSOR\n"])


def bits(used: set[str], features: dict[str, str]) -> str:
    """The number with a bit for each feature that is used."""
    return f"0x{sum(1 << number for number, feature in enumerate(features) if feature in used):x}"


def texts() -> dict[str, str]:
    """The files by their names."""
    cpuid, capabilities = "leaf and register of cpuid, bit, registers to save", "AT_HWCAP or AT_HWCAP2, bit"
    given = {
        "processors_x86_64.def": ("x86_64-unknown-linux-gnu", cpuid, X86),
        "processors_aarch64.def": ("aarch64-unknown-linux-gnu", capabilities, ARM),
    }
    return {name: text_of(name, *rest) for name, rest in given.items()}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
