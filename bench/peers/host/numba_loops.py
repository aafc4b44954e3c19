"""The kernels of bench/host.py for Numba: threads over the outermost loop. Sums may be taken in any order, as in the
other engines; NaN and infinity keep their meaning."""

import numba
import numpy as np
from numba import njit, prange

FAST = {"reassoc", "contract", "nsz", "arcp"}
loops = njit(parallel=True, fastmath=FAST, error_model="numpy", boundscheck=False)
F0, F1 = np.float32(0), np.float32(1)


@loops
def triad(b, c, a, s):
    for i in prange(a.size):
        a[i] = b[i] + s * c[i]


@loops
def softmax(x, out):
    rows, cols = x.shape
    for r in prange(rows):
        most = x[r, 0]
        for j in range(cols):
            most = max(most, x[r, j])
        for j in range(cols):
            out[r, j] = np.exp(x[r, j] - most)
        total = F0
        for j in range(cols):
            total += out[r, j]
        scale = F1 / total
        for j in range(cols):
            out[r, j] *= scale


@loops
def layer_norm(x, gamma, beta, out, epsilon):
    rows, cols = x.shape
    for r in prange(rows):
        total = F0
        for j in range(cols):
            total += x[r, j]
        mean = total / np.float32(cols)
        squares = F0
        for j in range(cols):
            squares += (x[r, j] - mean) * (x[r, j] - mean)
        scale = F1 / np.sqrt(squares / np.float32(cols) + epsilon)
        for j in range(cols):
            out[r, j] = (x[r, j] - mean) * scale * gamma[j] + beta[j]


@loops
def transpose(x, out):
    rows, cols = x.shape
    tile = 32
    for t in prange((cols + tile - 1) // tile):
        for i0 in range(0, rows, tile):
            for j in range(t * tile, min(t * tile + tile, cols)):
                for i in range(i0, min(i0 + tile, rows)):
                    out[j, i] = x[i, j]


@loops
def histogram(x, bins):
    threads = numba.get_num_threads()
    part = (x.size + threads - 1) // threads
    own = np.zeros((threads, 4, 256), np.int32)  # four tables: equal values in a row need not wait for each other
    for t in prange(threads):
        first, last = t * part, min(t * part + part, x.size)
        whole = first + (last - first) // 4 * 4
        for i in range(first, whole, 4):
            own[t, 0, np.uint32(x[i])] += 1
            own[t, 1, np.uint32(x[i + 1])] += 1
            own[t, 2, np.uint32(x[i + 2])] += 1
            own[t, 3, np.uint32(x[i + 3])] += 1
        for i in range(whole, last):
            own[t, 0, np.uint32(x[i])] += 1
    for k in range(256):
        count = 0
        for t in range(threads):
            for copy in range(4):
                count += own[t, copy, k]
        bins[k] = count


@loops
def stencil(x, out, center, side):
    rows, cols = x.shape
    for i in prange(1, rows - 1):
        for j in range(1, cols - 1):
            around = x[i - 1, j] + x[i + 1, j] + (x[i, j - 1] + x[i, j + 1])
            out[i, j] = center * x[i, j] + side * around


@loops
def reduction(x, total):
    everything = F0
    for i in prange(x.size):
        everything += x[i]
    total[0] = everything


@loops
def scan(x, out):
    threads = numba.get_num_threads()
    part = (x.size + threads - 1) // threads
    sums = np.zeros(threads, np.int32)
    for t in prange(threads):
        own = np.int32(0)
        for i in range(t * part, min(t * part + part, x.size)):
            own += x[i]
        sums[t] = own
    for t in prange(threads):
        own = np.int32(0)
        for before in range(t):
            own += sums[before]
        for i in range(t * part, min(t * part + part, x.size)):
            own += x[i]
            out[i] = own


@loops
def matmul(a, b, c):
    rows, depth = a.shape
    cols = b.shape[1]
    high = 4
    for strip in prange(rows // high):
        for i in range(strip * high, strip * high + high):
            for j in range(cols):
                c[i, j] = F0
        for k in range(depth):
            i = strip * high
            a0, a1, a2, a3 = a[i, k], a[i + 1, k], a[i + 2, k], a[i + 3, k]
            for j in range(cols):
                c[i, j] += a0 * b[k, j]
                c[i + 1, j] += a1 * b[k, j]
                c[i + 2, j] += a2 * b[k, j]
                c[i + 3, j] += a3 * b[k, j]


@loops
def n_body(x, y, z, mass, ax, ay, az, softening):
    n = x.size
    for i in prange(n):
        fx = fy = fz = F0
        for j in range(n):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + softening
            pull = mass[j] / (square * np.sqrt(square))
            fx += pull * dx
            fy += pull * dy
            fz += pull * dz
        ax[i], ay[i], az[i] = fx, fy, fz


@loops
def spmv(starts, columns, values, x, y):
    for r in prange(y.size):
        total = F0
        for k in range(starts[r], starts[r + 1]):
            total += values[k] * x[columns[k]]
        y[r] = total
