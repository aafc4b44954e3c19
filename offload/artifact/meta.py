"""What an artifact says about itself: signatures, kernels, images, producer; JSON of schema 1."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from offload.artifact.record import Record, text_of
from offload.errors import ArtifactError

SCHEMA = 1
KINDS = ("memref", "scalar")
SPACES = ("device", "host", "any")
RUNTIMES = ("static", "shared")


class Argument(NamedTuple):
    """One argument or result.

    ``dtype`` is a NumPy or ml_dtypes name ("bool", "int64", "bfloat16", "float8_e4m3fn", "complex64"); an
    index is "int64". For memrefs ``shape`` has None for dynamic sizes; ``strides`` is None for the identity
    layout, else counts elements, None for dynamic; ``offset`` counts elements. ``space`` says which memory is
    meant: "device", "host", or "any" where the type does not tell. Scalars have rank 0. ``optional`` says that None
    may be passed, which the function sees as an array with 0 for each dynamic size. A ``pointer`` is a "uint64" that is
    an address. The CPU uses a ``shared`` result of device memory, too. A function leaves a ``read_only`` array as it
    is."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    space: str = "any"
    optional: bool = False
    pointer: bool = False
    shared: bool = False
    read_only: bool = False

    @property
    def rank(self) -> int:
        """The number of dimensions; 0 for scalars."""
        return len(self.shape)

    def __str__(self) -> str:
        if self.kind == "scalar":
            return "pointer" if self.pointer else self.dtype
        return f"{self.dtype}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"

    def to_json(self) -> dict[str, Any]:
        value = {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "rank": self.rank,
            "shape": list(self.shape),
            "strides": None if self.strides is None else list(self.strides),
            "offset": self.offset,
            "space": self.space,
        }
        return value | {key: True for key in ("optional", "pointer", "shared", "read_only") if getattr(self, key)}

    @classmethod
    def from_json(cls, value: Any, where: str = "argument") -> Argument:
        """Raises `ArtifactError` where the value is not an argument of schema 1."""
        record = Record(value, where)
        kind = record.choice("kind", KINDS)
        dtype = record.get("dtype", str)
        shape = record.sizes("shape")
        strides = None if record.get("strides", list, optional=True) is None else record.sizes("strides")
        if record.get("rank", int) != len(shape) or (strides is not None and len(strides) != len(shape)):
            raise ArtifactError(
                f"{where}: rank {record.get('rank', int)}, shape {shape} and strides {strides} do not agree"
            )
        if any(size is not None and size < 0 for size in shape) or (kind == "scalar" and shape):
            raise ArtifactError(f"{where}: {list(shape)} is not the shape of a {kind}")
        optional = record.flag("optional")
        if optional and None not in shape:
            raise ArtifactError(f"{where}: an optional argument needs a dynamic size, the shape is {list(shape)}")
        pointer = record.flag("pointer")
        if pointer and (kind, dtype) != ("scalar", "uint64"):
            raise ArtifactError(f"{where}: a pointer is a scalar of uint64, not a {kind} of {dtype}")
        return cls(
            record.get("name", str),
            kind,
            "int64" if dtype == "index" else dtype,
            shape,
            strides,
            record.get("offset", int, optional=True),
            record.choice("space", SPACES),
            optional,
            pointer,
            record.flag("shared"),
            record.flag("read_only"),
        )


class EqualSizes(NamedTuple):
    """Sizes that have to be the same, or ``size``, though their types leave them open. ``dimensions`` are pairs: the
    number of an argument, and of its dimension."""

    dimensions: tuple[tuple[int, int], ...]
    size: int | None = None

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"dimensions": [list(pair) for pair in self.dimensions]}
        return value if self.size is None else {**value, "size": self.size}

    @classmethod
    def from_json(cls, value: Any, where: str = "equal") -> EqualSizes:
        """Raises `ArtifactError` where the value is not of schema 1."""
        record = Record(value, where)
        pairs = record.get("dimensions", list)
        if not pairs or not all(type(pair) is list and [type(each) for each in pair] == [int, int] for pair in pairs):
            raise ArtifactError(f"{where}: expected pairs of integers in the field 'dimensions', found {pairs}")
        size = record.get("size", int) if "size" in record.value else None
        return cls(tuple((argument, dimension) for argument, dimension in pairs), size)


class ResultSize(NamedTuple):
    """A dynamic size of a result that is an argument's: the numbers of both, and of the dimension of each."""

    result: int
    dimension: int
    argument: int
    of: int

    @classmethod
    def from_json(cls, value: Any, where: str = "result_sizes") -> ResultSize:
        """Raises `ArtifactError` where the value is not of schema 1."""
        if type(value) is not list or [type(each) for each in value] != [int] * 4:
            raise ArtifactError(f"{where}: expected four integers, found {value}")
        return cls(*value)


class Signature(NamedTuple):
    """A host function: ``name`` is the author's, ``symbol`` its C interface in the library, ``doc`` what the author
    says of it. A ``brief`` one is a few operations that cannot fail, wait or call anything; one of ``any_device`` may
    choose the devices that its work goes to, or call what does. What is known of sizes besides the types is in
    ``equal``, and in ``result_sizes``."""

    name: str
    symbol: str
    args: tuple[Argument, ...] = ()
    results: tuple[Argument, ...] = ()
    doc: str = ""
    brief: bool = False
    any_device: bool = False
    equal: tuple[EqualSizes, ...] = ()
    result_sizes: tuple[ResultSize, ...] = ()

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "name": self.name,
            "symbol": self.symbol,
            "args": [a.to_json() for a in self.args],
            "results": [r.to_json() for r in self.results],
        }
        value |= {key: True for key in ("brief", "any_device") if getattr(self, key)}
        if self.equal:
            value["equal"] = [sizes.to_json() for sizes in self.equal]
        if self.result_sizes:
            value["result_sizes"] = [list(size) for size in self.result_sizes]
        return {**value, "doc": self.doc} if self.doc else value

    @classmethod
    def from_json(cls, value: Any, where: str = "function") -> Signature:
        """Raises `ArtifactError` where the value is not a function of schema 1."""
        record = Record(value, where)
        arguments = record.all("args", Argument.from_json)
        equal = record.all("equal", EqualSizes.from_json) if "equal" in record.value else ()
        results = record.all("results", Argument.from_json)
        sizes = record.all("result_sizes", ResultSize.from_json) if "result_sizes" in record.value else ()
        named = [("equal", "argument", arguments, *pair) for each in equal for pair in each.dimensions]
        named += [("result_sizes", "argument", arguments, size.argument, size.of) for size in sizes]
        named += [("result_sizes", "result", results, size.result, size.dimension) for size in sizes]
        for key, kind, among, index, dimension in named:
            if not (0 <= index < len(among) and 0 <= dimension < among[index].rank):
                raise ArtifactError(f"{where}: no {kind} {index} with a dimension {dimension}, as {key!r} has it")
        return cls(
            record.get("name", str),
            record.get("symbol", str),
            arguments,
            results,
            record.text("doc"),
            record.flag("brief"),
            record.flag("any_device"),
            equal,
            sizes,
        )


class KernelSignature(NamedTuple):
    """A kernel of the gpu.module ``module``. Its parameters are scalars and the expanded memref descriptors, or,
    with ``bare_pointers``, one pointer for each memref. ``doc`` is what the author says of it. ``known_block_size`` and
    ``known_grid_size`` are the threads and blocks along x, y and z that it was built for, and no others; empty where
    there may be any."""

    name: str
    module: str
    args: tuple[Argument, ...] = ()
    bare_pointers: bool = False
    doc: str = ""
    known_block_size: tuple[int, ...] = ()
    known_grid_size: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        sizes = {key: list(getattr(self, key)) for key in ("known_block_size", "known_grid_size")}
        said = {"bare_pointers": self.bare_pointers, **sizes, "doc": self.doc}
        return {
            "name": self.name,
            "module": self.module,
            "args": [argument.to_json() for argument in self.args],
            **{key: value for key, value in said.items() if value},
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "kernel") -> KernelSignature:
        """Raises `ArtifactError` where the value is not a kernel of schema 1."""
        record = Record(value, where)
        return cls(
            record.get("name", str),
            record.get("module", str),
            record.all("args", Argument.from_json),
            record.flag("bare_pointers"),
            record.text("doc"),
            record.numbers("known_block_size", 3),
            record.numbers("known_grid_size", 3),
        )


class Refused(NamedTuple):
    """A function, or a kernel of ``module``, that Python cannot call: ``why`` is a type that has no counterpart there,
    and whose it is."""

    name: str
    module: str
    why: str

    @classmethod
    def from_json(cls, value: Any, where: str = "refused") -> Refused:
        """Raises `ArtifactError` where the value is not of schema 1."""
        record = Record(value, where)
        return cls(record.get("name", str), record.get("module", str), record.get("why", str))


class ImageInfo(NamedTuple):
    """What is known of one image besides its bytes. ``resources`` maps a kernel to its registers, spilled
    bytes, workgroup memory bytes and whatever else the target's tools tell."""

    module: str
    target: str
    chip: str
    format: str
    kernels: tuple[str, ...] = ()
    resources: Mapping[str, Mapping[str, Any]] = {}

    def to_json(self) -> dict[str, Any]:
        return {
            "module": self.module,
            "target": self.target,
            "chip": self.chip,
            "format": self.format,
            "kernels": list(self.kernels),
            "resources": {k: dict(v) for k, v in self.resources.items()},
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "image") -> ImageInfo:
        """Raises `ArtifactError` where the value is not an image of schema 1."""
        record = Record(value, where)
        resources = record.get("resources", dict)
        if not all(isinstance(entry, dict) for entry in resources.values()):
            raise ArtifactError(f"{where}: expected an object per kernel in 'resources'")
        return cls(
            record.get("module", str),
            record.get("target", str),
            record.get("chip", str),
            record.get("format", str),
            record.all("kernels", text_of),
            resources,
        )


class Metadata(NamedTuple):
    """The content of the section ``.offload.meta``. ``images`` are in the container's order; ``runtime`` says
    whether the mgpu runtime is linked in ("static") or is a library of its own ("shared"). ``refused`` may leave out
    functions and kernels that Python cannot call."""

    functions: tuple[Signature, ...] = ()
    kernels: tuple[KernelSignature, ...] = ()
    images: tuple[ImageInfo, ...] = ()
    producer: Mapping[str, Any] = {}
    runtime: str = "static"
    refused: tuple[Refused, ...] = ()

    def why_refused(self, name: str, module: str = "") -> str:
        """Why Python cannot call a function or a kernel; empty where that is not known."""
        return next((entry.why for entry in self.refused if (entry.name, entry.module) == (name, module)), "")

    def to_json(self) -> str:
        """Compact JSON with sorted keys: equal metadata gives equal text."""
        value: dict[str, Any] = {
            "schema": SCHEMA,
            "producer": dict(self.producer),
            "runtime": self.runtime,
            "functions": [function.to_json() for function in self.functions],
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "images": [image.to_json() for image in self.images],
        }
        if self.refused:
            value["refused"] = [entry._asdict() for entry in self.refused]
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "metadata") -> Metadata:
        """Raises `ArtifactError` for text that is no JSON, another schema, or fields that do not fit it."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"{where}: the metadata is not JSON: {error}") from None
        record = Record(value, where)
        schema = record.get("schema", int)
        if schema != SCHEMA:
            raise ArtifactError(
                f"{where}: expected metadata of schema {SCHEMA}, found {schema}; "
                f"{'update offload' if schema > SCHEMA else 'build the artifact again'}"
            )
        return cls(
            record.all("functions", Signature.from_json),
            record.all("kernels", KernelSignature.from_json),
            record.all("images", ImageInfo.from_json),
            record.get("producer", dict),
            record.choice("runtime", RUNTIMES),
            record.all("refused", Refused.from_json) if "refused" in record.value else (),
        )


INTERFACE = "_mlir_ciface_"
"""How the symbols of functions begin that C and Python call."""


def own_symbol(soname: str, symbol: str) -> str:
    """A second name of a function in a library that programs are linked with: another such library may have a function
    of the first one, and the linker would take that."""
    prefix = re.sub(r"[^0-9A-Za-z_]", "_", soname)
    if not re.fullmatch(r"\w+\.so", soname, re.ASCII):  # liba-b.so is not to be called like liba_b.so
        prefix += f"_{mark(soname)}"
    return f"{prefix}.{symbol}"


def mark(name: str) -> str:
    """A few letters of a name's own, for one that symbols and namespaces have with other characters."""
    import hashlib  # few names need it

    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]


def is_name(name: str) -> bool:
    """Whether Python can name it."""
    return name.isidentifier() and not keyword.iskeyword(name)
