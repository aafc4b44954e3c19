"""NumPy: whole-array operations into arrays that are there already."""

from __future__ import annotations

import functools

import numpy as np

from host.engine import Program
from host.problem import Array, Problem


class Solver:
    """Calls a function of this module."""

    def __init__(self) -> None:
        self.versions = {"numpy": np.__version__}

    def prepare(self, problem: Problem) -> Program:
        arrays = [*problem.inputs.values(), *problem.outputs.values()]
        scalars = [np.float32(value) for value in problem.scalars.values()]
        return Program(functools.partial(globals()[problem.kernel], *arrays, *scalars), lambda: problem.outputs)


def copy(x: Array, out: Array) -> None:
    np.copyto(out, x)


def triad(b: Array, c: Array, a: Array, s: np.float32) -> None:
    np.multiply(c, s, out=a)
    np.add(a, b, out=a)


def softmax(x: Array, out: Array) -> None:
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=1, keepdims=True), out=out)


def layer_norm(x: Array, gamma: Array, beta: Array, out: Array, epsilon: np.float32) -> None:
    np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out) / np.float32(x.shape[1])
    np.multiply(out, (1 / np.sqrt(variance + epsilon))[:, None], out=out)
    np.multiply(out, gamma, out=out)
    np.add(out, beta, out=out)


def transpose(x: Array, out: Array) -> None:
    np.copyto(out, x.T)


def histogram(x: Array, bins: Array) -> None:
    bins[:] = np.bincount(x, minlength=256)


def stencil(x: Array, out: Array, center: np.float32, side: np.float32) -> None:
    inside = out[1:-1, 1:-1]
    np.add(x[:-2, 1:-1], x[2:, 1:-1], out=inside)
    np.add(inside, x[1:-1, :-2], out=inside)
    np.add(inside, x[1:-1, 2:], out=inside)
    np.multiply(inside, side, out=inside)
    np.add(inside, center * x[1:-1, 1:-1], out=inside)


def reduction(x: Array, total: Array) -> None:
    np.sum(x, keepdims=True, out=total)


def scan(x: Array, out: Array) -> None:
    np.cumsum(x, out=out)


def matmul(a: Array, b: Array, c: Array) -> None:
    np.matmul(a, b, out=c)


def n_body(x: Array, y: Array, z: Array, mass: Array, ax: Array, ay: Array, az: Array, softening: np.float32) -> None:
    for first in range(0, x.size, 64):  # as many bodies at a time as the caches hold the distances of
        part = slice(first, first + 64)
        dx, dy, dz = (p - p[part, None] for p in (x, y, z))
        pull = dx * dx + dy * dy + dz * dz + softening
        pull = mass / (pull * np.sqrt(pull))
        for out, d in ((ax, dx), (ay, dy), (az, dz)):
            np.einsum("ij,ij->i", pull, d, out=out[part])


def spmv(starts: Array, columns: Array, values: Array, x: Array, y: Array) -> None:
    np.add.reduceat(values * x[columns], starts[:-1], out=y)  # every row has entries
