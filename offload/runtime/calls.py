"""What calls of functions and kernels share: binding arguments by name, and the wording of refusals."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterator, Sequence
from typing import Any

from offload.artifact.meta import Argument, EqualSizes, ResultSize
from offload.errors import SignatureError
from offload.runtime.dtypes import Mismatch


def _dimension_names() -> Iterator[str]:
    yield from "nmk"
    number = 3
    while True:
        yield f"d{number}"
        number += 1


def python_names(arguments: Sequence[Argument]) -> list[str]:
    """Names that Python takes, different from each other: ``in`` becomes ``in_``, ``%0`` ``arg0``. What Python
    takes as it is keeps its name."""
    given = {argument.name for argument in arguments}
    names: list[str] = []
    for index, argument in enumerate(arguments):
        name = re.sub(r"\W", "_", argument.name)
        if not name or name.strip("_") == "" or name[0].isdigit():
            name = f"arg{index}"
        if keyword.iskeyword(name):
            name += "_"
        while name in names or (name != argument.name and name in given):
            name += "_"
        names.append(name)
    return names


class Callee:
    """The name and arguments of something callable, for binding and for messages.

    ``label`` is how messages call it, e.g. "saxpy()".
    """

    def __init__(
        self,
        name: str,
        label: str,
        arguments: Sequence[Argument],
        results: Sequence[Argument] = (),
        doc: str = "",
        equal: Sequence[EqualSizes] = (),
        result_sizes: Sequence[ResultSize] = (),
    ) -> None:
        self.name = name
        self.label = label
        self.arguments = tuple(arguments)
        self.results = tuple(results)
        self.names = python_names(arguments)
        self.doc = inspect.cleandoc(doc)
        self.equal = tuple(equal)
        self.result_sizes = tuple(result_sizes)
        count = len(self.names)
        while count and self.arguments[count - 1].optional:
            count -= 1
        self.required = count
        """How many arguments come before those at the end that may be left out."""

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values in the order of the arguments. Raises `SignatureError` for too few, too many, unknown
        and doubled ones."""
        count = len(self.names)
        if len(args) > count:
            raise SignatureError(f"{self.label} takes {self._listed()}, given {len(args) + len(kwargs)}")
        bound = dict(zip(self.names, args, strict=False))
        authors: dict[str, str] = {}
        for argument, python in zip(self.arguments, self.names, strict=True):
            authors.setdefault(argument.name, python)
        for key, value in kwargs.items():
            name = authors.get(key, key)
            if name not in self.names:
                raise SignatureError(f"{self.label} has no argument {key!r}; it takes {self._listed()}")
            if name in bound:
                raise SignatureError(f"{self.label} got two values for the argument {key!r}; pass it once")
            bound[name] = value
        for name in self.names[self.required :]:
            bound.setdefault(name, None)
        missing = [name for name in self.names if name not in bound]
        if missing:
            raise SignatureError(
                f"{self.label} takes {self._listed()}, given {len(args) + len(kwargs)}; missing: {', '.join(missing)}"
            )
        return tuple(bound[name] for name in self.names)

    def _listed(self) -> str:
        count = len(self.names)
        if count == 0:
            return "no arguments"
        return f"{count} argument{'s' if count > 1 else ''} ({', '.join(self.names)})"

    def refuse(self, index: int, mismatch: Mismatch) -> SignatureError:
        """The error for the argument at ``index``."""
        argument = self.arguments[index]
        kind = "array " if argument.kind == "memref" else ""
        return SignatureError(
            f"{self.label}: argument {self.names[index]!r} ({index + 1} of {len(self.names)}): "
            f"expected {kind}{argument}, given {mismatch.given}; {mismatch.advice}"
        )

    def refuse_results(self, mismatch: Mismatch) -> SignatureError:
        """The error for results that cannot be represented."""
        return SignatureError(f"{self.label}: its result needs {mismatch.given}; {mismatch.advice}")

    def signature(self) -> inspect.Signature:
        """For inspect.signature: annotations are strings such as ``float32[n, 4]``; dynamic sizes, those of results as
        well, have the same name where they are known to be equal."""
        annotations, returned = self._annotations()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(
                name, kind, annotation=annotation, default=None if index >= self.required else inspect.Parameter.empty
            )
            for index, (name, annotation) in enumerate(zip(self.names, annotations, strict=True))
        ]
        return inspect.Signature(parameters, return_annotation=returned)

    def _annotations(self) -> tuple[list[str], str]:
        # No size is called like an argument, which might seem to give it.
        names = (name for name in _dimension_names() if name not in self.names)

        sets = {pair: equal for equal in self.equal for pair in equal.dimensions}
        named: dict[EqualSizes | tuple[int, int], str] = {}

        def size_at(place: tuple[int, int]) -> str:
            equal = sets.get(place)
            if equal is not None and equal.size is not None:
                return str(equal.size)
            if (key := equal or place) not in named:
                named[key] = next(names)
            return named[key]

        def annotation(argument: Argument, places: Sequence[tuple[int, int] | None]) -> str:
            if argument.kind == "scalar":
                return str(argument)
            sizes = [
                str(size) if size is not None else size_at(place) if place else next(names)
                for size, place in zip(argument.shape, places, strict=True)
            ]
            return f"{argument.dtype}[{', '.join(sizes)}]{' | None' if argument.optional else ''}"

        arguments = [
            annotation(argument, [(index, i) for i in range(argument.rank)])
            for index, argument in enumerate(self.arguments)
        ]
        known = {(size.result, size.dimension): (size.argument, size.of) for size in self.result_sizes}
        results = [
            annotation(result, [known.get((index, i)) for i in range(result.rank)])
            for index, result in enumerate(self.results)
        ]
        if len(results) == 1:
            return arguments, results[0]
        return arguments, f"tuple[{', '.join(results)}]" if results else "None"

    def text(self) -> str:
        """``name(x: float32[n], ...) -> int64``."""
        annotations, returned = self._annotations()
        defaults = ["" if index < self.required else " = None" for index in range(len(self.names))]
        given = zip(self.names, annotations, defaults, strict=True)
        return f"{self.name}({', '.join(f'{name}: {note}{default}' for name, note, default in given)}) -> {returned}"

    def help(self) -> str:
        """The signature, and below it what the author says."""
        return f"{self.text()}\n\n{self.doc}" if self.doc else self.text()


class InstanceSignature:
    """``__signature__`` of objects with a `Callee` in ``_callee``; their class keeps its constructor's."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature | None:
        return None if instance is None else instance._callee.signature()
