"""``offload targets`` and ``offload doctor``: what this machine has, what it lacks and how to get it."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offload._version import __version__
from offload.config import unknown_variables
from offload.errors import OffloadError, TargetError
from offload.targets import Device, Discovery, Target, registry
from offload.targets.registry import NOT_REGISTERED, NOT_REGISTERED_REMEDY, asked


def targets(options: argparse.Namespace) -> int:
    """Lists the registry; returns the exit code."""
    for error in registry().broken().values():
        print(f"offload: warning: {error}", file=sys.stderr)
    found = []
    for name, cls in registry().all().items():
        try:
            found.append(_describe(name, cls))
        except OffloadError as error:
            print(f"offload: warning: {error}", file=sys.stderr)
    if options.json:
        print(
            json.dumps(
                [entry | {"devices": [_as_json(each) for each in devices]} for entry, devices in found], indent=2
            )
        )
        return 0
    for entry, devices in found:
        print(f"{entry['name']}  (default chip {entry['default_chip']}; runs on backend {entry['backend']})")
        print(f"  chips:   {' '.join(entry['chips'])}")
        print(f"  options: {' '.join(entry['options'])}")
        here = [f"{device.chip} ({_words(device.name, device.size())})" for device in devices]
        print(f"  here:    {', '.join(here) or 'no device'}")
    return 0


def _describe(name: str, cls: type[Target]) -> tuple[dict[str, Any], Sequence[Device]]:
    described = {
        "name": name,
        "backend": cls.backend,
        "default_chip": asked(cls, "default_chip"),
        "chips": list(asked(cls, "chips")),
        "options": [field.name for field in dataclasses.fields(cls) if field.name != "chip"],
    }
    return described, asked(cls, "devices")


def _as_json(device: Device) -> dict[str, Any]:
    return {key: value for key, value in dataclasses.asdict(device).items() if key != "target"}


def _words(*words: str | None) -> str:
    return "; ".join(filter(None, words))


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report. A missing device is no fault; a missing tool is, for its target."""

    what: str
    status: str  # "found", "missing", "none"
    detail: str
    remedy: str = ""


def doctor(options: argparse.Namespace) -> int:
    """Prints the report; 0 where every target can build, 3 where a tool is missing."""
    checks = _checks()
    missing = [check for check in checks if check.status == "missing"]
    if options.json:
        print(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            mark = {"found": "ok", "missing": "MISSING", "none": "--"}[check.status]
            print(f"{mark:>8}  {check.what}: {check.detail}")
            if check.status == "missing":
                print(f"{'':>8}  to get it: {check.remedy}")
    return 3 if missing else 0


def _checks() -> list[Check]:
    checks = [Check("offload", "found", f"{__version__} on Python {platform.python_version()}"), _compiler(), _calls()]
    if not registry().names():
        checks.append(Check("targets", "missing", NOT_REGISTERED, NOT_REGISTERED_REMEDY))
    if unknown := unknown_variables():
        names = [f"{name} (did you mean {like}?)" if like else name for name, like in unknown.items()]
        checks.append(Check("environment", "none", f"nothing of offload reads {', '.join(names)}"))
    broken = dict(registry().broken())
    for name, cls in registry().all().items():
        try:
            checks += _of_target(name, cls)
        except TargetError as why:
            broken[name] = why
    for name, error in broken.items():
        remedy = "install a version of its package that works here, or uninstall it"
        checks.append(Check(f"{name}: target", "missing", str(error), remedy))
    return checks


def _of_target(name: str, cls: type[Target]) -> list[Check]:
    """Raises TargetError where the target cannot tell."""
    checks = []
    for found in asked(cls, "toolkit"):
        if found.path is not None:
            checks.append(Check(f"{name}: {found.what}", "found", f"{found.path} (via {found.via})"))
        else:
            looked = "; ".join(found.looked)
            checks.append(Check(f"{name}: {found.what}", "missing", f"looked in {looked}", found.remedy))
    if cls.packages:
        checks.append(_packages(name, cls.packages))
    return [*checks, _devices(name, asked(cls, "discover"))]


def _devices(target: str, found: Discovery) -> Check:
    """The devices and who told of them, with what those said who were asked before; or why there are none."""
    notes = "; ".join(found.notes)
    if not found.devices:
        why = f"none here{f': {notes}' if notes else ''}; images can be built all the same"
        return Check(f"{target}: devices", "none", why)
    detail = ", ".join(f"{each.name} ({_words(each.chip, each.size(), each.driver)})" for each in found.devices)
    asked = found.through and f", through {found.through}"
    return Check(f"{target}: devices", "found", f"{detail}{asked}{f' ({notes})' if notes else ''}")


def _packages(target: str, names: Sequence[str]) -> Check:
    """The vendor's Python packages; none is needed."""
    versions = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    if versions:
        return Check(f"{target}: Python packages", "found", ", ".join(versions))
    return Check(f"{target}: Python packages", "none", f"none of {', '.join(names)}; they are used where they are")


def _calls() -> Check:
    from offload.runtime import plans

    if plans.FAST:
        return Check("calls", "found", f"fast ({plans.where()})")
    return Check("calls", "none", f"through ctypes, which takes microseconds longer: {plans.where()}")


def _compiler() -> Check:
    from offload.compiler.native import native

    try:
        extension = native()
    except OffloadError as error:
        first, *rest = str(error).splitlines()
        return Check("compiler", "missing", first, rest[-1].strip().removeprefix("to get it: "))
    return Check("compiler", "found", f"LLVM {extension.llvm_version} ({extension.__file__})")
