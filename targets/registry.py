"""The registry of targets: filled from the entry-point group ``offload.targets`` at first use, by name."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

from offload.targets.base import Target
from offload.targets.entry_points import EntryPoint, entry_points
from offload.targets.options import kind

from offload.config import BACKEND_ALIASES
from offload.errors import BuildWarning, CompileError, TargetError, did_you_mean, warn

GROUP = "offload.targets"
NOT_REGISTERED = (
    "no target is registered: the metadata of offload's installation, a folder offload-….dist-info beside it, is not "
    "there; copied alone, or packed without it, offload runs what was compiled"
)
NOT_REGISTERED_REMEDY = "install offload with pip, or copy that folder, too"


class Registry:
    """Target classes by name. Built-in targets come through the same door as those of other packages."""

    def __init__(self, points: Iterable[EntryPoint] | None = None) -> None:
        self._points: dict[str, EntryPoint] = {}
        for point in entry_points(GROUP) if points is None else points:
            known = self._points.get(point.name)
            if known is not None and known.value != point.value:
                raise TargetError(
                    f"two packages register a target named {point.name!r}: {known.value} and {point.value}; "
                    "uninstall one of them"
                )
            self._points[point.name] = point

    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._points)

    def is_ours(self, name: str) -> bool:
        """Whether the class of a target comes with offload; it is not imported to know."""
        return self._points[name].value.startswith("offload.")

    def get(self, name: str) -> type[Target]:
        """The class of a target. Raises TargetError for an unknown name or one that cannot be loaded."""
        point = self._points.get(name)
        if not self._points:
            raise TargetError(f"{NOT_REGISTERED}\n  to build: {NOT_REGISTERED_REMEDY}")
        if point is None:
            hint = self._meant(name) or did_you_mean(name, self._points)
            raise TargetError(f"unknown target {name!r}{hint} (there are: {', '.join(self.names())}, native)")
        try:
            cls = point.load()
        except (Exception, SystemExit) as error:  # some modules end the process where they do not like the machine
            raise TargetError(f"target {name!r} ({point.value}) cannot be loaded: {error}") from error
        if not (isinstance(cls, type) and issubclass(cls, Target)):
            raise TargetError(f"target {name!r} ({point.value}) is not a subclass of offload.targets.Target")
        if cls.name != name:
            raise TargetError(f"target {name!r} ({point.value}) calls itself {cls.name!r}")
        return cls

    def _meant(self, word: str) -> str:
        """Chips and backends are taken for targets."""
        for name, cls in self.all().items():
            with contextlib.suppress(TargetError):  # of another package, which costs a hint
                if word in asked(cls, "chips"):
                    return f"; did you mean '{name}:{word}'?"
            if BACKEND_ALIASES.get(word, word) == cls.backend:
                return f"; did you mean {name!r}?"
        return ""

    def all(self) -> Mapping[str, type[Target]]:
        """Every target class by name, without those that cannot be loaded."""
        broken = self.broken()
        return {name: self.get(name) for name in self.names() if name not in broken}

    def broken(self) -> Mapping[str, TargetError]:
        """Why targets cannot be loaded: those of packages that are not whole, which must not cost the others."""
        found = {}
        for name in self.names():
            try:
                self.get(name)
            except TargetError as error:
                found[name] = error
        return found


_LISTS = ("chips", "devices", "toolkit")


def asked(cls: type[Target], what: str, *arguments: Any) -> Any:
    """What a target says of itself, or of compiled code, by the name of its class method. Raises TargetError for
    whatever that raises, but for a CompileError: a target of another package may, and must not cost the others."""
    try:
        found = getattr(cls, what)(*arguments)
        return list(found) if what in _LISTS else found  # which a generator does not make before
    except (CompileError, TargetError):
        raise
    except (Exception, SystemExit) as error:  # some end the process where they do not like the machine
        raise TargetError(
            f"target {cls.name!r} does not work: {cls.__module__}.{cls.__qualname__}.{what}() raises "
            f"{type(error).__name__}: {error}"
        ) from error


@functools.cache
def registry() -> Registry:
    """The process's registry."""
    return Registry()


def parse_targets(specs: Iterable[str], arch: str = "") -> list[Target]:
    """Targets from their spellings, without repetitions, ``native`` replaced by what is in this machine.

    ``arch`` is the CPU architecture that a spelling without a chip means, where one depends on it."""
    found: dict[str, Target] = {}
    for spec in specs:
        for target in _native_targets() if spec.strip() == "native" else [parse_target(spec, arch)]:
            found.setdefault(str(target), target)
    return list(found.values())


def parse_target(spec: str, arch: str = "") -> Target:
    """A target from its spelling: ``nvvm:sm_90a,O=3,fast,ftz``.

    After the name and a colon: the chip, then options, which are the fields of the target's class; an option's name
    alone sets a flag. Without a chip a comma follows the name (``host,O=2``). Raises TargetError that names what is
    wrong and what there is.
    """
    text = spec.strip()
    if ";" in text:
        _refuse_lists(text, re.split("[,;]", text))
    name = re.split("[:,]", text, maxsplit=1)[0]
    if name == "native" and name != text:
        names = ", ".join(registry().names())
        alone = f"{name!r} is all that is in this machine, alone: name a target to choose its options ({names})"
        raise TargetError(f"{spec}: {alone}")
    separator, rest = text[len(name) : len(name) + 1], text[len(name) + 1 :]
    cls = registry().get(name)
    fields = {option.name: option for option in dataclasses.fields(cls)}
    values: dict[str, object] = {}
    # LLVM's features have commas between them too: a word with a sign goes on with the option before it.
    words: list[str] = []
    for word in rest.split(",") if rest else []:
        if words and word.strip().startswith(("+", "-")):
            if "=" not in words[-1]:
                meant = [each for each in map(str.strip, rest.split(",")) if each.startswith(("+", "-", "features="))]
                features = ",".join(each.removeprefix("features=") for each in meant)
                raise TargetError(f"{spec}: features are an option: features={features}")
            words[-1] += f",{word.strip()}"
        else:
            words.append(word.strip())
    _refuse_lists(spec, words)
    parts = re.split("[,;+]", rest)
    if len(parts) > 1 and len(chips := [part for part in parts if part in asked(cls, "chips")]) > 1:
        _refuse_list(spec, [f"{name}:{chip}" for chip in chips])
    for position, word in enumerate(words):
        key, equals, value = word.partition("=")
        if position == 0 and separator == ":" and not equals and key not in fields:
            values["chip"] = word
            continue
        option = fields.get(key)
        if option is None:
            hint = did_you_mean(key, fields)
            raise TargetError(f"{spec}: target {name!r} has no option {key!r}{hint} (it has: {', '.join(fields)})")
        converted = _convert(spec, option, equals, value)
        if isinstance(converted, tuple):
            converted = (*cast("tuple[str, ...]", values.get(key, ())), *converted)
        elif key in values:
            raise TargetError(f"{spec}: option {key!r} is given twice")
        values[key] = converted
    if arch:
        values.setdefault("chip", cls.default_chip_on(arch))
    return cls(**values)  # type: ignore[arg-type]


def _refuse_lists(spec: str, words: Iterable[str]) -> None:
    """Raises TargetError for ``nvvm:sm_90,host``: a comma stands before an option; and for ``nvvm:sm_90;host``."""
    names = "|".join(map(re.escape, registry().names()))
    if any(re.fullmatch(rf"(?:{names})(?::.*)?", word.strip()) for word in words):
        apart = re.split(rf"[,;]\s*(?=(?:{names})(?:$|[:,;]))", spec)
        if len(apart) == 1:  # a semicolon and no other target
            return
        _refuse_list(spec, apart)


def _refuse_list(spec: str, targets: Sequence[str]) -> NoReturn:
    given = " ".join(f"--target {each}" for each in targets)
    raise TargetError(
        f"{spec}: targets are given one by one: {given}, a list of them in Python, "
        f"{';'.join(targets)} in OFFLOAD_TARGETS"
    )


def _convert(spec: str, option: dataclasses.Field[object], equals: str, value: str) -> object:
    type_ = kind(option)
    if type_ == "bool":
        if not equals:
            return True
        if value in ("0", "1", "true", "false"):
            return value in ("1", "true")
        raise TargetError(f"{spec}: option {option.name!r} is a flag: write {option.name} or {option.name}=false")
    if not equals:
        raise TargetError(f"{spec}: option {option.name!r} needs a value: {option.name}=…")
    if type_ == "int":
        try:
            return int(value)
        except ValueError:
            raise TargetError(f"{spec}: option {option.name!r} is a number, not {value!r}") from None
    return (value,) if type_ == "tuple" else value


def _native_targets() -> list[Target]:
    """One target per kind of device in this machine; the CPU is always one. A BuildWarning for each target that cannot
    tell its devices. Raises TargetError for a device that there is no code for."""
    targets: dict[str, Target] = {}
    for name, cls in registry().all().items():
        try:
            devices = asked(cls, "devices")
        except TargetError as error:
            warn(f"warning: native has no devices of {name}: {error}", BuildWarning)
            continue
        for device in devices:
            try:
                target = cls(chip=device.chip)
            except TargetError as error:
                raise TargetError(
                    f"native: {device.name} is in this machine, and {error}; name the targets to build for instead"
                ) from error
            except Exception as error:
                raise TargetError(
                    f"native: {device.name} is in this machine, and target {name!r} does not work: "
                    f"{cls.__module__}.{cls.__qualname__} raises {type(error).__name__}: {error}; name the targets to "
                    "build for instead"
                ) from error
            targets.setdefault(str(target), target)
    return list(targets.values())
