"""The registry of targets: what comes in through entry points, from this package and from others."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from compiling import EXAMPLES, HERE, ROOT, command, python
from offload.targets import Registry, Target, registry
from offload.targets.entry_points import entry_points
from offload.targets.tools import Found

from offload.api import make_request
from offload.compiler.request import Source
from offload.errors import OffloadError

PLUGIN = HERE / "my_target_plugin"
GROUP = "offload.targets"


def entry(name: str, value: str) -> metadata.EntryPoint:
    return metadata.EntryPoint(name, value, GROUP)


HOST = entry("host", "offload.targets.host:HostTarget")


def test_built_in_targets_come_through_entry_points() -> None:
    assert {point.name for point in metadata.entry_points(group=GROUP)} >= {"nvvm", "rocdl", "host"}
    assert set(registry().names()) == {point.name for point in metadata.entry_points(group=GROUP)}


def test_entry_points_are_those_that_importlib_finds() -> None:
    """Of every group that a package here has."""
    groups = {point.group for package in metadata.distributions() for point in package.entry_points}
    assert {GROUP, "console_scripts"} <= groups
    for group in groups:
        expected = {(point.name, point.value) for point in metadata.entry_points(group=group)}
        assert {(point.name, point.value) for point in entry_points(group)} == expected, group


def test_of_a_package_that_is_there_twice_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("old", "elsewhere:Old"), ("new", "offload.targets.tools:Found.need [extra]")):
        information = tmp_path / name / "Some.package-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "entry_points.txt").write_text(f"[other]\nno = no:no\n\n[a group]\n# one\n{name} = {value}\n")
        monkeypatch.syspath_prepend(str(tmp_path / name))
    (point,) = entry_points("a group")
    assert (point.name, point.load()) == ("new", Found.need)


def test_entry_points_of_a_package_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: packed\nVersion: 1.0\n")
        archive.writestr("packed-1.0.dist-info/entry_points.txt", "[a group]\npacked = packed:Target\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    assert [(point.name, point.value) for point in entry_points("a group")] == [("packed", "packed:Target")]


def test_each_target_says_what_it_is() -> None:
    for name, cls in registry().all().items():
        assert issubclass(cls, Target)
        assert cls.name == name
        assert cls.backend in ("cuda", "hip", "host")
        assert cls.default_chip() in cls.chips()
        assert set(cls.suffixes) == {"bin", "isa", "offload", "fatbin"}
        assert str(cls()) == f"{name}:{cls.default_chip()}"


def test_the_registry_reads_no_module_before_it_is_asked(tmp_path: Path) -> None:
    code = "import sys, offload.targets as t; t.registry().names(); print([n for n in sys.modules if 'targets.' in n])"
    modules = python(code, cwd=tmp_path)
    assert "targets.nvvm" not in modules
    assert "targets.rocdl" not in modules


def test_a_name_twice_is_an_error() -> None:
    with pytest.raises(OffloadError) as caught:
        Registry([HOST, entry("host", "elsewhere:HostTarget")])
    assert str(caught.value) == (
        "two packages register a target named 'host': offload.targets.host:HostTarget and elsewhere:HostTarget; "
        "uninstall one of them"
    )


def test_one_package_seen_twice_is_no_error() -> None:
    assert Registry([HOST, HOST]).names() == ["host"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "gone",
            "no_such_module:T",
            "target 'gone' (no_such_module:T) cannot be loaded: No module named 'no_such_module'",
        ),
        (
            "gone",
            "offload.targets.host:Gone",
            "target 'gone' (offload.targets.host:Gone) cannot be loaded: module 'offload.targets.host' has no "
            "attribute 'Gone'",
        ),
        (
            "odd",
            "offload.targets.tools:Tool",
            "target 'odd' (offload.targets.tools:Tool) is not a subclass of offload.targets.Target",
        ),
        (
            "other",
            "offload.targets.host:HostTarget",
            "target 'other' (offload.targets.host:HostTarget) calls itself 'host'",
        ),
    ],
)
def test_entry_points_that_lead_nowhere(name: str, value: str, message: str) -> None:
    broken = Registry([HOST, entry(name, value)])
    assert broken.get("host").name == "host"
    with pytest.raises(OffloadError) as caught:
        broken.get(name)
    assert str(caught.value) == message


def test_a_module_that_ends_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every command ended with it, those for other targets too."""
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit('no driver')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry([HOST, entry("leaves", "leaves:Target")])
    assert list(found.all()) == ["host"]
    assert str(found.broken()["leaves"]) == "target 'leaves' (leaves:Target) cannot be loaded: no driver"


def test_an_installation_without_its_metadata() -> None:
    with pytest.raises(OffloadError, match=r"^no target is registered: .*dist-info") as caught:
        Registry([]).get("host")
    assert str(caught.value).endswith("\n  to build: install offload with pip, or copy that folder, too")


def test_a_target_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    more = Registry([HOST, entry("slowhost", "my_target_plugin:SlowHostTarget")])
    assert more.names() == ["host", "slowhost"]
    assert str(more.get("slowhost")(reason="fun")) == f"slowhost:{more.get('host').default_chip()},reason=fun"


def test_an_installed_package_brings_a_target(tmp_path: Path) -> None:
    """Installed as a wheel would: the module and a .dist-info folder with entry points."""
    (tmp_path / "my_target_plugin.py").write_text((PLUGIN / "my_target_plugin.py").read_text())
    information = tmp_path / "my_target_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-target-plugin\nVersion: 1.0\n")
    declared = (PLUGIN / "pyproject.toml").read_text().split('[project.entry-points."offload.targets"]\n')[1]
    (information / "entry_points.txt").write_text(f"[{GROUP}]\n{declared.splitlines()[0].replace(chr(34), '')}\n")
    code = """
import sys
from array import array
sys.path.insert(0, sys.argv[1])
import offload
from offload.targets import parse_target, registry
assert registry().names() == ["host", "nvvm", "rocdl", "slowhost"], registry().names()
target = parse_target("slowhost,reason=fun")
path = offload.build(sys.argv[2], sys.argv[1] + "/saxpy.so", targets=[target, "nvvm:sm_90,format=isa"])
library = offload.load(path)
x = array("f", [1, 2])
library.saxpy(2.0, x, x)  # the image is the CPU's, as the target's backend says
print([(image.target, image.chip) for image in library.metadata.images], list(x))
"""
    code = code.replace("slowhost,reason", "slowhost:reason")
    said = python(code, tmp_path, EXAMPLES / "saxpy.mlir", cwd=tmp_path)
    assert said.startswith("[('slowhost', ") and said.endswith("[3.0, 6.0]\n")


TEXT_ALONE = """
from dataclasses import dataclass
from offload.targets.nvvm import NvvmTarget

@dataclass(frozen=True)
class TextTarget(NvvmTarget):
    name = "text"
    suffixes = {}

from offload.targets import Target
TextTarget.assemble, TextTarget.bundle = Target.assemble, Target.bundle
"""


def test_a_target_that_makes_text_alone(tmp_path: Path) -> None:
    """Suffixes and formats that it does not have were tracebacks."""
    (tmp_path / "text_target.py").write_text(TEXT_ALONE)
    information = tmp_path / "text_target-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: text-target\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{GROUP}]\ntext = text_target:TextTarget\n")
    given = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}

    def build(*options: str) -> tuple[int, str]:
        done = command("build", EXAMPLES / "saxpy.mlir", "-q", *options, cwd=tmp_path, environment=given)
        return done.returncode, done.stderr

    said = "offload: error: target text makes no machine code: use format=isa or format=offload\n"
    assert build("-t", "text:sm_90") == (2, said)
    assert build("-t", "text:sm_90,format=fatbin") == (
        2,
        "offload: error: target text has no fatbin format: use another one\n",
    )
    assert build("-t", "text:sm_90,format=isa", "--dump", "stages") == (0, "")
    assert (tmp_path / "stages" / "saxpy_kernel.text.sm_90.isa.isa").is_file()
    assert not list((tmp_path / "stages").glob("*.object.*"))


def test_a_package_that_is_not_whole_costs_the_others_nothing(tmp_path: Path) -> None:
    """`offload doctor`, which should say so, did not get to it."""
    information = tmp_path / "torn-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1.0\n")
    (information / "entry_points.txt").write_bytes(b"# caf\xe9\n[offload.targets]\ntorn = torn:Target\n")
    (tmp_path / "torn.py").write_text("raise RuntimeError('half of it is missing')\n")
    given = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}
    said = "target 'torn' (torn:Target) cannot be loaded: half of it is missing"
    done = command("doctor", cwd=tmp_path, environment=given)
    assert done.returncode == 3
    assert f" MISSING  torn: target: {said}\n" in done.stdout
    assert "nvvm: ptxas" in done.stdout
    done = command("targets", "--json", cwd=tmp_path, environment=given)
    assert (done.returncode, done.stderr) == (0, f"offload: warning: {said}\n")
    assert {entry["name"] for entry in json.loads(done.stdout)} >= {"host", "nvvm", "rocdl"}
    assert command("build", EXAMPLES / "saxpy.mlir", "-t", "native", cwd=tmp_path, environment=given).returncode == 0
    done = command("build", EXAMPLES / "saxpy.mlir", "-t", "torn", cwd=tmp_path, environment=given)
    assert (done.returncode, done.stderr) == (2, f"offload: error: {said}\n")


RAISES = """
from dataclasses import dataclass
from offload.targets import Device, Target

@dataclass(frozen=True)
class RaisesTarget(Target):
    name = "raises"
    default_chip = classmethod(lambda cls: "r1")
    chips = devices = toolkit = classmethod(lambda cls: 1 / 0)

@dataclass(frozen=True)
class OldTarget(Target):
    name = "old"
    default_chip = classmethod(lambda cls: "o2")
    chips = classmethod(lambda cls: ["o2"])
    devices = classmethod(lambda cls: [Device("old", "o1", "Old Device")])

    def check_chip(self):
        if self.chip not in self.chips():
            raise self.unknown_chip(self.chip)

@dataclass(frozen=True)
class GeneratorTarget(OldTarget):
    name = "late"

    @classmethod
    def chips(cls):
        yield "l1"
        raise KeyError("l2")

    @classmethod
    def devices(cls):
        raise SystemExit("no such machine")

    def check_chip(self):
        raise KeyError(self.chip)
"""


def test_a_target_that_raises_costs_the_others_nothing(tmp_path: Path) -> None:
    """Whatever asked every target ended with its error: a misspelt target, `native`, and what lists targets."""
    information = tmp_path / "raises-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: raises\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[offload.targets]\nraises = raises_target:RaisesTarget\n")
    (tmp_path / "raises_target.py").write_text(RAISES)
    given = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}

    def run(*words: str | Path) -> tuple[int, str, str]:
        done = command(*words, cwd=tmp_path, environment=given)
        return done.returncode, done.stdout, done.stderr

    def why(method: str) -> str:
        call = f"raises_target.RaisesTarget.{method}()"
        return f"target 'raises' does not work: {call} raises ZeroDivisionError: division by zero"

    build = ("build", EXAMPLES / "saxpy.mlir", "-q", "-t")
    assert run(*build, "sm_90")[::2] == (
        2,
        "offload: error: unknown target 'sm_90'; did you mean 'nvvm:sm_90'? "
        "(there are: host, nvvm, raises, rocdl, native)\n",
    )
    assert run(*build, "raises:r1+r2")[::2] == (2, f"offload: error: {why('chips')}\n")
    assert run(*build, "native")[::2] == (0, f"warning: native has no devices of raises: {why('devices')}\n")
    code, listed, said = run("targets", "--json")
    assert (code, said) == (0, f"offload: warning: {why('chips')}\n")
    assert {entry["name"] for entry in json.loads(listed)} == {"host", "nvvm", "rocdl"}
    code, listed, _ = run("doctor")
    assert code == 3
    assert f" MISSING  raises: target: {why('toolkit')}\n" in listed
    assert "rocdl: devices" in listed
    (information / "entry_points.txt").write_text("[offload.targets]\nold = raises_target:OldTarget\n")
    assert run(*build, "native")[::2] == (
        2,
        "offload: error: native: Old Device is in this machine, and unknown chip 'o1' for target old; there are: o2; "
        "name the targets to build for instead\n",
    )
    (information / "entry_points.txt").write_text("[offload.targets]\nlate = raises_target:GeneratorTarget\n")
    does_not = "target 'late' does not work: raises_target.GeneratorTarget"
    assert run(*build, "sm_90")[2].startswith("offload: error: unknown target 'sm_90'; did you mean 'nvvm:sm_90'?")
    assert run(*build, "native")[::2] == (
        0,
        f"warning: native has no devices of late: {does_not}.devices() raises SystemExit: no such machine\n",
    )
    assert run("targets", "--json")[2] == f"offload: warning: {does_not}.chips() raises KeyError: 'l2'\n"
    assert run("doctor")[0] == 3


def test_built_in_entry_points_are_those_of_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text().split('[project.entry-points."offload.targets"]')[1].split("\n\n")[0]
    declared = {line.split(" = ")[0]: line.split('"')[1] for line in text.strip().splitlines()}
    installed = {point.name: point.value for point in metadata.entry_points(group=GROUP)}
    assert {name: installed[name] for name in declared} == declared


@pytest.mark.parametrize("targets", [None, (), [], iter(())])
def test_no_targets_are_the_default(targets: Iterable[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOAD_TARGETS", "nvvm:sm_80")
    source = Source.read(EXAMPLES / "saxpy.mlir")
    assert [target.chip for target in make_request([source], targets).targets] == ["sm_80"]
