"""Fits the polynomials of offload/mlir/codegen/math and prints their coefficients with the error of each.

Needs mpmath (not a dependency of the project). A fit is a least-squares solution on Chebyshev nodes with 120 bits,
which is within a factor of two of the best one; coefficients are then rounded to the type that uses them, the lowest
first, and the rest is fitted again to what is left.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import mpmath as mp

mp.mp.prec = 160
Function = Callable[[mp.mpf], mp.mpf]


def rounded(value: mp.mpf, bits: int) -> mp.mpf:
    """The nearest number of the type."""
    kind = "f" if bits == 32 else "d"
    return mp.mpf(struct.unpack(kind, struct.pack(kind, float(value)))[0])


def fit(f: Function, low: float, high: float, count: int, bits: int, weight: Function) -> list[mp.mpf]:
    """``count`` coefficients, the constant one first; the error is weighted."""
    nodes = [
        (mp.mpf(low) + high) / 2 + (mp.mpf(high) - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * 4 * count))
        for i in range(4 * count)
    ]
    done: list[mp.mpf] = []
    while len(done) < count:
        open_ = range(len(done), count)
        rows = mp.matrix([[weight(x) * x**k for k in open_] for x in nodes])
        left = mp.matrix([weight(x) * (f(x) - sum(c * x**k for k, c in enumerate(done))) for x in nodes])
        solution = mp.lu_solve(rows, left)
        done.append(rounded(solution[0], bits))
    return done


def show(name: str, f: Function, low: float, high: float, count: int, bits: int, weight: Function) -> None:
    coefficients = fit(f, low, high, count, bits, weight)
    points = [mp.mpf(low) + (mp.mpf(high) - low) * i / 997 for i in range(998)]
    worst = max(abs(weight(x) * (f(x) - sum(c * x**k for k, c in enumerate(coefficients)))) for x in points)
    print(f"// {name}, {bits} bits: error 2^{float(mp.log(worst, 2)):.1f}")
    print("{" + ", ".join(float(c).hex() for c in coefficients) + "},")


def series(function: Function, at_zero: mp.mpf) -> Function:
    """A function with a removable singularity at 0."""
    return lambda x: at_zero if abs(x) < mp.mpf(10) ** -30 else function(x)


def main() -> None:
    ln2, quarter = mp.log(2), mp.pi / 4
    edge = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2

    def log_of_s(z: mp.mpf) -> mp.mpf:
        s = mp.sqrt(z)
        return mp.log((1 + s) / (1 - s)) / s

    exp_rest = series(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2)
    exp2_rest = series(lambda r: (2**r - 1) / r, ln2)
    log_rest = series(lambda z: (log_of_s(z) - 2) / z, mp.mpf(2) / 3)
    log_far = series(lambda z: ((log_of_s(z) - 2) / z - mp.mpf(2) / 3) / z, mp.mpf(2) / 5)
    log2_whole = series(lambda z: log_of_s(z) / ln2, 2 / ln2)
    sin_rest = series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 6)
    cos_rest = series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24)
    erf_near = series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)
    for bits, counts in ((32, (5, 6, 3, 3, 3)), (64, (11, 12, 7, 6, 6))):  # of coefficients
        e, e2, log, s, c = counts
        show("(exp(r) - 1 - r) / r^2", exp_rest, -ln2 / 2, ln2 / 2, e, bits, lambda r: r**2)
        show("(exp2(r) - 1) / r", exp2_rest, -0.5, 0.5, e2, bits, lambda r: r)
        show("(log((1 + s) / (1 - s)) / s - 2) / s^2, of s^2", log_rest, 0, edge, log, bits, lambda z: z)
        show("(sin(r) / r - 1) / r^2, of r^2", sin_rest, 0, quarter**2, s, bits, lambda z: z)
        show("(cos(r) - 1 + r^2 / 2) / r^4, of r^2", cos_rest, 0, quarter**2, c, bits, lambda z: z**2)
    show("pow of f32: log2((1 + s) / (1 - s)) / s, of s^2", log2_whole, 0, edge, 7, 64, lambda z: mp.mpf(1))
    show("pow of f32: (exp2(r) - 1) / r", exp2_rest, -0.5, 0.5, 8, 64, lambda r: r)
    show("pow of f64: (log(...) / s - 2 - 2/3 s^2) / s^4, of s^2", log_far, 0, edge, 7, 64, lambda z: z**2)
    show("erf(x) / x - 1, of x^2, up to 1", erf_near, 0, 1, 8, 32, lambda z: mp.mpf(1))
    show("log(1 - erf(x)), of x - 2.5, from 1 to 4", lambda t: mp.log(mp.erfc(t + 2.5)), -1.5, 1.5, 10, 32,
         lambda t: mp.erfc(t + 2.5))  # fmt: skip


if __name__ == "__main__":
    main()
