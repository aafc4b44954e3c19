"""Functions of JAX, one program each: operators, gradients, loops, layers, small algorithms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from frontends import layers
from frontends.arrays import complexes, normal, positive, truths, whole, within

Program = tuple[Callable[..., Any], tuple[NDArray[Any], ...]]


def programs() -> dict[str, Program]:
    """By name. Switches JAX to 64 bits."""
    jax.config.update("jax_enable_x64", True)
    groups = (
        elementwise,
        integers,
        activations,
        products,
        shapes,
        places,
        reductions,
        windows,
        gradients,
        loops,
        models,
    )
    return {name: program for group in groups for name, program in group().items()}


def _each(module: Any, names: str, *arguments: NDArray[Any]) -> dict[str, Program]:
    dtype = arguments[0].dtype.name
    return {f"{name}.{dtype}": (getattr(module, name), arguments) for name in names.split()}


def elementwise() -> dict[str, Program]:
    found: dict[str, Program] = {}
    anything = (
        "abs ceil floor rint trunc sign exp exp2 expm1 sin cos tan arctan sinh cosh tanh arcsinh square negative sinc "
        "isnan isfinite isinf signbit deg2rad cbrt reciprocal nan_to_num logical_not i0"
    )
    for dtype in (np.float32, np.float64, np.float16):
        found |= _each(jnp, anything, normal(5, 7, dtype=dtype))
        found |= _each(jnp, "sqrt log log2 log10 log1p", positive(5, 7, dtype=dtype))
        found |= _each(jnp, "arcsin arccos arctanh", within(5, 7, dtype=dtype))
        found |= _each(jnp, "arccosh", 1 + positive(5, 7, dtype=dtype))
    found |= _each(lax, "erf_inv", within(5, 7))
    found |= _each(lax, "erf erfc lgamma digamma logistic rsqrt bessel_i0e bessel_i1e is_finite", positive(5, 7))
    two = (
        "add subtract multiply divide arctan2 maximum minimum fmod mod remainder floor_divide hypot logaddexp "
        "logaddexp2 copysign nextafter heaviside fmax fmin greater less_equal equal not_equal logical_and logical_xor "
        "isclose power"
    )
    found |= _each(jnp, two, positive(4, 6), within(4, 6))
    found |= _each(jnp, "exp sin sqrt log abs angle conj real tanh square", complexes(5, 6))
    found |= _each(jnp, "add multiply divide matmul", complexes(6, 6), complexes(6, 6))
    found["where"] = jnp.where, (truths(5, 7), normal(5, 7), positive(5, 7))
    found["clip"] = lambda x: jnp.clip(x, -0.5, 0.5), (normal(5, 7),)
    found["casts"] = (
        lambda x: [x.astype(kind) for kind in (np.int8, np.uint16, np.float16, np.float64, bool)],
        (9 * positive(5, 7),),
    )
    for small in (jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int4):
        dtype = jnp.dtype(small).name
        found[f"through.{dtype}"] = lambda x, small=small: x.astype(small).astype(np.float32), (2 * within(5, 7),)
    found["bits"] = lambda x: lax.bitcast_convert_type(x, np.int32), (normal(5, 7),)
    found["bytes"] = lambda x: lax.bitcast_convert_type(x, np.uint8), (normal(5, 7),)
    found["reduce_precision"] = lambda x: lax.reduce_precision(x, 5, 10), (normal(5, 7),)
    return found


def integers() -> dict[str, Program]:
    found: dict[str, Program] = {}
    names = (
        "add subtract multiply floor_divide mod bitwise_and bitwise_or bitwise_xor left_shift right_shift maximum "
        "minimum gcd lcm power fmod divmod"
    )
    for dtype in (np.int32, np.int8, np.uint8, np.int64, np.uint32):
        found |= _each(jnp, names, whole(4, 6, low=1, high=20, dtype=dtype), whole(4, 6, low=1, high=5, dtype=dtype))
    for dtype in (np.int32, np.uint8, np.int64):
        found |= _each(lax, "population_count clz", whole(4, 6, low=0, high=100, dtype=dtype))
    found["hash"] = lambda x: (x ^ (x >> 15)) * np.uint32(0x85EBCA6B), (whole(6, low=0, high=9999, dtype=np.uint32),)
    found["linear_congruence"] = (
        lambda x: x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407),
        (whole(6, low=0, high=99, dtype=np.uint64),),
    )
    key = np.array([3, 7], np.uint32)
    for name in ("uniform", "normal", "bits", "exponential", "gumbel", "laplace", "rademacher", "bernoulli"):
        draw = getattr(jax.random, name)
        found[f"random.{name}"] = lambda k, draw=draw: draw(jax.random.wrap_key_data(k), shape=(5, 6)), (key,)
    found["random.randint"] = lambda k: jax.random.randint(jax.random.wrap_key_data(k), (9,), 0, 100), (key,)
    found["random.gamma"] = lambda k: jax.random.gamma(jax.random.wrap_key_data(k), 2.5, (5,)), (key,)
    return found


def activations() -> dict[str, Program]:
    names = (
        "relu relu6 gelu silu elu selu softplus log_sigmoid softmax log_softmax celu glu hard_tanh hard_swish mish "
        "leaky_relu soft_sign standardize logsumexp squareplus"
    )
    found = _each(jax.nn, names, normal(6, 8)) | _each(jax.nn, names, normal(6, 8).astype(jnp.bfloat16))
    found["one_hot"] = lambda x: jax.nn.one_hot(x, 10), (whole(7, low=0, high=10),)
    return found


def products() -> dict[str, Program]:
    small = jnp.bfloat16
    return {
        "matmul": (jnp.matmul, (normal(5, 7), normal(7, 3))),
        "matmul.batch": (jnp.matmul, (normal(3, 5, 7), normal(3, 7, 4))),
        "matmul.int32": (jnp.matmul, (whole(5, 7), whole(7, 3))),
        "matmul.float16": (jnp.matmul, (normal(5, 7, dtype=np.float16), normal(7, 3, dtype=np.float16))),
        "matmul.bfloat16": (jnp.matmul, (normal(5, 7).astype(small), normal(7, 3).astype(small))),
        "matmul.bytes": (
            lambda x, y: x.astype(np.int32) @ y.astype(np.int32),
            (whole(5, 7, dtype=np.int8), whole(7, 3, dtype=np.int8)),
        ),
        "dot": (jnp.dot, (normal(7), normal(7))),
        "matvec": (jnp.dot, (normal(5, 7), normal(7))),
        "outer": (jnp.outer, (normal(5), normal(7))),
        "kron": (jnp.kron, (normal(3, 2), normal(2, 4))),
        "tensordot": (lambda x, y: jnp.tensordot(x, y, 2), (normal(3, 4, 5), normal(4, 5, 6))),
        "scores": (lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y), (normal(2, 5, 3, 4), normal(2, 6, 3, 4))),
        "diagonal": (lambda x: jnp.einsum("ii->i", x), (normal(5, 5),)),
        "chain": (lambda x, y, z: jnp.einsum("ij,jk,kl->il", x, y, z), (normal(3, 4), normal(4, 5), normal(5, 2))),
        "cross": (jnp.cross, (normal(6, 3), positive(6, 3))),
        "trace": (jnp.trace, (normal(5, 5),)),
        "vander": (lambda x: jnp.vander(x, 4), (normal(5),)),
        "power": (lambda x: jnp.linalg.matrix_power(x, 5), (within(4, 4),)),
        "norm": (jnp.linalg.norm, (normal(4, 5),)),
        "cov": (jnp.cov, (normal(4, 9),)),
        "convolve": (jnp.convolve, (normal(12), normal(4))),
        "correlate": (lambda x, y: jnp.correlate(x, y, mode="same"), (normal(12), normal(4))),
        "polyval": (jnp.polyval, (normal(4), normal(9))),
    }


def shapes() -> dict[str, Program]:
    found: dict[str, Program] = _each(jnp, "flip ravel transpose fliplr rot90 triu tril atleast_3d diff", normal(5, 7))
    for mode in ("reflect", "edge", "wrap", "symmetric", "linear_ramp", "maximum", "mean"):
        found[f"pad.{mode}"] = lambda x, mode=mode: jnp.pad(x, ((2, 1), (3, 2)), mode=mode), (normal(5, 7),)
    found |= {
        "reshape": (lambda x: x.reshape(x.shape[1], -1), (normal(5, 7),)),
        "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), (normal(5, 7), normal(5, 3))),
        "stack": (lambda x, y: jnp.stack([x, y], -1), (normal(5, 7), positive(5, 7))),
        "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=2), (normal(5, 7),)),
        "pad.between": (lambda x: lax.pad(x, np.float32(1), ((1, 2, 1), (-1, 0, 2))), (normal(5, 7),)),
        "roll": (lambda x: jnp.roll(x, 3, 1), (normal(5, 7),)),
        "roll.by": (lambda x, n: jnp.roll(x, n, 1), (normal(5, 7), np.asarray(4, np.int32))),
        "tile": (lambda x: jnp.tile(x, (2, 3)), (normal(5, 7),)),
        "repeat": (lambda x: jnp.repeat(x, 3, axis=1), (normal(5, 7),)),
        "slice": (lambda x: x[::-2, 1:6:2], (normal(9, 7),)),
        "broadcast": (lambda x: jnp.broadcast_to(x, (4, 5, 7)), (normal(5, 1),)),
        "meshgrid": (jnp.meshgrid, (normal(5), normal(4))),
        "moveaxis": (lambda x: jnp.moveaxis(x, 0, 2), (normal(2, 3, 4),)),
        "linspace": (lambda a, b: jnp.linspace(a, b, 9), (np.asarray(1, np.float32), np.asarray(3, np.float32))),
        "iota": (lambda x: x + lax.broadcasted_iota(x.dtype, x.shape, 1), (normal(5, 7),)),
        "eye": (lambda x: x + jnp.eye(*x.shape, dtype=x.dtype), (normal(5, 7),)),
        "diag": (jnp.diag, (normal(5),)),
        "gradient": (jnp.gradient, (normal(9),)),
        "same": (lambda x: x, (normal(3, 4),)),
        "twice": (lambda x: (x, x, x + 1), (normal(3, 4),)),
        "swapped": (lambda x, y: (y, x), (normal(3, 4), normal(2))),
        "constant": (lambda: jnp.arange(6, dtype=np.float32), ()),
    }
    for method in ("bilinear", "nearest", "bicubic"):
        found[f"resize.{method}"] = lambda x, m=method: jax.image.resize(x, (9, 4), m), (normal(5, 6),)
    return found


def places() -> dict[str, Program]:
    """Reads and writes where other arrays say."""
    rows, near = whole(6, low=0, high=9), whole(6, low=-3, high=14)
    return {
        "take": (lambda x, j: jnp.take(x, j, axis=0), (normal(9, 4), rows)),
        "take.fill": (lambda x, j: jnp.take(x, j, axis=1, mode="fill"), (normal(4, 9), near)),
        "take_along_axis": (lambda x, j: jnp.take_along_axis(x, j, 1), (normal(4, 9), whole(4, 6, low=0, high=9))),
        "both": (lambda x, j, k: x[j, k], (normal(6, 7), whole(5, low=0, high=6), whole(5, low=1, high=7))),
        "dynamic_slice": (
            lambda x, s: lax.dynamic_slice(x, (s, s), (3, 4)),
            (normal(9, 7), np.asarray(8, np.int32)),
        ),
        "dynamic_update": (
            lambda x, y, s: lax.dynamic_update_slice(x, y, (s, s)),
            (normal(9, 7), normal(2, 3), np.asarray(6, np.int32)),
        ),
        "embedding": (lambda table, j: table[j].sum(1), (normal(10, 4), whole(3, 5, low=0, high=10))),
        "digitize": (lambda x: jnp.digitize(x, np.array([-1, 0, 1], np.float32)), (normal(20),)),
        "searchsorted": (jnp.searchsorted, (np.sort(normal(20)), normal(7))),
        "interp": (jnp.interp, (normal(9), np.sort(normal(6)), positive(6))),
        "choose": (lambda j, x: jnp.choose(j, x, mode="clip"), (whole(5, low=0, high=3), normal(3, 5))),
        "select_n": (lax.select_n, (whole(5, 7, low=0, high=2).astype(bool), normal(5, 7), positive(5, 7))),
        "add.at": (lambda x, j, v: x.at[j].add(v), (normal(9, 4), whole(20, low=0, high=9), normal(20, 4))),
        "sort": (jnp.sort, (normal(5, 7),)),
        "top_k": (lambda x: lax.top_k(x, 3), (normal(4, 9),)),
    }


def reductions() -> dict[str, Program]:
    names = (
        "mean var std max min argmax argmin sum prod any all ptp count_nonzero nanmax nanmin nansum nanmean nanargmax "
        "average"
    )
    found: dict[str, Program] = {}
    for dtype in (np.float32, np.float16, np.int32):
        x = whole(5, 7) if dtype is np.int32 else normal(5, 7, dtype=dtype)
        if dtype is np.int32:
            names = "max min argmax argmin sum any all count_nonzero"
        for axis in (None, 0, 1):
            for name in names.split():
                function = functools.partial(getattr(jnp, name), axis=axis)
                found[f"{name}.{axis}.{x.dtype.name}"] = function, (x,)
    found |= {
        "cumsum": (lambda x: jnp.cumsum(x, 1), (normal(5, 7),)),
        "scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), (normal(5, 13),)),
        "sum.empty": (lambda x: x.sum(0), (np.zeros((0, 4), np.float32),)),
        "max.empty": (lambda x: jnp.max(x, axis=0, initial=-1), (np.zeros((0, 4), np.float32),)),
        "sum.truths": (lambda x: x.sum(1), (truths(4, 5),)),
        "trapezoid": (jnp.trapezoid, (normal(4, 9),)),
        "brightness": (
            lambda x: (x.astype(np.float32) / 255).mean((0, 1)),
            (whole(5, 6, 3, low=0, high=255, dtype=np.uint8),),
        ),
    }
    return found


def windows() -> dict[str, Program]:
    conv = layers.convolution
    window = lax.reduce_window
    zero = np.float32(0)
    image, last = normal(2, 4, 8, 9), normal(2, 8, 9, 4)
    return {
        "conv2d": (conv, (image, normal(6, 4, 3, 3))),
        "conv2d.last": (lambda x, w: conv(x, w, last=True), (last, normal(3, 3, 4, 6))),
        "conv2d.steps": (lambda x, w: conv(x, w, window_strides=(2, 1), padding="VALID"), (image, normal(6, 4, 3, 2))),
        "conv2d.groups": (lambda x, w: conv(x, w, feature_group_count=2), (image, normal(6, 2, 3, 3))),
        "conv2d.depthwise": (lambda x, w: conv(x, w, last=True, feature_group_count=4), (last, normal(3, 3, 1, 4))),
        "conv2d.apart": (
            lambda x, w: conv(x, w, padding=((2, 2), (2, 1)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
            (image, normal(3, 4, 3, 2)),
        ),
        "conv1d": (conv, (normal(2, 3, 12), normal(4, 3, 3))),
        "conv3d": (lambda x, w: conv(x, w, padding="VALID"), (normal(1, 2, 5, 6, 7), normal(3, 2, 2, 3, 2))),
        "conv.transposed": (
            lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            (normal(1, 4, 5, 3), normal(3, 3, 3, 2)),
        ),
        "pool.max": (layers.largest_of_four, (normal(2, 6, 8, 3),)),
        "pool.mean": (
            lambda x: window(x, zero, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9,
            (normal(2, 6, 8, 3),),
        ),
        "pool.apart": (
            lambda x: window(x, -jnp.inf, lax.max, (2, 3), (1, 2), ((1, 1), (0, 2)), None, (2, 1)),
            (normal(8, 9),),
        ),
        "running": (lambda x: window(x, zero, lax.add, (4,), (1,), ((3, 0),)), (normal(12),)),
    }


def gradients() -> dict[str, Program]:
    def of(function: Callable[..., Any], *arguments: NDArray[Any]) -> Program:
        return jax.grad(lambda *given: function(*given).sum(), argnums=tuple(range(len(arguments)))), arguments

    names = ("sin", "exp", "tanh", "cbrt", "arctan", "sinc", "arcsinh", "expm1", "square", "prod", "max", "var", "std")
    found = {f"grad.{name}": of(getattr(jnp, name), normal(5, 7)) for name in names}
    return found | {
        "grad.softmax": of(lambda x: jax.nn.softmax(x) ** 2, normal(5, 7)),
        "grad.gelu": of(jax.nn.gelu, normal(5, 7)),
        "grad.logsumexp": of(lambda x: jax.nn.logsumexp(x, 1), normal(5, 7)),
        "grad.norm": of(lambda x: jnp.linalg.norm(x, axis=1), normal(5, 7)),
        "grad.conv2d": of(lambda x, w: layers.convolution(x, w) ** 2, normal(2, 3, 8, 8), normal(4, 3, 3, 3)),
        "grad.pool": of(lambda x: layers.largest_of_four(x) ** 2, normal(2, 6, 8, 3)),
        "grad.logaddexp": of(jnp.logaddexp, normal(5, 7), positive(5, 7)),
        "hessian": (jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1])), (normal(5),)),
        "jacobian": (jax.jacfwd(lambda x: jnp.sin(x) * x.sum()), (normal(5),)),
        "vmap": (jax.vmap(lambda x, y: jnp.dot(x, y) * x), (normal(4, 5), positive(4, 5))),
    }


def loops() -> dict[str, Program]:
    def filtered(state: tuple[Any, Any], x: Any) -> tuple[tuple[Any, Any], Any]:
        return (0.3 * x + 0.5 * state[0] - 0.1 * state[1], state[0]), state[0]

    zero = np.float32(0)
    branches = [lambda x: x * 2, lambda x: x - 1, jnp.sin]
    return {
        "while": (lambda x: lax.while_loop(lambda c: jnp.abs(c).max() > 0.1, lambda c: c * 0.7, x), (normal(4, 5),)),
        "fori": (lambda x: lax.fori_loop(0, 20, lambda _, y: y - (y * y - x) / (2 * y), x), (positive(6),)),
        "accumulate": (lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x), (normal(8, 5),)),
        "backwards": (lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c), x[0], x, reverse=True), (normal(8, 5),)),
        "filter": (lambda x: lax.scan(filtered, (zero, zero), x)[1], (normal(30),)),
        "cond": (lambda x, p: lax.cond(p, *branches[:2], x), (normal(4, 5), np.asarray(True))),
        "switch": (lambda x, k: lax.switch(k, branches, x), (normal(4, 5), np.asarray(2, np.int32))),
        "map": (lambda x: lax.map(lambda row: jnp.cos(row).sum(), x), (normal(5, 7),)),
        "grad.scan": (
            jax.grad(lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), x[0], x)[1].sum()),
            (normal(6, 5),),
        ),
    }


def models() -> dict[str, Program]:
    squares = [normal(8, 8 + number, scale=0.3)[:, :8] for number in range(4)]
    of_block = (normal(2, 5, 8), normal(8), positive(8), *squares, normal(8, 16, scale=0.3), normal(16, 8, scale=0.3))
    of_lstm = (normal(6, 3, 5), normal(5, 16), normal(4, 16), normal(16))
    of_entropy = (normal(7, 5), normal(5, 6), whole(7, low=0, high=6))

    def loss(*given: Any) -> Any:
        return (layers.block(*given) ** 2).sum()

    return {
        "layer_norm": (layers.layer_norm, (normal(4, 8), normal(8), positive(8))),
        "batch_norm": (layers.batch_norm, (normal(2, 4, 4, 3), normal(3), positive(3))),
        "attention": (layers.attention, (normal(2, 5, 8), *squares)),
        "block": (layers.block, of_block),
        "grad.block": (jax.grad(loss, argnums=tuple(range(len(of_block)))), of_block),
        "lstm": (layers.lstm, of_lstm),
        "grad.lstm": (jax.grad(lambda *given: layers.lstm(*given).sum(), argnums=(0, 1, 2, 3)), of_lstm),
        "cross_entropy": (layers.cross_entropy, of_entropy),
        "adam": (
            layers.adam,
            (normal(5, 6), normal(5, 6, scale=0.1), positive(5, 6), within(5, 6), np.asarray(3, np.float32)),
        ),
        "rotary": (layers.rotary, (normal(6, 8),)),
        "attraction": (layers.attraction, (normal(7, 3),)),
        "shortest_paths": (layers.shortest_paths, (positive(6, 6),)),
        "life": (layers.life, (whole(8, 9, low=0, high=2),)),
        "collatz": (layers.collatz, (whole(9, low=1, high=30),)),
        "jacobi": (layers.jacobi, (normal(5, 5, scale=0.1) + 3 * np.eye(5, dtype=np.float32), normal(5))),
        "viterbi": (layers.viterbi, (normal(6, 4), normal(4, 4))),
    }
