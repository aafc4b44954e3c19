"""Programs that are nearly right: each builds or gives a diagnostic, and the interpreter lives.

``python tests/mutated_programs.py --count 2000 --seed 0`` changes the example programs and those of tests/programs in
that many ways (types, operations, attributes, numbers, names, cuts) and builds each through the API, every
``--command``-th through the command line too. Programs that crashed LLVM are listed with the folder that repeats them;
a program that goes wrong in any other way is printed, and the end is 1. The same seeds give the same programs."""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import offload

HERE = Path(__file__).resolve().parent
SOURCES = sorted([*(HERE / "programs").glob("*.mlir"), *(HERE.parent / "examples").glob("*.mlir")])
TARGETS = ("host", "nvvm:sm_90", "rocdl:gfx942", "nvvm:sm_75", "rocdl:gfx1201", "host,O=0", "rocdl:gfx1100,wave64")

TYPES = (
    "i1", "i8", "i16", "i32", "i64", "i128", "index", "f16", "bf16", "f32", "f64", "f128", "f80", "tf32", "f8E4M3FN",
    "f8E5M2", "i4", "i3", "complex<f32>", "vector<4xf32>", "vector<2x3xi8>", "vector<[4]xf32>", "memref<f32>",
    "memref<?xf32>", "memref<?x?xf64>", "memref<4xi1, 3>", "memref<*xf32>", "memref<?xf32, strided<[?], offset: ?>>",
    "tensor<4xf32>", "!llvm.ptr", "!llvm.ptr<3>", "!gpu.async.token", "none", "tuple<i32>", "(i32) -> i32",
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "2", "3", "7", "33", "64", "1024", "1025", "65536", "2147483648", "-9223372036854775808",
           "9223372036854775807", "1099511627776")  # fmt: skip
OPERATIONS = (
    "arith.addi", "arith.addf", "arith.divsi", "arith.remui", "arith.shli", "arith.maximumf", "arith.minnumf",
    "arith.select", "math.exp", "math.powf", "math.fma", "math.ctpop", "math.tanh", "vector.fma", "complex.mul",
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.bitcast", "arith.index_cast", "gpu.thread_id", "gpu.barrier",
)  # fmt: skip

TYPE = re.compile(
    r"(?<![\w%@#!.])(?:i\d+|index|b?f\d+\w*|(?:memref|vector|tensor|complex)<[^<>]*(?:<[^<>]*>)?[^<>]*>)(?!\w)"
)
NUMBER = re.compile(r"(?<![\w%@#.x>])-?\d+(?![\w.x])")
EXTENT = re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)")
VALUE = re.compile(r"%[\w#]+")
SYMBOL = re.compile(r"@\w+")
MNEMONIC = re.compile(r"\b(?:arith|math|vector|complex|gpu|memref|scf|nvvm|rocdl|linalg|affine)\.\w+")
WORD = re.compile(r"(?<=<)[a-z_]+(?=>)|\b(?:workgroup|private|global|x|y|z|xor|up|down|add|mul|uniform|async|kernel)\b")
ATTRIBUTE = re.compile(r"\{[^{}\n]*=[^{}\n]*\}")


class Wrong(Exception):
    """A program neither built nor gave a diagnostic."""


@dataclass(frozen=True)
class Mutant:
    """A changed program: ``changes`` say what was done to ``source``."""

    seed: int
    source: str
    changes: tuple[str, ...]
    targets: tuple[str, ...]
    text: str


def one_of(chosen: random.Random, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return chosen.choice(found) if found else None


def replaced(text: str, match: re.Match[str], by: str) -> str:
    return text[: match.start()] + by + text[match.end() :]


def swap(pattern: re.Pattern[str], others: Sequence[str]) -> Callable[[random.Random, str], str]:
    """One occurrence becomes another of the program's, or one of a list."""

    def change(chosen: random.Random, text: str) -> str:
        match = one_of(chosen, pattern, text)
        other = one_of(chosen, pattern, text)
        if match is None or other is None:
            return text
        return replaced(text, match, chosen.choice(others) if others and chosen.random() < 0.6 else other[0])

    return change


def swap_everywhere(pattern: re.Pattern[str], others: Sequence[str]) -> Callable[[random.Random, str], str]:
    """Every occurrence of one becomes another: the program often stays valid, and goes far."""

    def change(chosen: random.Random, text: str) -> str:
        match = one_of(chosen, pattern, text)
        if match is None:
            return text
        by = chosen.choice(others)
        return re.sub(rf"(?<![\w%@#.]){re.escape(match[0])}(?![\w])", lambda _: by, text)

    return change


SCALARS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "index", "f8E4M3FN", "i4", "i128", "f80")
SCALAR = re.compile(rf"(?:(?<=x)|(?<![\w.%@#]))(?:{'|'.join(SCALARS)})\b")


def element_types(chosen: random.Random, text: str) -> str:
    """One scalar type becomes another wherever it stands, inside of memrefs and vectors too."""
    match = one_of(chosen, SCALAR, text)
    if match is None:
        return text
    old, new = match[0], chosen.choice(SCALARS)
    return SCALAR.sub(lambda found: new if found[0] == old else found[0], text)


def rename(pattern: re.Pattern[str]) -> Callable[[random.Random, str], str]:
    """One use of a name becomes a use of another."""
    return swap(pattern, ())


def lines_of(text: str) -> list[str]:
    return text.split("\n")


def operations_of(lines: Sequence[str]) -> list[int]:
    """Lines that are an operation without a region."""
    return [
        number
        for number, line in enumerate(lines)
        if line.strip() and not line.lstrip().startswith(("//", "}", "^", "#")) and not line.rstrip().endswith("{")
    ]


def delete_operation(chosen: random.Random, text: str) -> str:
    """Who used the result uses an operand instead, so that what is left may be valid."""
    lines = lines_of(text)
    if not (there := operations_of(lines)):
        return text
    values = VALUE.findall(lines.pop(chosen.choice(there)))
    text = "\n".join(lines)
    if len(values) < 2 or chosen.random() < 0.3:
        return text
    return re.sub(rf"{re.escape(values[0])}(?!\w)", lambda _: chosen.choice(values[1:]), text)


def repeat_operation(chosen: random.Random, text: str) -> str:
    """An operation once more, under another name if it has one, there or elsewhere."""
    lines = lines_of(text)
    if not (there := operations_of(lines)):
        return text
    line = lines[chosen.choice(there)]
    again = re.sub(r"^(\s*)%[\w#:, %]+=", rf"\g<1>%again{chosen.randrange(10**6)} =", line)
    lines.insert(chosen.choice(there), again)
    return "\n".join(lines)


def move_operation(chosen: random.Random, text: str) -> str:
    lines = lines_of(text)
    if not (there := operations_of(lines)):
        return text
    line = lines.pop(chosen.choice(there))
    lines.insert(chosen.choice(there), line)
    return "\n".join(lines)


def drop_attributes(chosen: random.Random, text: str) -> str:
    match = one_of(chosen, ATTRIBUTE, text)
    return replaced(text, match, "") if match else text


def move_attributes(chosen: random.Random, text: str) -> str:
    match, other = one_of(chosen, ATTRIBUTE, text), one_of(chosen, ATTRIBUTE, text)
    return replaced(text, match, other[0]) if match and other else text


def cut_region(chosen: random.Random, text: str) -> str:
    """What stands between two braces goes."""
    opening = one_of(chosen, re.compile(r"\{\n"), text)
    if opening is None:
        return text
    depth = 0
    for position in range(opening.start(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return f"{text[: opening.start() + 1]}\n{text[position:]}"
    return text


def cut_end(chosen: random.Random, text: str) -> str:
    return text[: chosen.randrange(len(text))] if text else text


CHANGES: dict[str, tuple[int, Callable[[random.Random, str], str]]] = {
    "a type": (1, swap(TYPE, TYPES)),
    "a type everywhere": (3, swap_everywhere(TYPE, TYPES)),
    "an element type everywhere": (8, element_types),
    "a number": (8, swap(NUMBER, NUMBERS)),
    "a number everywhere": (2, swap_everywhere(NUMBER, NUMBERS)),
    "an extent": (3, swap(EXTENT, ("0", "1", "3", "?", "1000000007"))),
    "an extent everywhere": (2, swap_everywhere(EXTENT, ("0", "1", "3", "?"))),
    "an operation's name": (4, swap(MNEMONIC, OPERATIONS)),
    "a word": (6, swap(WORD, ("x", "y", "z", "private", "workgroup", "xor", "mul", "maxui"))),
    "a value": (2, rename(VALUE)),
    "a symbol": (1, rename(SYMBOL)),
    "no operation": (4, delete_operation),
    "an operation twice": (4, repeat_operation),
    "an operation elsewhere": (2, move_operation),
    "no attributes": (2, drop_attributes),
    "other attributes": (2, move_attributes),
    "an empty region": (2, cut_region),
    "no end": (1, cut_end),
}
"""What is done to programs, and how often."""


def mutant(seed: int) -> Mutant:
    """The program of a seed."""
    chosen = random.Random(seed)
    path = chosen.choice(SOURCES)
    text = original = path.read_text()
    names, weights = list(CHANGES), [weight for weight, _ in CHANGES.values()]
    done: list[str] = []
    for _ in range(chosen.choice((1, 1, 1, 2, 2, 3))):
        for name in chosen.choices(names, weights, k=20):
            changed = CHANGES[name][1](chosen, text)
            if changed != text:
                text, _ = changed, done.append(name)
                break
    while text == original:  # two changes that undo each other
        text, done = cut_end(chosen, text), ["no end"]
    targets = chosen.sample(TARGETS, 1 if chosen.random() < 0.7 else 2)
    # A library holds one image for each chip.
    kept = {target.split(",")[0]: target for target in targets}
    return Mutant(seed, path.name, tuple(done), tuple(kept.values()), text)


BUILT, REFUSED, CRASHED = "built", "refused", "crashed"


@dataclass(frozen=True)
class Outcome:
    """What became of a program; ``said`` is the diagnostic."""

    kind: str
    said: str = ""
    reproducer: str | None = None


def built(program: Mutant, folder: Path) -> Outcome:
    """Through the API. Raises Wrong, and whatever a build must not raise."""
    source, output = folder / "mutant.mlir", folder / "mutant.so"
    source.write_text(program.text)
    output.unlink(missing_ok=True)
    try:
        offload.build(source, output, targets=program.targets)
    except offload.CompilerCrash as error:
        outcome = Outcome(CRASHED, str(error), error.reproducer)
    except offload.OffloadError as error:
        if not str(error).strip():
            raise Wrong("an error without a word") from error
        outcome = Outcome(REFUSED, str(error))
    else:
        offload.artifact.read(output)
        return Outcome(BUILT)
    if output.exists():
        raise Wrong("an error and a library")
    return outcome


def commanded(program: Mutant, folder: Path, expected: Outcome) -> None:
    """Through the command line, with the same outcome. Raises Wrong."""
    source, output = folder / "mutant.mlir", folder / "mutant.so"
    source.write_text(program.text)
    output.unlink(missing_ok=True)
    words = [word for target in program.targets for word in ("-t", target)]
    done = subprocess.run(
        [sys.executable, "-m", "offload", "build", "-q", source, "-o", output, *words],
        capture_output=True, cwd=folder, check=False,
    )  # fmt: skip
    said = done.stderr.decode(errors="replace")
    if (done.returncode == 0) != (expected.kind == BUILT) or output.exists() != (expected.kind == BUILT):
        raise Wrong(f"exit code {done.returncode} of the command line, and the API {expected.kind} it:\n{said}")
    if done.returncode not in (0, 1, 2, 3) or "Traceback" in said:
        raise Wrong(f"exit code {done.returncode} of the command line:\n{said}")


def check(seed: int, folder: Path, command: bool) -> tuple[Mutant, Outcome]:
    """One program. Raises Wrong that shows it."""
    program = mutant(seed)
    try:
        outcome = built(program, folder)
        if command:
            commanded(program, folder, outcome)
    except Exception as error:
        raise Wrong(
            f"{program.text}\n// program {seed}: {program.source} with {', '.join(program.changes)} for "
            f"{' '.join(program.targets)}: {type(error).__name__}: {error}"
        ) from error
    return program, outcome


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed")
    parser.add_argument("--command", type=int, default=20, metavar="N", help="each Nth through the command line, too")
    given = parser.parse_args(arguments)
    kinds: Counter[str] = Counter()
    wrong = 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="offload-mutants-") as folder:
        for seed in range(given.seed, given.seed + given.count):
            try:
                program, outcome = check(seed, Path(folder), seed % given.command == 0)
            except Wrong as error:
                wrong += 1
                print(f"{error}\n", flush=True)
                continue
            kinds[outcome.kind] += 1
            if outcome.kind == CRASHED:
                what = f"{program.source} with {', '.join(program.changes)} for {' '.join(program.targets)}"
                print(f"program {seed}: {what}\n{outcome.said}\n", flush=True)
    figures = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{given.count} programs, {time.monotonic() - start:.0f} s: {figures}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
