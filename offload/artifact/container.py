"""The container of an artifact's device images: LLVM's OffloadBinary, version 1, one entry after another.

Layout: llvm/Object/OffloadBinary.h of LLVM 22; `llvm-objdump --offloading` lists it and the C runtime reads
it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from offload.errors import ArtifactError
from offload.files import plain_name

SHT_LLVM_OFFLOADING = 0x6FFF4C0B
MAGIC = b"\x10\xff\x10\xad"
VERSION = 1
ALIGNMENT = 8

IMG_OBJECT, IMG_BITCODE, IMG_CUBIN, IMG_FATBINARY, IMG_PTX, IMG_SPIRV = range(1, 7)
OFK_NONE, OFK_CUDA, OFK_HIP = 0, 2, 4

_HEADER = struct.Struct("<4sIQQQ")  # magic, version, size, offset of the entry, size of the entry
_ENTRY = struct.Struct("<HHIQQQQ")  # image kind, offload kind, flags, strings: offset, count, image: offset, size
_PAIR = struct.Struct("<QQ")  # offset of the key, of the value
_KEYS = ("triple", "arch", "target", "module", "format", "kernels")
_JIT_LEVEL = "jit"  # not every image has it

_SUFFIXES = {
    ("nvvm", "bin"): ".cubin",
    ("nvvm", "isa"): ".ptx",
    ("rocdl", "bin"): ".hsaco",
    ("spirv", "bin"): ".spv",
    ("host", "bin"): ".o",
}
_FORMAT_SUFFIXES = {"bin": ".bin", "isa": ".s", "offload": ".bc", "fatbin": ".fatbin"}
_IMAGE_KINDS = {
    ".cubin": IMG_CUBIN,
    ".ptx": IMG_PTX,
    ".bc": IMG_BITCODE,
    ".fatbin": IMG_FATBINARY,
    ".spv": IMG_SPIRV,
}
_OFFLOAD_KINDS = {"nvvm": OFK_CUDA, "rocdl": OFK_HIP}


class Image(NamedTuple):
    """One gpu.module compiled for one target.

    ``target`` is a name of the target registry, ``chip`` e.g. "sm_90", ``format`` one of "offload", "isa",
    "bin" and "fatbin", ``kernels`` the symbols of the module's kernels, ``data`` the bytes that a driver
    loads. ``jit_level`` is the optimization level (0 to 4) for text that a driver compiles; None is the
    driver's own."""

    module: str
    target: str
    chip: str
    triple: str
    format: str
    kernels: tuple[str, ...]
    data: bytes
    jit_level: int | None = None

    @property
    def suffix(self) -> str:
        """The file suffix of these bytes, with its dot."""
        return _SUFFIXES.get((self.target, self.format)) or _FORMAT_SUFFIXES.get(self.format, ".bin")

    @property
    def filename(self) -> str:
        """``<module>.<target>.<chip><suffix>``, without what would leave a folder or is too long for a file."""
        return plain_name(f"{self.module}.{self.target}.{self.chip}") + self.suffix


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _write_one(image: Image) -> bytes:
    if any("," in kernel or not kernel for kernel in image.kernels):
        raise ArtifactError(
            f"module {image.module!r} has a kernel whose name is empty or has a comma: {list(image.kernels)}; rename it"
        )
    values = (image.triple, image.chip, image.target, image.module, image.format, ",".join(image.kernels))
    strings = bytearray()
    pairs = bytearray()
    named = dict(zip(_KEYS, values, strict=True))
    if image.jit_level is not None:
        named[_JIT_LEVEL] = str(image.jit_level)
    first = _HEADER.size + _ENTRY.size + len(named) * _PAIR.size
    for key, value in named.items():
        encoded = value.encode()
        if b"\0" in encoded:
            raise ArtifactError(f"module {image.module!r}: its {key} {value!r} holds a NUL character")
        pairs += _PAIR.pack(first + len(strings), first + len(strings) + len(key) + 1)
        strings += key.encode() + b"\0" + encoded + b"\0"
    image_offset = _aligned(first + len(strings))
    size = _aligned(image_offset + len(image.data))
    kind = _IMAGE_KINDS.get(image.suffix, IMG_OBJECT)
    head = (
        _HEADER.pack(MAGIC, VERSION, size, _HEADER.size, _ENTRY.size)
        + _ENTRY.pack(
            kind,
            _OFFLOAD_KINDS.get(image.target, OFK_NONE),
            0,
            _HEADER.size + _ENTRY.size,
            len(named),
            image_offset,
            len(image.data),
        )
        + bytes(pairs)
        + bytes(strings)
    )
    return head.ljust(image_offset, b"\0") + image.data + bytes(size - image_offset - len(image.data))


def write(images: Iterable[Image]) -> bytes:
    """The container of these images, in their order; equal inputs give equal bytes.

    Raises `ArtifactError` for a name that the format cannot hold.
    """
    return b"".join(_write_one(image) for image in images)


def read(data: bytes, name: str = "image container") -> list[Image]:
    """The images of a container, in order. ``name`` stands in front of the message of an `ArtifactError`,
    which is raised for every damage that the format can show."""
    images: list[Image] = []
    position = 0
    while position < len(data):
        image, size = _read_one(data, position, f"{name}: image {len(images)} at byte {position}")
        images.append(image)
        position += size
    return images


def _strings(data: bytes, start: int, size: int, table: tuple[int, int], what: str) -> dict[str, str]:
    """The string table, by its offset and the number of its pairs, of an entry, which is known to hold it."""
    offset, count = table

    def text(at: int) -> str:
        end = data.find(b"\0", start + at, start + size) if at < size else -1
        if end < 0:
            raise ArtifactError(f"{what}: a string at byte {at} of it does not end inside its {size} bytes")
        try:
            return data[start + at : end].decode()
        except UnicodeDecodeError:
            raise ArtifactError(f"{what}: the string at byte {at} of it is not UTF-8") from None

    pairs = (_PAIR.unpack_from(data, start + offset + index * _PAIR.size) for index in range(count))
    return {text(key): text(value) for key, value in pairs}


def _read_one(data: bytes, start: int, what: str) -> tuple[Image, int]:
    rest = len(data) - start
    if rest < _HEADER.size + _ENTRY.size:
        raise ArtifactError(f"{what}: expected at least {_HEADER.size + _ENTRY.size} bytes of header, found {rest}")
    magic, version, size, entry_offset, entry_size = _HEADER.unpack_from(data, start)
    if magic != MAGIC:
        raise ArtifactError(f"{what}: expected the magic bytes {MAGIC.hex(' ')}, found {magic.hex(' ')}")
    if version != VERSION:
        raise ArtifactError(f"{what}: expected version {VERSION} of the container, found {version}")
    if size > rest or size % ALIGNMENT or size < _HEADER.size + _ENTRY.size:
        raise ArtifactError(
            f"{what}: its size is said to be {size} bytes (a multiple of {ALIGNMENT}), {rest} bytes are left"
        )

    def check(offset: int, length: int, part: str) -> None:
        if offset + length > size:
            raise ArtifactError(f"{what}: {part} should end at byte {offset + length} of it, its size is {size}")

    if entry_size < _ENTRY.size:
        raise ArtifactError(f"{what}: expected an entry of at least {_ENTRY.size} bytes, found {entry_size}")
    check(entry_offset, entry_size, "its entry")
    fields = _ENTRY.unpack_from(data, start + entry_offset)
    kind, offload_kind, _, string_offset, string_count, image_offset, image_size = fields
    check(string_offset, string_count * _PAIR.size, "its string table")
    check(image_offset, image_size, "its image")

    strings = _strings(data, start, size, (string_offset, string_count), what)
    missing = [key for key in _KEYS if key not in strings]
    if missing:
        raise ArtifactError(f"{what}: it has no {', '.join(missing)}; it was not written by offload")
    jit_level = None
    if _JIT_LEVEL in strings:
        if strings[_JIT_LEVEL] not in ("0", "1", "2", "3", "4"):
            raise ArtifactError(f"{what}: expected a level of 0 to 4, found {strings[_JIT_LEVEL]!r}")
        jit_level = int(strings[_JIT_LEVEL])
    image = Image(
        strings["module"],
        strings["target"],
        strings["arch"],
        strings["triple"],
        strings["format"],
        tuple(strings["kernels"].split(",")) if strings["kernels"] else (),
        data[start + image_offset : start + image_offset + image_size],
        jit_level,
    )
    expected = (_IMAGE_KINDS.get(image.suffix, IMG_OBJECT), _OFFLOAD_KINDS.get(image.target, OFK_NONE))
    if (kind, offload_kind) != expected:
        raise ArtifactError(
            f"{what}: expected image kind {expected[0]} and offload kind {expected[1]} for "
            f"{image.target} {image.format}, found {kind} and {offload_kind}"
        )
    return image, size
