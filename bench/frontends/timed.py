"""Programs at the sizes of real work, to be timed beside XLA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from frontends import layers
from frontends.arrays import normal, positive, whole
from frontends.functions import Program


def timed() -> dict[str, Program]:
    """By name; all of 32 bits."""
    squares = [normal(256, 256 + number, scale=0.06)[:, :256] for number in range(4)]
    of_block = (normal(2, 128, 256), normal(256), positive(256), *squares)
    of_block = (*of_block, normal(256, 1024, scale=0.06), normal(1024, 256, scale=0.06))

    def loss(*given: jax.Array) -> jax.Array:
        return (layers.block(*given, heads=8) ** 2).sum()

    labels = whole(512, low=0, high=1000)
    return {
        "matmul": (jnp.matmul, (normal(512, 512), positive(512, 512))),
        "matvec": (jnp.matmul, (normal(2000, 2000), normal(2000))),
        "attention": (lambda *given: layers.attention(*given, heads=8), (normal(2, 128, 256), *squares)),
        "block": (lambda *given: layers.block(*given, heads=8), of_block),
        "grad.block": (jax.grad(loss, argnums=tuple(range(len(of_block)))), of_block),
        "lstm": (
            layers.lstm,
            (normal(64, 32, 128), normal(128, 512, scale=0.1), positive(128, 512) * np.float32(0.1), normal(512)),
        ),
        "cross_entropy": (layers.cross_entropy, (normal(512, 256), normal(256, 1000, scale=0.1), labels)),
        "layer_norm": (layers.layer_norm, (normal(2048, 1024), normal(1024), positive(1024))),
        "batch_norm": (layers.batch_norm, (normal(8, 28, 28, 128), normal(128), positive(128))),
        "softmax": (jax.nn.softmax, (normal(2048, 1024),)),
        "gelu": (jax.nn.gelu, (normal(2000, 1000),)),
        "adam": (
            layers.adam,
            (*(normal(1000, 1000 + n)[:, :1000] for n in range(2)), *2 * [positive(1000, 1000)], np.float32(3)),
        ),
        "conv2d": (layers.convolution, (normal(1, 64, 56, 56), normal(64, 64, 3, 3))),
        "conv2d.last": (
            lambda x, w: layers.convolution(x, w, last=True),
            (normal(1, 56, 56, 64), normal(3, 3, 64, 64)),
        ),
        "pool.max": (layers.largest_of_four, (normal(4, 112, 112, 64),)),
        "sum.columns": (lambda x: x.sum(0), (normal(4000, 1000),)),
        "max.rows": (lambda x: x.max(1), (normal(4000, 1000),)),
        "argmax.rows": (lambda x: jnp.argmax(x, 1), (normal(4000, 1000),)),
        "transpose": (lambda x: x.T + 1, (normal(2000, 2000),)),
        "embedding": (lambda table, j: table[j].sum(1), (normal(10000, 128), whole(512, 32, low=0, high=10000))),
        "attraction": (layers.attraction, (normal(1000, 3),)),
        "shortest_paths": (layers.shortest_paths, (positive(128, 128),)),
        "life": (lambda board: layers.life(board, 20), (whole(500, 500, low=0, high=2),)),
        "resize": (lambda x: jax.image.resize(x, (1024, 1024), "bilinear"), (normal(512, 512),)),
        "random.normal": (
            lambda key: jax.random.normal(jax.random.wrap_key_data(key), (1000, 1000)),
            (np.array([3, 7], np.uint32),),
        ),
    }
