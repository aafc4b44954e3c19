"""Kernels of an artifact, launched without the host code around them."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from offload.artifact.meta import Argument, KernelSignature
from offload.errors import DeviceError, SignatureError
from offload.runtime import abi
from offload.runtime.arguments import MemrefPacker, captured
from offload.runtime.array import DeviceArray
from offload.runtime.calls import Callee, InstanceSignature
from offload.runtime.dtypes import Mismatch, find, scalar
from offload.runtime.launch import Launch
from offload.runtime.memory import ADDRESSES
from offload.runtime.native import Native
from offload.runtime.occupancy import Occupancy, ask, threads_of
from offload.runtime.pending import Mark, Pending
from offload.runtime.pickled import kernel_of
from offload.runtime.plans import arm_launch, share_plan
from offload.runtime.pointers import PointerPacker
from offload.runtime.sizes import check_known, flat, shared_memory, sizes_of
from offload.runtime.staging import Staged, Staging, wanted
from offload.runtime.streams import Stream, as_stream
from offload.runtime.views import View, gpu_of, view_of

_KEPT_LAUNCHES = 64

# The runtime keeps a slot's kernel, and the kernel its slot's name, as long as the process lives; so do we.
# Keyed by the address of the module's slot in the library, which is never unloaded, and the kernel's name.
_slots: dict[tuple[int, str], abi.KernelSlot] = {}


def kernel_slot(module: Any, name: str) -> abi.KernelSlot:
    """The one slot of the kernel ``name`` of the module whose `abi.ModuleSlot` is given."""
    key = (ctypes.addressof(module), name)
    slot = _slots.get(key)
    if slot is None:
        slot = _slots.setdefault(key, abi.KernelSlot(ctypes.pointer(module), name.encode(), None))
    return slot


class Kernel:
    """A kernel of a loaded library: ``kernel[grid, block](...)``, ``kernel[grid, block, stream,
    shared_bytes, cluster](...)``.

    ``grid`` and ``block`` are integers or tuples of one to three: blocks, and threads per block, in x, y and
    z. ``stream`` comes from ``lib.stream()`` or another package; with one, the call does not wait for the
    kernel. ``shared_bytes`` is the dynamic workgroup memory. ``cluster`` counts blocks as ``grid`` does, on devices
    that have clusters."""

    def __init__(self, signature: KernelSignature, module: Any, native: Native) -> None:
        self.signature = signature
        self._callee = Callee(signature.name, f"kernel {signature.name}", signature.args, (), signature.doc)
        self._native = native
        self._slot = kernel_slot(module, signature.name)
        self._packers: list[Callable[[Any, list[object]], bytes]] | None = None
        self._array_packers: list[MemrefPacker | PointerPacker | None] = []
        self._offsets: list[int] = []
        self._launches: dict[Any, Launch] = {}
        self._plans: dict[tuple[object, ...], Any] = {}  # of launches on streams
        # Such launches by grid and block, without their streams, and their plans:
        self._ready: dict[tuple[object, ...], tuple[Launch, Any]] = {}
        self.__name__ = self.__qualname__ = signature.name
        self.__doc__ = self._callee.help()

    def __getitem__(self, launch: Any) -> Launch:
        """Raises `SignatureError` for a grid, block, stream, size or cluster that is none, and for a grid or block that
        the kernel was not built for."""
        if type(launch) is tuple and len(launch) == 3 and launch[2] is not None:
            stream = launch[2]
            if type(stream) is not Stream or stream.native is not self._native:
                stream = as_stream(self._native, stream, self._callee.label)
            return self._again(launch, stream) or self._new_launch((*launch[:2], stream))
        try:
            kept = self._launches.get(launch)
        except TypeError:  # Something in it has no hash.
            kept = None
        # True and 1.0 are equal to 1, and no sizes.
        if kept is not None and all(type(size) is int for size in flat(launch)):
            return kept
        return self._new_launch(launch)

    def _new_launch(self, launch: Any) -> Launch:
        if not isinstance(launch, tuple) or not 2 <= len(launch) <= 5:
            raise SignatureError(
                f"{self._callee.label}: expected [grid, block], [grid, block, stream], "
                f"[grid, block, stream, shared_bytes] or [grid, block, stream, shared_bytes, cluster], given {launch!r}"
            )
        grid, block = launch[:2]
        stream = launch[2] if len(launch) > 2 else None
        label = self._callee.label
        shared = shared_memory(label, launch[3]) if len(launch) > 3 else 0
        handle = None
        if stream is not None:
            stream = as_stream(self._native, stream, label)
            handle = stream.handle
        sizes = (*sizes_of(label, "grid", grid), *sizes_of(label, "block", block))
        check_known(label, "grid", sizes[:3], self.signature.known_grid_size)
        check_known(label, "block", sizes[3:], self.signature.known_block_size)
        cluster = (0, 0, 0) if len(launch) < 5 or launch[4] is None else sizes_of(label, "cluster", launch[4])
        made = Launch(self, sizes, stream, handle, shared, cluster)
        # Without a stream a launch is its numbers, and kept; with one the rest is.
        numbers = launch if stream is None else launch[:2]
        if (stream is None or len(launch) == 3) and all(type(size) is int for size in flat(numbers)):
            kept: dict[Any, Any] = self._launches if stream is None else self._ready
            plan = self._plans.get(made.alike)
            if len(kept) >= _KEPT_LAUNCHES:
                kept.clear()
            if stream is None:
                kept[numbers] = made
            elif plan:
                kept[numbers] = (made.again(None, None), plan[0])
        return made

    def occupancy(self, block: Any = None, shared: int = 0) -> Occupancy:
        """How many blocks of that size, each with ``shared`` bytes of dynamic workgroup memory, the calling thread's
        device runs at a time; without ``block``, of the size that keeps it busiest.

        Raises `SignatureError` for a block or a number of bytes that is none, `DeviceError` where the driver does not
        tell."""
        label = self._callee.label
        threads = 0 if block is None else threads_of(sizes_of(label, "block", block))
        return ask(self._native, self._slot, threads, shared_memory(label, shared))

    def __call__(self, /, *args: Any, **kwargs: Any) -> None:
        raise SignatureError(
            f"{self._callee.label}: say how many blocks and threads to launch: "
            f"{self.signature.name}[grid, block]({', '.join(self._callee.names)})"
        )

    def launch(self, launch: Launch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pending | None:
        """What calling a `Launch` does."""
        packers = self._packers if self._packers is not None else self._prepare()
        if kwargs or len(args) != len(packers):
            args = self._callee.bind(args, kwargs)
        stream: Stream | None = launch.stream
        if stream is not None:
            stream.check(self._callee.label)
            stream = stream.here()
        if launch.handle and self._native.api.mgpuStreamCapturing(launch.handle):
            return self._capture(launch, packers, args)
        if not wanted(self._native, args):
            return self._run(launch, stream, packers, args)
        staging = Staging(self._native)
        pending = self._run(launch, stream, packers, staging.take_all(self._callee, self._array_packers, args))
        if pending is not None and staging:  # What is copied back has to be done.
            pending.wait()
        staging.finish()
        return pending

    def _run(
        self,
        launch: Launch,
        stream: Stream | None,
        packers: list[Callable[[Any, list[object]], bytes]],
        args: tuple[Any, ...],
    ) -> Pending | None:
        keep: list[object] = []
        pieces: list[bytes] = []
        held: list[Mark] = []
        followed: set[tuple[int, int | None]] = set()
        on_gpu = None if stream is None or stream.backend == "host" else stream
        try:
            for pack, packer, given in zip(packers, self._array_packers, args, strict=True):
                value = given
                if type(value) is DeviceArray:
                    self._check_place(launch, value)
                    value.hold(launch.handle, self._native, None if stream is None else stream.token, held)
                elif (
                    on_gpu is not None and packer is not None and value is not None and not isinstance(value, ADDRESSES)
                ):
                    value = self._follow(on_gpu, value, followed)
                seen = len(keep)
                pieces.append(pack(value, keep))
                if len(keep) > seen:
                    self._check_place(launch, keep[seen])
        except Mismatch as mismatch:
            raise self._callee.refuse(len(pieces), mismatch) from None
        if stream is not None:
            stream.before_launch()
            try:
                self._start(launch, pieces)
                return self.put(stream, args, keep, held)
            except DeviceError:
                raise
            except BaseException:  # an interrupt, when the kernel was on the stream
                with contextlib.suppress(DeviceError):
                    self.put(stream, args, keep, held)
                raise
        self._start(launch, pieces)
        for mark in held:  # the kernel began behind them, and is done
            mark.done = True
        return None

    def _follow(self, stream: Stream, value: Any, followed: set[tuple[int, int | None]]) -> View:
        """Another package's array, behind whose work the stream is to go on, if it has not ``followed`` that yet."""
        view = view_of(value, before=stream.consumer())
        if view.wait_for is None or stream.backend not in view.places:
            return view
        work = view.wait_for, view.device
        if work not in followed:
            if not stream.follow(*work):
                raise captured(view)
            followed.add(work)
        return view._replace(wait_for=None)

    def put(
        self, stream: Stream, args: tuple[Any, ...], keep: Sequence[object] = (), held: Sequence[Mark] = ()
    ) -> Pending:
        """The handle of a launch that has just been put on that stream with these arguments, behind the marks that are
        ``held``; ``keep`` and what comes behind them is what else it uses. The stream keeps what is not ours. Raises
        `DeviceError`."""
        arrays: list[DeviceArray] = []
        others = [*keep, *args[len(self._array_packers) :]]
        for value, packer in zip(args, self._array_packers, strict=False):
            if type(value) is DeviceArray:
                arrays.append(value)
            elif packer is not None and value is not None:
                others.append(value)
        mark = stream.mark(self._native, stream.handle, arrays, others, held)
        return Pending(self._native, mark, (*args, *keep))

    def _capture(
        self, launch: Launch, packers: list[Callable[[Any, list[object]], bytes]], args: tuple[Any, ...]
    ) -> Pending:
        """A launch that goes into a graph. Nothing in it may wait for what is outside, nor what is outside for it: work
        from before is done first, other packages are not asked to order theirs, and no mark is left."""
        keep: list[object] = []
        pieces: list[bytes] = []
        try:
            for pack, packer, value in zip(packers, self._array_packers, args, strict=True):
                if type(value) is Staged:
                    raise Mismatch(
                        "an array to be copied for a launch that goes into a graph",
                        "put it on the device before the capture, with lib.device.array(...)",
                    )
                if type(value) is DeviceArray:
                    self._check_place(launch, value)
                    value.settle()
                as_is = packer is None or value is None or isinstance(value, ADDRESSES)
                seen = value if as_is else view_of(value, ordered=False)
                self._check_place(launch, seen)
                pieces.append(pack(seen, keep))
        except Mismatch as mismatch:
            raise self._callee.refuse(len(pieces), mismatch) from None
        self._start(launch, pieces)
        return Pending(self._native, None, (*args, *keep))

    def _start(self, launch: Launch, pieces: list[bytes]) -> None:
        """Launches with these parameters, which the driver copies. Raises `DeviceError`."""
        blob = b"".join(pieces)
        values = ctypes.create_string_buffer(blob, len(blob) + 1)
        base = ctypes.addressof(values)
        count = len(self._offsets)
        params = (ctypes.c_void_p * (count + 1))(*[base + offset for offset in self._offsets])
        self._native.api.mgpuKernelLaunch(
            self._slot,
            *launch.sizes,
            *launch.cluster,
            launch.shared,
            launch.handle,
            params,
            count,
            launch.stream is None,
        )
        self._native.check()

    def _check_place(self, launch: Launch, value: Any) -> None:
        """Of an array on one GPU, ours or another package's."""
        there = gpu_of(value, self._native.backend())
        if there is None:
            return
        stream = launch.stream
        here = self._native.device_of_work() if stream is None else stream.device()
        if here != there:
            instead = f"inside 'with lib.device({there}):'" if stream is None else f"on a stream of device {there}"
            raise Mismatch(
                f"{view_of(value)} on device {there}, but the kernel runs on device {here}",
                f"launch it {instead}, or copy the array to device {here}",
            )

    def calls_until_armed(self, launch: Launch) -> list[bool]:
        """A list that is as long as the calls of a new launch until it gets a plan; empty where an earlier one that is
        alike has it: ``kernel[grid, block, stream](...)`` in a loop makes a new launch each time.

        Those without a stream are kept for the next call; of the others only some are made again."""
        if launch.stream is None:
            return [True]
        plan = self._plans.get(launch.alike)
        if plan is None:
            self._keep_plan(launch, ())
            return [True, False]
        if plan:
            share_plan(plan[0], launch)
        return [] if plan else [True]

    def _again(self, launch: tuple[Any, Any, Any], given: Stream) -> Launch | None:
        """A launch as there was one on another or the same stream, whose numbers need no checks any more."""
        try:
            ready = self._ready.get(launch[:2])
        except TypeError:  # something in it has no hash
            return None
        if ready is None or not all(type(size) is int for size in flat(launch[:2])):
            return None
        return ready[0].again(given, ready[1])

    def _keep_plan(self, launch: Launch, plan: tuple[Any, ...]) -> None:
        if len(self._plans) >= _KEPT_LAUNCHES:
            self._plans.clear()
        self._plans[launch.alike] = plan

    def arm(self, launch: Launch) -> None:
        """Gives a launch its plan for further calls."""
        slot, signature = ctypes.addressof(self._slot), self.signature
        goes_on = launch.stream is not None
        how = (launch.sizes, launch.cluster, launch.shared, signature.bare_pointers, goes_on)
        plan = arm_launch(launch, self._native, slot, signature.args, how, self._callee.names)
        if goes_on:
            self._keep_plan(launch, (plan,))

    def error(self, code: int) -> Exception:
        """The error of the runtime's code."""
        return self._native.error(code)

    def _prepare(self) -> list[Callable[[Any, list[object]], bytes]]:
        """Does once what all launches share: a packer per argument, and where each parameter lies behind
        it. Where several threads are at it, each does it by itself."""
        packers: list[Callable[[Any, list[object]], bytes]] = []
        array_packers: list[MemrefPacker | PointerPacker | None] = []
        offsets: list[int] = []
        position = 0
        for index, argument in enumerate(self.signature.args):
            try:
                if argument.kind == "memref":
                    space = "host" if argument.space == "host" else "device"
                    packer = MemrefPacker(argument, self._native, space)
                    array_packers.append(packer)
                    bare = self.signature.bare_pointers
                    packers.append(_address_packer(packer) if bare else packer)
                    count = 1 if bare else 3 + 2 * argument.rank
                    offsets += range(position, position + 8 * count, 8)
                    position += 8 * count
                elif argument.pointer:
                    address = PointerPacker(argument, self._native, "device")
                    array_packers.append(address)
                    packers.append(_word_packer(address))
                    offsets.append(position)
                    position += 8
                else:
                    pack, size = _scalar_packer(argument)
                    array_packers.append(None)
                    packers.append(pack)
                    offsets.append(position)
                    position += size
            except Mismatch as mismatch:
                raise self._callee.refuse(index, mismatch) from None
        self._offsets = offsets
        self._array_packers = array_packers
        self._packers = packers  # the last: with it, others take the rest
        return packers

    __signature__ = InstanceSignature()

    def __reduce__(self) -> tuple[Any, ...]:
        return kernel_of, (self._native.file, self.signature.module, self.signature.name)

    def __repr__(self) -> str:
        return f"<offload kernel {self._callee.text()} of {self.signature.module}>"


def _address_packer(descriptor: MemrefPacker) -> Callable[[Any, list[object]], bytes]:
    """The aligned pointer alone: the second word of a descriptor, whose offset is 0 in an identity layout."""
    return lambda value, keep: descriptor(value, keep)[8:16]


def _word_packer(pointer: PointerPacker) -> Callable[[Any, list[object]], bytes]:
    return lambda value, keep: struct.pack("<Q", pointer(value, keep))


def _scalar_packer(argument: Argument) -> tuple[Callable[[Any, list[object]], bytes], int]:
    """A packer into a multiple of 8 bytes, so that every parameter is aligned, and that size."""
    dtype = find(argument.dtype)
    check = scalar(dtype)
    size = -(-dtype.size // 8) * 8
    pack = struct.Struct(f"<{dtype.code}{size - dtype.size}x").pack
    if dtype.family == "complex":

        def pair(value: Any, keep: list[object]) -> bytes:
            number = check(value)
            return pack(number.real, number.imag)

        return pair, size
    return lambda value, keep: pack(check(value)), size
