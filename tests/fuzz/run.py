"""Fuzzes the reader of image containers with libFuzzer, the address and the undefined-behaviour sanitizer.

python tests/fuzz/run.py --runs 10000000 runs it for long; what it finds goes to the folder --found, and inputs that
reach new code to --corpus. tests/building/test_fuzz.py runs the kept corpus and a short search.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "runtime_c"
CORPUS = HERE / "corpus"


def build(folder: Path, reader: Path = RUNTIME / "core/image.c") -> Path:
    """The fuzzer of a reader as a program."""
    program = folder / "fuzz_container"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}"]
    flags += ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["clang-22", *flags, HERE / "container.c", reader, "-o", program], check=True)
    return program


def run(program: Path, runs: int, *corpora: Path, seed: int = 1, found: Path | None = None) -> str:
    """Runs the fuzzer; new inputs go to the first corpus. Returns what it said; raises CalledProcessError on a find."""
    options = [f"-runs={runs}", f"-seed={seed}", "-max_len=1024", "-use_value_profile=1", "-print_final_stats=1"]
    # libFuzzer asks how large the process ever was, which on Linux begins with the size of who started it.
    options += ["-rss_limit_mb=0", "-malloc_limit_mb=2048"]
    options += [f"-artifact_prefix={found}/"] if found else []
    done = subprocess.run([program, *options, *corpora], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-6000:], file=sys.stderr)
    done.check_returncode()
    return done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what reaches new code (default: none is kept)")
    parser.add_argument("--found", type=Path, default=Path(), help="where inputs that fail are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder) / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        options.found.mkdir(parents=True, exist_ok=True)
        said = run(build(Path(folder)), options.runs, corpus, CORPUS, seed=options.seed, found=options.found)
    print("\n".join(line for line in said.splitlines() if "stat::" in line or "DONE" in line))


if __name__ == "__main__":
    main()
