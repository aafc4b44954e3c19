"""Spellings of targets, their chips, and the search for their tools."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, python
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from offload.targets import Device, Found, Target, parse_target, parse_targets, registry, tools
from offload.targets.host import HostTarget
from offload.targets.nvvm import NvvmTarget
from offload.targets.rocdl import RocdlTarget

from offload.compiler.native import native
from offload.errors import CompileError, TargetError, ToolkitError

HOST_CHIP = HostTarget.default_chip()


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ("nvvm", NvvmTarget("sm_75")),
        ("nvvm:sm_90", NvvmTarget("sm_90")),
        (" nvvm:sm_90a,O=2,fast,ftz ", NvvmTarget("sm_90a", O=2, fast=True, ftz=True)),
        ("nvvm:sm_90, O = 2".replace(" = ", "="), NvvmTarget("sm_90", O=2)),
        ("nvvm:O=1", NvvmTarget("sm_75", O=1)),
        ("nvvm:chip=sm_80,fast=true,ftz=0", NvvmTarget("sm_80", fast=True)),
        ("nvvm:sm_90,features=+ptx80,format=isa", NvvmTarget("sm_90", features="+ptx80", format="isa")),
        *(
            (f"nvvm:sm_90,format={name}", NvvmTarget("sm_90", format=meant))
            for name, meant in (
                ("binary", "bin"),
                ("assembly", "isa"),
                ("fatbinary", "fatbin"),
                ("offloading", "offload"),
                ("llvm", "offload"),
            )
        ),
        ("nvvm:sm_90,ptxas=-G --warn-on-spills", NvvmTarget("sm_90", ptxas="-G --warn-on-spills")),
        ("nvvm:fast", NvvmTarget("sm_75", fast=True)),
        ("rocdl", RocdlTarget("gfx90a")),
        ("rocdl:gfx942,wave64", RocdlTarget("gfx942", wave64=True)),
        ("rocdl:gfx1100,wave32,daz", RocdlTarget("gfx1100", wave32=True, daz=True)),
        ("rocdl:gfx9-4-generic,format=fatbin", RocdlTarget("gfx9-4-generic", format="fatbin")),
        ("host", HostTarget(HOST_CHIP)),
        ("host:native", HostTarget("native")),
        ("host:x86-64-v3,O=0", HostTarget("x86-64-v3", O=0)),
        ("host:", HostTarget(HOST_CHIP)),
    ],
)
def test_spellings(spec: str, target: Target) -> None:
    assert parse_target(spec) == target
    assert parse_target(str(target)) == target


def chips_of(name: str) -> str:
    return ", ".join(registry().get(name).chips())


MEANT = "; did you mean 'fast'?"
MEANT_CHIP = "; did you mean 'gfx942'?"
NATIVE = "'native' is all that is in this machine, alone: name a target to choose its options (host, nvvm, rocdl)"
NVVM_FIELDS = ", ".join(field.name for field in dataclasses.fields(NvvmTarget))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nvvm:sm_91", f"unknown chip 'sm_91' for target nvvm; there are: {chips_of('nvvm')}; did you mean 'sm_90'?"),
        ("nvvm:sm90", f"unknown chip 'sm90' for target nvvm; there are: {chips_of('nvvm')}; did you mean 'sm_90'?"),
        ("rocdl:gfx943", f"unknown chip 'gfx943' for target rocdl; there are: {chips_of('rocdl')}{MEANT_CHIP}"),
        ("nvvm:gfx942", f"unknown chip 'gfx942' for target nvvm; there are: {chips_of('nvvm')}"),
        ("rocdl:sm_90", f"unknown chip 'sm_90' for target rocdl; there are: {chips_of('rocdl')}"),
        ("rocdl:gfx942,wave32", "rocdl:gfx942: wave32 is not possible on gfx942, whose waves have 64 threads"),
        ("rocdl:gfx1100,wave32,wave64", "rocdl:gfx1100: wave32 is not possible with wave64"),
        ("rocdl:gfx1250,wave64", "rocdl:gfx1250: wave64 is not possible on gfx1250, whose waves have 32 threads"),
        (
            "rocdl:gfx900,features=+wavefrontsize32",
            "rocdl:gfx900,features=+wavefrontsize32: the size of waves is an option of its own: write wave64 or wave32",
        ),
        ("rocdl:gfx1100,features=+xnack", "rocdl:gfx1100,features=+xnack: gfx1100 has no setting xnack"),
        ("nvmm:sm_90", "unknown target 'nvmm'; did you mean 'nvvm'? (there are: host, nvvm, rocdl, native)"),
        ("cuda", "unknown target 'cuda'; did you mean 'nvvm'? (there are: host, nvvm, rocdl, native)"),
        ("", "unknown target '' (there are: host, nvvm, rocdl, native)"),
        ("native,O=2", f"native,O=2: {NATIVE}"),
        ("native:sm_90", f"native:sm_90: {NATIVE}"),
        ("nvvm:fsat", f"unknown chip 'fsat' for target nvvm; there are: {chips_of('nvvm')}"),
        ("nvvm:sm_90,fats", f"nvvm:sm_90,fats: target 'nvvm' has no option 'fats'{MEANT} (it has: {NVVM_FIELDS})"),
        *(
            (
                f"nvvm:sm_90{between}sm_80",
                f"nvvm:sm_90{between}sm_80: targets are given one by one: --target nvvm:sm_90 --target nvvm:sm_80, a "
                "list of them in Python, nvvm:sm_90;nvvm:sm_80 in OFFLOAD_TARGETS",
            )
            for between in (",", "+")
        ),
        ("nvvm:sm_90,wave64", f"nvvm:sm_90,wave64: target 'nvvm' has no option 'wave64' (it has: {NVVM_FIELDS})"),
        ("nvvm:sm_90,", f"nvvm:sm_90,: target 'nvvm' has no option '' (it has: {NVVM_FIELDS})"),
        ("nvvm:sm_90,O=2,O=3", "nvvm:sm_90,O=2,O=3: option 'O' is given twice"),
        ("nvvm:sm_90,chip=sm_80", "nvvm:sm_90,chip=sm_80: option 'chip' is given twice"),
        ("nvvm:sm_90,O", "nvvm:sm_90,O: option 'O' needs a value: O=…"),
        ("nvvm:sm_90,O=two", "nvvm:sm_90,O=two: option 'O' is a number, not 'two'"),
        ("nvvm:sm_90,fast=2", "nvvm:sm_90,fast=2: option 'fast' is a flag: write fast or fast=false"),
        ("nvvm:sm_90,O=4", "nvvm:sm_90,O=4: O is 0 to 3, not 4"),
        ("nvvm:format=ptx", "nvvm:sm_75,format=ptx: unknown format 'ptx'; it is one of bin, isa, fatbin, offload"),
        ("host:format=fatbin", "target host has no fatbin format: one image holds one processor's code; use bin"),
    ],
)  # fmt: skip
def test_wrong_spellings(spec: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(spec)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


def values(option: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    if option.name == "format":
        return st.sampled_from(["bin", "isa", "offload"])
    if choices := option.metadata["choices"]:
        return st.sampled_from(choices)
    if option.type == "int":
        return st.just(option.default) | st.integers(option.metadata["least"], option.metadata["most"])
    if option.type == "bool":
        return st.booleans()
    text = st.text("abcXYZ+-_. 0189", max_size=12).map(str.strip)
    return text if option.type == "str" else st.lists(text).map(tuple)


@st.composite
def any_target(draw: st.DrawFn) -> Target:
    cls = registry().get(draw(st.sampled_from(["nvvm", "rocdl", "host"])))
    options = {f.name: draw(values(f)) for f in dataclasses.fields(cls) if f.name not in ("chip", "wave32")}
    try:
        return cls(chip=draw(st.sampled_from(list(cls.chips()))), **options)
    except TargetError:  # options that exclude each other
        reject()


@given(target=any_target())
@settings(max_examples=100)
def test_a_target_reads_what_it_prints(target: Target) -> None:
    assert parse_target(str(target)) == target


def test_several_features_survive_printing() -> None:
    target = NvvmTarget("sm_90", features="+ptx80,+fast-math")
    assert parse_target(str(target)) == target


def test_a_target_is_frozen_and_equal_by_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        NvvmTarget().chip = "sm_80"  # type: ignore[misc]
    assert NvvmTarget("sm_80") == NvvmTarget("sm_80") != NvvmTarget("sm_80", O=0)
    assert len({NvvmTarget("sm_80"), NvvmTarget("sm_80")}) == 1


def test_a_target_given_twice_counts_once() -> None:
    assert parse_targets(["nvvm:sm_90", "host", "nvvm:sm_90,O=3"]) == [NvvmTarget("sm_90"), HostTarget(HOST_CHIP)]


def test_two_targets_for_one_chip_are_refused() -> None:
    import offload

    with pytest.raises(TargetError) as caught:
        offload.compile(EXAMPLES / "saxpy.mlir", targets=["nvvm:sm_90", "nvvm:sm_90,O=1"])
    assert str(caught.value) == (
        "two targets for one chip, nvvm:sm_90 and nvvm:sm_90,O=1: a library holds one image of each"
    )


def test_settings_of_a_chip_tell_its_images_apart(tmp_path: Path) -> None:
    """A driver loads code for one setting under that setting alone, and the runtime looks at the image's chip."""
    import offload
    from offload import artifact

    said = ("", "+xnack", "-xnack", "-sramecc")
    targets = ["rocdl:gfx90a" + (f",features={setting}" if setting else "") for setting in said]
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", targets=targets)
    images = artifact.read(path).images
    assert [image.chip for image in images] == ["gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx90a:sramecc-"]
    for image in images:
        found = RocdlTarget.ready_image(native(), image.data)
        assert found is not None
        assert found.chips == (image.chip,)
    path = offload.build(EXAMPLES / "saxpy.mlir", path, targets=["rocdl:gfx90a,features=+xnack,format=fatbin"])
    assert b"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+" in artifact.read(path).images[0].data


def test_native_is_what_is_in_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NvvmTarget, "devices", classmethod(lambda cls: [Device("nvvm", "sm_90", "H100")] * 8))
    monkeypatch.setattr(RocdlTarget, "devices", classmethod(lambda cls: []))
    assert parse_targets(["native"]) == [HostTarget("native"), NvvmTarget("sm_90")]
    assert parse_targets(["nvvm:sm_90", "native"]) == [NvvmTarget("sm_90"), HostTarget("native")]


def test_this_processor_is_always_a_device() -> None:
    assert [device.chip for device in HostTarget.devices()] == ["native"]
    assert HostTarget("native").image_chip(native()) == native().host_processor() != "native"


def test_no_driver_means_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert NvvmTarget.devices() == []


# Chips.


def test_nvidia_chips_are_those_of_llvm() -> None:
    """All but the oldest: LLVM's PTX for them lacks the operations that the gpu dialect needs."""
    known = set(native().known_processors("nvptx64-nvidia-cuda"))
    old = {"sm_20", "sm_21", "sm_30", "sm_32", "sm_35", "sm_37"}
    assert set(NvvmTarget.chips()) == known - old
    assert len(set(NvvmTarget.chips())) == len(NvvmTarget.chips())


def test_amd_chips_are_those_of_llvm() -> None:
    """All from gfx900 on: HIP runs on no older ones, and other spellings are names of marketing."""
    known = {
        chip
        for chip in native().known_processors("amdgcn-amd-amdhsa")
        if chip.startswith(("gfx9", "gfx10", "gfx11", "gfx12"))
    }
    assert set(RocdlTarget.chips()) == known
    assert len(set(RocdlTarget.chips())) == len(RocdlTarget.chips())


def test_host_levels_are_known_to_llvm() -> None:
    for chip in HostTarget.chips():
        target = HostTarget(chip)
        target.machine(native())  # raises for a processor that LLVM does not know
    assert {"v8.1a", "v9a"} <= set(native().known_features("aarch64-unknown-linux-gnu"))  # the levels of AArch64


@pytest.mark.parametrize("chip", ["i386", "pentium4", "athlon-xp"])
def test_processors_without_64_bit_code(chip: str) -> None:
    with pytest.raises(TargetError, match=f"^host:{chip}: {chip} runs 32-bit code alone, and libraries are of 64-bit"):
        HostTarget(chip).machine(native())


def test_code_is_generated_for_every_chip(tmp_path: Path) -> None:
    """In a process of its own: where LLVM lacks something for a chip, it ends the process."""
    code = """
import sys, offload
from offload.compiler.driver import Program
from offload.compiler.request import Source
from offload.targets import registry
source = Source.read(sys.argv[1])
for name, stage in (("nvvm", "isa"), ("rocdl", "object"), ("host", "object")):
    for chip in registry().get(name).chips():
        print(name, chip, flush=True)
        with Program(offload.api.make_request([source], [f"{name}:{chip}"])) as program:
            assert all(item.data for item in program.emit(stage))
print("done")
"""
    assert python(code, EXAMPLES / "reduce.mlir", cwd=tmp_path).endswith("done\n")


# Tools.


def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hides every toolkit: no wheels, no system folders, nothing on PATH."""
    from offload.targets import nvvm, rocdl

    empty = tmp_path / "empty"
    empty.mkdir()
    hidden = [
        tools.from_environment("CUDA_HOME"),
        tools.from_folder(str(empty)),
        tools.SearchStep("wheels", lambda: ()),
    ]
    monkeypatch.setattr(nvvm, "_TOOLKIT", tuple(hidden))
    monkeypatch.setattr(rocdl, "_BITCODE", (tools.from_environment("ROCM_PATH"), tools.from_folder(str(empty))))
    return empty


def test_a_search_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = folders(monkeypatch, tmp_path)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    ptxas, libdevice = NvvmTarget.toolkit()
    assert ptxas.path is libdevice.path is None
    with pytest.raises(ToolkitError) as caught:
        ptxas.need()
    assert str(caught.value) == (
        "ptxas (CUDA) was not found\n"
        "  looked in:\n"
        "    CUDA_HOME: not set or not there\n"
        f"    {empty}: {empty}/bin/ptxas\n"
        "    wheels: not set or not there\n"
        "  to get it: pip install nvidia-cuda-nvcc nvidia-nvvm (or 'offload[cuda]'), or set CUDA_HOME to a CUDA toolkit"
    )
    assert caught.value.exit_code == 3


def test_a_search_takes_the_first_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders(monkeypatch, tmp_path)
    for home in ("rocm", "other"):
        (tmp_path / home / "amdgcn" / "bitcode").mkdir(parents=True)
        (tmp_path / home / "amdgcn" / "bitcode" / "ocml.bc").touch()
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    ocml, ockl = RocdlTarget.toolkit()
    assert (ocml.path, ocml.via) == (tmp_path / "rocm/amdgcn/bitcode/ocml.bc", "ROCM_PATH")
    assert ockl.path is None
    assert ockl.looked[0] == f"ROCM_PATH: {tmp_path}/rocm/amdgcn/bitcode/ockl.bc"


def test_a_folder_that_the_user_names_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wheels have ptxas; who sets CUDA_HOME does not mean them."""
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    ptxas, _ = NvvmTarget.toolkit()
    assert ptxas.path is None
    assert ptxas.looked == (f"CUDA_HOME: {tmp_path}/bin/ptxas", "nowhere else, because CUDA_HOME is set")


@pytest.mark.parametrize(
    ("spec", "tool"), [("nvvm:sm_90", "ptxas (CUDA)"), ("rocdl:gfx942", "ocml.bc (AMD device libraries)")]
)
def test_a_build_without_its_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: str, tool: str) -> None:
    import offload

    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")  # a worker would look where the tools are
    folders(monkeypatch, tmp_path)
    program = """func.func @f(%x: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      scf.parallel (%i) = (%c0) to (%n) step (%c1) {
        %v = memref.load %x[%i] : memref<?xf32>
        %r = math.tanh %v : f32
        memref.store %r, %x[%i] : memref<?xf32>
      }
      return
    }"""
    source, output = tmp_path / "f.mlir", tmp_path / "f.so"
    source.write_text(program)
    with pytest.raises(ToolkitError, match=r"was not found\n  looked in:\n"):
        offload.build(source, output, targets=[spec])
    assert not output.exists()
    assert not any(found.path for found in registry().get(spec.split(":")[0]).toolkit())
    assert tool in [found.what for found in registry().get(spec.split(":")[0]).toolkit()]


def test_toolkits_are_found_here() -> None:
    """Tests build for every vendor: each tool has to be there, and to say through what it was found."""
    for cls in registry().all().values():
        for found in cls.toolkit():
            assert isinstance(found, Found)
            assert found.need().exists()
            assert found.via
            assert found.remedy


def test_wheels_of_any_site_folder_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where a folder before it has another wheel's part of the same toolkit, as an environment of its own."""
    step = tools.from_site_packages("nvidia/cu99")
    assert step.via == "Python package folder nvidia/cu99"
    assert step.folders() == []
    for place in ("system", "environment"):
        (tmp_path / place / "nvidia" / "cu99" / "bin").mkdir(parents=True)
        monkeypatch.syspath_prepend(str(tmp_path / place))
    assembler = tmp_path / "system" / "nvidia" / "cu99" / "bin" / "assembler"
    assembler.touch()
    found = tools.search("assembler", ["bin/assembler"], [step], "")
    assert found.path == assembler
    first = tmp_path / "environment" / "nvidia" / "cu99" / "bin" / "assembler"
    assert found.looked == (f"{step.via}: {first}", f"{step.via}: {assembler}")


def test_a_program_on_path_leads_to_its_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kit" / "bin").mkdir(parents=True)
    program = tmp_path / "kit" / "bin" / "assembler"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert tools.from_path("assembler").folders() == [tmp_path / "kit"]
    assert tools.from_path("no-such-program").folders() == []


def test_options_reach_the_assembler() -> None:
    import offload

    with pytest.raises(
        CompileError, match=r"(?s)cannot assemble .* for sm_90: exit code .*command: .*ptxas .*--no-such"
    ):
        offload.compile(EXAMPLES / "saxpy.mlir", targets=["nvvm:sm_90,ptxas=--no-such-option"])
