"""Products whose blocks have tiles: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "block_tiles.mlir"

_random = np.random.default_rng(23)


def floats(*shape: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    return _random.standard_normal(shape).astype(dtype)


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def check(library: offload.Library | OnDevice, sizes: tuple[tuple[int, int, int], ...]) -> None:
    for m, k, n in sizes:
        a, b, c = floats(m, k), floats(k, n), floats(m, n)
        want = c + a @ b
        library.product(a, b, c)
        close(c, want)
    a, b = (_random.integers(-128, 128, shape, np.int16) for shape in ((64, 160), (160, 128)))
    sums = np.ones((64, 128), np.int32)
    library.whole(a, b, sums)
    np.testing.assert_array_equal(sums, 1 + a.astype(np.int32) @ b.astype(np.int32))
    a, b, c = floats(70, 37, dtype=np.float16), floats(67, 37, dtype=np.float16), np.ones((70, 67), np.float32)
    library.rows(a, b, c)
    numbers = np.arange(37) + np.arange(70)[:, None]
    np.testing.assert_allclose(c, 1 + np.einsum("ik,jk,ik->ij", a, b, numbers, dtype=np.float64), rtol=1e-3, atol=1e-3)


def check_all(library: offload.Library | OnDevice) -> None:
    a, b, c = floats(130, 80, dtype=np.float64), floats(90, 130, dtype=np.float64), np.full((90, 80), -3.5).T
    library.columns(a, b, c)
    np.testing.assert_array_equal(c, np.minimum(-3.5, (a.T[:, None] - b[None]).min(-1)))
    query, key, scores = floats(2, 65, 3, 16), floats(2, 65, 3, 16), np.zeros((2, 3, 65, 65), np.float32)
    library.scores(query, key, scores)
    close(scores, np.einsum("nihk,njhk->nhij", query, key))


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(
        library,
        ((0, 128, 64), (64, 0, 64), (64, 127, 64), (64, 128, 64), (65, 129, 130), (63, 140, 64), (200, 300, 100)),
    )
    check_all(library)
    a, b = (_random.integers(1, 100, shape, np.int32) for shape in ((66, 130), (130, 66)))
    c = np.zeros((66, 66), np.int32)
    library.quotients(a, b, c)
    np.testing.assert_array_equal(c, (a[:, :, None] // b[None]).sum(1))


CROSSED = """
func.func @crossed(%a: memref<136x{m}xf32>, %b: memref<136x{n}xf32>, %c: memref<{m}x{n}xf32>) {{
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>,
                                 affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : memref<136x{m}xf32>, memref<136x{n}xf32>) outs(%c : memref<{m}x{n}xf32>)
  return
}}
"""


def at_the_end(array: np.ndarray) -> np.ndarray:
    """A copy behind which there is no memory."""
    room = mmap.mmap(-1, -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE)
    end = ctypes.addressof(ctypes.c_char.from_buffer(room)) + len(room) - mmap.PAGESIZE
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    at = len(room) - mmap.PAGESIZE - array.nbytes
    copy = np.frombuffer(room, array.dtype, array.size, at).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("sizes", [(64, 64), ("?", "?")])
def test_nothing_behind_the_inputs_is_read(sizes: tuple[int | str, int | str]) -> None:
    library = on_host(CROSSED.format(m=sizes[0], n=sizes[1]))
    for m, n in ((64, 64),) if sizes[0] == 64 else ((64, 64), (96, 65), (128, 130), (65, 96)):
        a, b, c = at_the_end(floats(136, m)), at_the_end(floats(136, n)), at_the_end(np.zeros((m, n), np.float32))
        library.crossed(a, b, c)
        close(c, a.T @ b)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, ((64, 130, 65),))
        if chip in ("gfx1100", "sm_80"):
            check_all(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)
