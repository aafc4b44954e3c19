"""The command line: every command, what it prints where, and the exit codes 0, 1, 2 and 3."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES, PROGRAMS, command
from offload.targets import registry

import offload
from offload.compiler.driver import STAGES

SAXPY = EXAMPLES / "saxpy.mlir"
HOST_CHIP = registry().get("host").default_chip()


def test_version(tmp_path: Path) -> None:
    done = command("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"offload {offload.__version__}\n", "")


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    done = command(cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: offload ")


@pytest.mark.parametrize(
    "arguments", [["--help"], *([c, "--help"] for c in ("build", "run", "inspect", "targets", "doctor"))]
)
def test_help(arguments: list[str], tmp_path: Path) -> None:
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: offload")


BUILD_FAR = ["build", str(EXAMPLES / "saxpy.mlir"), "--executor", "dask://localhost:1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bild"], "invalid choice: 'bild'"),
        (["bild"], "; did you mean 'build'?"),
        (["build", "x.mlir", "--emmit", "isa"], "unrecognized arguments: --emmit isa; did you mean '--emit'?"),
        (["build", "x.mlir", "--bare-pointer-for-host=1"], "; did you mean '--bare-pointers-for-host'?"),
        (["build", "x.mlir", "--runtime", "shred"], "; did you mean 'shared'?"),
        (["cache", "purge"], "; did you mean 'prune'?"),
        (["build"], "the following arguments are required: SRC"),
        (["build", "x.mlir", "--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["build", "x.mlir", "-O", "4"], "argument -O: invalid choice: "),
        (["build", "x.mlir", "--runtime", "both"], "argument --runtime: invalid choice: 'both'"),
        (["run", "x.mlir", "--backend", "tpu"], "argument --backend: invalid choice: 'tpu'"),
        (["inspect"], "the following arguments are required: FILE"),
        (["inspect", "x.so", "--json", "--disassemble"], "argument --disassemble: not allowed with argument --json"),
        *(
            ([*BUILD_FAR, *words], f"{words[0]} is for builds on this machine: not with --executor")
            for words in (["--emit", "isa"], ["--dump", "all"], ["--print-pipeline"])
        ),
        (["build", "x.mlir", "-o"], "argument -o/--output: expected one argument"),
        (["build", ""], "argument SRC: it is empty, where the name of a file belongs"),
        (["inspect", "x.so", "--extract", ""], "argument --extract: it is empty, where the name of a file belongs"),
        (["build", "x.mlir", "--emit", "isa", "--emit", "llvm"], "argument --emit: it is given twice"),
        (["build", "x.mlir", "-o", "a.so", "-o", "b.so"], "argument -o: it is given twice"),
        (["stubs", "x.so", "--output", "a.pyi", "-o", "b.pyi"], "argument -o: it is given twice"),
        (["inspect", "x.so", "--extract", "a", "--extract", "b"], "argument --extract: it is given twice"),
        (["build", "x.mlir", "--print-pipeline", "-o", "x"], "--print-pipeline prints, and writes no file"),
    ],
)
def test_usage_errors(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: offload")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "vax"], "unknown architecture 'vax'; there are: x86_64, aarch64"),
        (["--executor", "slurm://here"], "no executor 'slurm://here': write dask://HOST:PORT, the address of a Dask"),
    ],
)
def test_what_has_no_such_spelling(words: list[str], message: str, tmp_path: Path) -> None:
    done = command("build", EXAMPLES / "saxpy.mlir", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"offload: error: {message}")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nvvm:sm_42", "unknown chip 'sm_42' for target nvvm; there are: sm_50, "),
        ("nvmm:sm_90", "unknown target 'nvmm'; did you mean 'nvvm'? (there are: "),
        ("sm_90,fast", "unknown target 'sm_90'; did you mean 'nvvm:sm_90'? (there are: "),
        ("x86-64-v3", "unknown target 'x86-64-v3'; did you mean 'host:x86-64-v3'? (there are: "),
        ("cuda:sm_90", "unknown target 'cuda'; did you mean 'nvvm'? (there are: "),
        ("rocm", "unknown target 'rocm'; did you mean 'rocdl'? (there are: "),
        ("rocdl:gfx942:xnack+", "rocdl:gfx942:xnack+: features are an option: rocdl:gfx942,features=+xnack"),
        (
            "rocdl:gfx90a:sramecc-:xnack+",
            "rocdl:gfx90a:sramecc-:xnack+: features are an option: rocdl:gfx90a,features=-sramecc,+xnack",
        ),
        ("rocdl:gfx942:xnack", "rocdl:gfx942:xnack: features are an option: rocdl:gfx942,features=+xnack"),
        (
            "rocdl:gfx90a,-xnack,fast,+sramecc",
            "rocdl:gfx90a,-xnack,fast,+sramecc: features are an option: features=-xnack,+sramecc",
        ),
        *(
            (
                f"rocdl:{chip},waves_per_eu={most + 1}",
                f"rocdl:{chip},waves_per_eu={most + 1}: an execution unit of {chip} ",
            )
            for chip, most in (
                ("gfx90a", 8),
                ("gfx950", 8),
                ("gfx9-4-generic", 8),
                ("gfx900", 10),
                ("gfx9-generic", 10),
            )
        ),
        ("rocdl:gfx942:+xnack", "rocdl:gfx942:+xnack: features are an option: rocdl:gfx942,features=+xnack"),
        ("host,features=+a,fast,-b", "host,features=+a,fast,-b: features are an option: features=+a,-b"),
        ("host:x86-64,+avx2", "host:x86-64,+avx2: features are an option: features=+avx2"),
        ("host:\udcff", "unknown chip '\\udcff' for target host; there are: "),
        (
            "rocdl:gfx942,wave23",
            "rocdl:gfx942,wave23: target 'rocdl' has no option 'wave23'; did you mean 'wave32'? (it has: ",
        ),
        (
            "nvvm:sm_90,O=2,host",
            "nvvm:sm_90,O=2,host: targets are given one by one: --target nvvm:sm_90,O=2 --target host, a list "
            "of them in Python, nvvm:sm_90,O=2;host in OFFLOAD_TARGETS",
        ),
        (
            "nvvm:sm_90,O=2; host;rocdl:gfx942",
            "nvvm:sm_90,O=2; host;rocdl:gfx942: targets are given one by one: --target nvvm:sm_90,O=2 --target host "
            "--target rocdl:gfx942, a list of them in Python, nvvm:sm_90,O=2;host;rocdl:gfx942 in OFFLOAD_TARGETS",
        ),
        ("host;nvvm", "host;nvvm: targets are given one by one: --target host --target nvvm, a list of them in"),
        ("host;", "unknown target 'host;'; did you mean 'host'? (there are: "),
        ("host:no-such-processor", "unknown chip 'no-such-processor' for target host; there are: "),
    ],
)
def test_wrong_targets(target: str, message: str, tmp_path: Path) -> None:
    done = command("build", SAXPY, "-q", "-o", "out.so", "-t", target, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"offload: error: {message}")
    assert list(tmp_path.iterdir()) == []


# build


def test_build_says_what_it_does(tmp_path: Path) -> None:
    done = command("build", SAXPY, "-t", "nvvm:sm_90", "-t", "host", "--no-cache", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    for step in (
        "parsing",
        "making kernels",
        "compiling saxpy_kernel for nvvm:sm_90",
        "compiling host code",
        "linking",
    ):
        assert f"] {step}" in done.stderr
    size = (tmp_path / "saxpy.so").stat().st_size
    assert f"saxpy.so: {size:,} bytes in " in done.stderr.splitlines()[-1]


def test_a_wrong_target_of_the_environment_is_looked_for_there(tmp_path: Path) -> None:
    done = command("build", SAXPY, "-q", cwd=tmp_path, environment={"OFFLOAD_TARGETS": "host;sm_90"})
    assert done.returncode == 2
    assert done.stderr.startswith("offload: error: OFFLOAD_TARGETS: unknown target 'sm_90'; did you mean 'nvvm:sm_90'?")
    given = command("build", SAXPY, "-q", "-t", "sm_90", cwd=tmp_path, environment={"OFFLOAD_TARGETS": "host"})
    assert given.stderr.startswith("offload: error: unknown target 'sm_90'")


def test_targets_come_from_the_environment(tmp_path: Path) -> None:
    def chips(*arguments: str, **environment: str) -> list[str]:
        done = command("build", SAXPY, "-q", "-o", "out.so", *arguments, cwd=tmp_path, environment=environment)
        assert done.returncode == 0, done.stderr
        return [image.chip for image in offload.artifact.read(tmp_path / "out.so").images]

    import offload.artifact

    assert chips() == [HOST_CHIP]
    assert chips(OFFLOAD_TARGETS="nvvm:sm_80; rocdl:gfx1100;") == ["sm_80", "gfx1100"]
    assert chips("-t", "nvvm:sm_90", OFFLOAD_TARGETS="rocdl:gfx942") == ["sm_90"]
    assert chips(OFFLOAD_TARGETS="") == chips(OFFLOAD_TARGETS=" ; ") == [HOST_CHIP]  # as CI systems leave it
    (tmp_path / "plain.mlir").write_text("func.func @f() {\n  return\n}\n")
    for nothing in ("", ";"):
        variables = {"OFFLOAD_TARGETS": nothing}
        done = command("build", "plain.mlir", "-q", "-o", "p.so", cwd=tmp_path, environment=variables)
        assert done.returncode == 0, done.stderr  # the default is nobody's wish


STAGE_STARTS = {
    "input": "// ----- input: saxpy\nmodule",
    "kernels": "// ----- kernels: saxpy\nmodule",
    "split": "// ----- split: host\nmodule",
    "lowered": "// ----- lowered: saxpy_kernel.nvvm.sm_90\nmodule",
    "llvm": "; ----- llvm: saxpy_kernel.nvvm.sm_90\n;",
    "isa": "// ----- isa: saxpy_kernel.nvvm.sm_90\n//",
    "object": "\x7fELF",
    "host-llvm": "; ----- host-llvm: host\n;",
    "so": "\x7fELF",
}


@pytest.mark.parametrize("stage", STAGE_STARTS)
def test_emit(stage: str, tmp_path: Path) -> None:
    to = ["-o", "-"] if stage in ("isa", "object") else []
    done = command("build", SAXPY, "-q", "-t", "nvvm:sm_90", "--emit", stage, *to, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lstrip("\n").startswith(STAGE_STARTS[stage])
    assert list(tmp_path.iterdir()) == []


def test_emit_into_a_folder(tmp_path: Path) -> None:
    targets = ["-t", "nvvm:sm_90", "-t", "rocdl:gfx942,format=fatbin", "-t", "host"]
    expected = {
        "input": {"saxpy.mlir"},
        "split": {
            "host.mlir",
            *(f"saxpy_kernel.{t}.mlir" for t in ("nvvm.sm_90", "rocdl.gfx942", f"host.{HOST_CHIP}")),
        },
        "llvm": {f"saxpy_kernel.{t}.ll" for t in ("nvvm.sm_90", "rocdl.gfx942", f"host.{HOST_CHIP}")},
        "isa": {"saxpy_kernel.nvvm.sm_90.ptx", "saxpy_kernel.rocdl.gfx942.s", f"saxpy_kernel.host.{HOST_CHIP}.s"},
        "object": {
            "saxpy_kernel.nvvm.sm_90.cubin",
            "saxpy_kernel.rocdl.gfx942.hsaco",
            f"saxpy_kernel.host.{HOST_CHIP}.o",
        },
        "fat": {"saxpy_kernel.nvvm.sm_90.fatbin", "saxpy_kernel.rocdl.gfx942.fatbin"},
        "so": {"saxpy.so"},
    }
    for stage, names in expected.items():
        done = command("build", SAXPY, "-q", *targets, "--emit", stage, "-o", f"new/{stage}", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert {path.name for path in (tmp_path / "new" / stage).iterdir()} == names
        assert set(done.stdout.splitlines()) == {f"new/{stage}/{name}" for name in names}


def test_emit_lists_and_refuses_stages(tmp_path: Path) -> None:
    assert command("build", "x.mlir", "--emit", "help", cwd=tmp_path).stdout.split() == list(STAGES)
    done = command("build", SAXPY, "--emit", "ptx", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"offload build: unknown stage 'ptx'; stages are: {', '.join(STAGES)}\n"
    done = command("build", SAXPY, "--emit", "ias", cwd=tmp_path)
    assert done.stderr == f"offload build: unknown stage 'ias'; stages are: {', '.join(STAGES)}; did you mean 'isa'?\n"
    done = command("build", SAXPY, "-q", "--emit", "fat", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "offload: error: this program has nothing at stage fat for these targets\n"


def test_a_library_is_not_printed(tmp_path: Path) -> None:
    for arguments in ([], ["--dump", "stages"]):
        done = command("build", SAXPY, "-q", *arguments, "-o", "-", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "-o names its file" in done.stderr and "--emit prints a stage" in done.stderr
        assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """No error of ours, but the command has not written all."""
    script = f"'{sys.executable}' -m offload build -q '{EXAMPLES / 'linear.mlir'}' --emit llvm; echo $? >&2"
    done = subprocess.run(
        ["sh", "-c", f"({script}) | head -c 10"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert len(done.stdout) == 10
    assert done.stderr.strip() in ("0", "141", "")  # the first where all of it was in the pipe already


# inspect


@pytest.mark.parametrize("where", ["/proc/images", "file"])
def test_stages_are_written_into_no_folder(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("build", SAXPY, "-q", "--emit", "input", "-o", where, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        (f"offload: error: cannot write into {where}: ", f"offload: error: cannot write {where}/")
    )


# targets, doctor


def test_targets_as_json(tmp_path: Path) -> None:
    done = command("targets", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [entry["name"] for entry in found] == ["host", "nvvm", "rocdl"]
    for entry in found:
        assert list(entry) == ["name", "backend", "default_chip", "chips", "options", "devices"]
        cls = registry().get(entry["name"])
        assert entry["chips"] == list(cls.chips())
        assert "chip" not in entry["options"]
        keys = ["chip", "name", "index", "memory", "multiprocessors", "driver"]
        assert all(list(device) == keys for device in entry["devices"])
        assert entry["options"] == [field.name for field in dataclasses.fields(cls) if field.name != "chip"]
    assert {"O", "fast", "features", "format", "ftz", "ptxas"} < set(found[1]["options"])


def test_targets_as_text(tmp_path: Path) -> None:
    done = command("targets", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nvvm  (default chip sm_75; runs on backend cuda)\n  chips:   sm_50 " in done.stdout
    assert "  options: O fast features format link " in done.stdout


def test_doctor(tmp_path: Path) -> None:
    done = command("doctor", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"      ok  offload: {offload.__version__} on Python " in done.stdout
    assert "ok  compiler: LLVM 22." in done.stdout
    assert "MISSING" not in done.stdout


def test_doctor_as_json(tmp_path: Path) -> None:
    done = command("doctor", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    checks = json.loads(done.stdout)
    assert all(list(check) == ["what", "status", "detail", "remedy"] for check in checks)
    assert {check["status"] for check in checks} <= {"found", "none"}
    assert {check["what"] for check in checks} >= {
        "offload", "compiler", "host: devices", "nvvm: ptxas (CUDA)", "rocdl: ocml.bc (AMD device libraries)",
    }  # fmt: skip


# run


def test_run(tmp_path: Path) -> None:
    done = command("run", PROGRAMS / "main.mlir", "--backend", "host", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith("Unranked Memref base@ = 0x")
    assert first.endswith(" rank = 1 offset = 0 sizes = [5] strides = [1] data = ")
    assert second == "[0,  1,  4,  9,  16]"


def test_run_another_entry(tmp_path: Path) -> None:
    done = command("run", PROGRAMS / "main.mlir", "--entry", "answer", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")
    done = command("run", PROGRAMS / "main.mlir", "--entry=half", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.5\n", "")


def test_run_what_cannot_be_run(tmp_path: Path) -> None:
    done = command("run", PROGRAMS / "main.mlir", "--entry", "gone", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    names = "main, answer, half, needs"
    assert done.stderr == f"offload: error: the program has no function 'gone' to run; it has: {names}\n"
    (tmp_path / "own.mlir").write_text("func.func private @main() { return }\n")
    done = command("run", "own.mlir", cwd=tmp_path)
    assert done.returncode == 1
    text = "the program has no function 'main' to run; it has: none (private functions do not count)"
    assert done.stderr == f"offload: error: {text}\n"
    done = command("run", PROGRAMS / "main.mlir", "--entry", "needs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "offload: error: needs() takes arguments; 'offload run' calls functions without any\n"


def test_a_program_that_hangs_ends_at_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "hangs.mlir").write_text("""
func.func private @putchar(i32) -> i32
func.func private @fflush(i64) -> i32
func.func @main() {
  %a = arith.constant 97 : i32
  %all = arith.constant 0 : i64
  %0 = call @putchar(%a) : (i32) -> i32
  %1 = call @fflush(%all) : (i64) -> i32
  cf.br ^loop
^loop:
  cf.br ^loop
}""")
    words = [sys.executable, "-m", "offload", "run", "hangs.mlir"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.read(1) == b"a"
        running.send_signal(signal.SIGINT)
        try:
            assert running.wait(20) == -signal.SIGINT
        finally:
            running.kill()


def test_run_compiles_once(tmp_path: Path) -> None:
    environment = {"OFFLOAD_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        assert command("run", PROGRAMS / "main.mlir", cwd=tmp_path, environment=environment).returncode == 0
        assert len(list((tmp_path / "cache" / "library").iterdir())) == 1
