"""Layers of models, losses and solvers as people write them with JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def batch_norm(x: Array, gain: Array, bias: Array) -> Array:
    axes = tuple(range(x.ndim - 1))
    return (x - x.mean(axes)) * lax.rsqrt(x.var(axes) + 1e-5) * gain + bias


def attention(x: Array, query: Array, key: Array, value: Array, out: Array, heads: int = 2) -> Array:
    """Causal, of many heads; ``x`` is (batch, steps, width)."""
    batch, steps, width = x.shape

    def split(weights: Array) -> Array:
        return (x @ weights).reshape(batch, steps, heads, width // heads).transpose(0, 2, 1, 3)

    scores = split(query) @ split(key).swapaxes(-1, -2) / np.float32(np.sqrt(width // heads))
    scores = jnp.where(jnp.tril(jnp.ones((steps, steps), bool)), scores, -1e9)
    mixed = jax.nn.softmax(scores) @ split(value)
    return mixed.transpose(0, 2, 1, 3).reshape(batch, steps, width) @ out


def block(x: Array, gain: Array, bias: Array, *weights: Array, heads: int = 2) -> Array:
    """One of a transformer: attention, then two products with a GELU between them."""
    *projections, wide, narrow = weights
    x = x + attention(layer_norm(x, gain, bias), *projections, heads=heads)
    return x + jax.nn.gelu(layer_norm(x, gain, bias) @ wide) @ narrow


def lstm(x: Array, inputs: Array, hidden: Array, bias: Array) -> Array:
    """Over the steps of ``x`` (steps, batch, width)."""

    def step(carried: tuple[Array, Array], each: Array) -> tuple[tuple[Array, Array], Array]:
        state, cell = carried
        into, forget, new, out = jnp.split(each @ inputs + state @ hidden + bias, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(into) * jnp.tanh(new)
        state = jax.nn.sigmoid(out) * jnp.tanh(cell)
        return (state, cell), state

    zeros = jnp.zeros((x.shape[1], hidden.shape[0]), np.float32)
    return lax.scan(step, (zeros, zeros), x)[1]


def cross_entropy(x: Array, weights: Array, labels: Array) -> Array:
    logarithms = jax.nn.log_softmax(x @ weights)
    return -jnp.take_along_axis(logarithms, labels[:, None], 1).mean()


def adam(value: Array, mean: Array, square: Array, slope: Array, step: Array) -> tuple[Array, Array, Array]:
    mean = 0.9 * mean + 0.1 * slope
    square = 0.999 * square + 0.001 * slope * slope
    moved = value - 0.01 * (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return moved, mean, square


def rotary(x: Array) -> Array:
    """Positions of (steps, width) as rotations of pairs."""
    steps, width = x.shape
    angles = jnp.arange(steps, dtype=np.float32)[:, None] / 10000 ** (jnp.arange(0, width, 2, dtype=np.float32) / width)
    cosines, sines, even, odd = jnp.cos(angles), jnp.sin(angles), x[:, ::2], x[:, 1::2]
    return jnp.stack([even * cosines - odd * sines, even * sines + odd * cosines], -1).reshape(steps, width)


def attraction(places: Array) -> Array:
    apart = places[None] - places[:, None]
    return (apart * ((apart**2).sum(-1, keepdims=True) + 0.01) ** -1.5).sum(1)


def shortest_paths(lengths: Array) -> Array:
    def through(k: Array, known: Array) -> Array:
        return jnp.minimum(known, known[:, k][:, None] + known[k][None])

    return lax.fori_loop(0, lengths.shape[0], through, lengths)


def life(board: Array, steps: int = 5) -> Array:
    """On a torus; cells are 0 and 1."""

    def step(_: Array, cells: Array) -> Array:
        around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        count = sum(jnp.roll(cells, shift, (0, 1)) for shift in around)
        return ((count == 3) | ((count == 2) & (cells == 1))).astype(cells.dtype)

    return lax.fori_loop(0, steps, step, board)


def collatz(numbers: Array) -> Array:
    def steps_of(number: Array) -> Array:
        def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
            value, count = state
            return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return lax.while_loop(lambda state: state[0] > 1, step, (number, 0))[1]

    return jax.vmap(steps_of)(numbers)


def jacobi(matrix: Array, right: Array, steps: int = 30) -> Array:
    diagonal = jnp.diag(matrix)

    def step(_: Array, x: Array) -> Array:
        return (right - (matrix @ x - diagonal * x)) / diagonal

    return lax.fori_loop(0, steps, step, right * 0)


def viterbi(emissions: Array, transitions: Array) -> tuple[Array, tuple[Array, Array]]:
    def step(best: Array, each: Array) -> tuple[Array, tuple[Array, Array]]:
        ways = best[:, None] + transitions
        best = ways.max(0) + each
        return best, (best, ways.argmax(0))

    return lax.scan(step, emissions[0], emissions[1:])


def convolution(x: Array, weights: Array, *, last: bool = False, **options: object) -> Array:
    """Of images; ``last`` says that channels are the last dimension."""
    options = {"window_strides": (1,) * (x.ndim - 2), "padding": "SAME", **options}
    if last:
        options["dimension_numbers"] = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, weights, **options)


def largest_of_four(x: Array) -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
