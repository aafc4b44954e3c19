"""TOSA: pools, convolutions, images of other sizes, Fourier transforms."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensor_cases import Array, computed, floats, whole, windows
from tosa_lines import ZERO, constant, listed, shape, unary

from operations import Case


def pooled(x: Array, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], fill: float) -> Array:
    """The windows of images: batch, rows, columns, channels, and then a window's."""
    padded = np.pad(x, ((0, 0), pad[:2], pad[2:], (0, 0)), constant_values=fill)
    return np.stack([windows(image, kernel, stride, (1, 1)) for image in padded])


def averaged(sums: Array, counts: Array) -> Array:
    """Means as the specification has them (reciprocal_scale, apply_scale_32): those between two numbers go away from 0."""
    shifts = np.ceil(np.log2(counts)).astype(np.int64)
    return sums * ((((1 << 30) + 1) << shifts) // counts) + (1 << 29 + shifts) >> 30 + shifts


def pools() -> list[Case]:
    found = []
    x, small = floats((2, 7, 9, 3)), whole((2, 7, 9, 3), "i8", 0, -128, 128)
    for kernel, stride, pad in (
        ((3, 3), (2, 2), (0, 0, 0, 0)),
        ((3, 2), (2, 1), (1, 1, 0, 1)),
        ((2, 3), (1, 2), (0, 1, 1, 1)),
    ):
        sizes = f"kernel = {listed(kernel)}, stride = {listed(stride)}, pad = {listed(pad)}"
        form = f"{kernel[0]} x {kernel[1]}, strides {stride[0]}, {stride[1]}, pad {', '.join(map(str, pad))}"
        counts = pooled(np.ones_like(x), kernel, stride, pad, 0).sum((-2, -1))
        wanted = pooled(x, kernel, stride, pad, -np.inf).max((-2, -1))
        found.append(unary("max_pool2d", f"f32, {form}", x, wanted, f"{{{sizes}}} "))
        wanted = pooled(small, kernel, stride, pad, -128).max((-2, -1))
        found.append(unary("max_pool2d", f"i8, {form}", small, wanted, f"{{{sizes}}} "))
        wanted = (pooled(x, kernel, stride, pad, 0).sum((-2, -1)) / counts).astype(np.float32)
        lines = (
            ZERO
            + f"%r = tosa.avg_pool2d %a0, %z, %z {{acc_type = f32, {sizes}}} : ($A0, tensor<1xf32>, tensor<1xf32>) -> $R"
        )
        found.append(computed("tosa.avg_pool2d", f"f32, {form}", [x], lines, wanted, off=1e-5))
        means = averaged(pooled(small.astype(np.int64), kernel, stride, pad, 0).sum((-2, -1)), counts.astype(np.int64))
        lines = (
            constant("p", [0], "i8")
            + f"%r = tosa.avg_pool2d %a0, %p, %p {{acc_type = i32, {sizes}}} : ($A0, tensor<1xi8>, tensor<1xi8>) -> $R"
        )
        found.append(computed("tosa.avg_pool2d", f"i8, {form}", [small], lines, means.astype(np.int8)))
    return found


def convolved(
    x: Array, w: Array, b: Array, stride: Sequence[int], dilation: Sequence[int], pad: Sequence[int]
) -> Array:
    """Images (batch, rows, columns, channels) with weights (out, rows, columns, in)."""
    padded = np.pad(x, ((0, 0), pad[:2], pad[2:], (0, 0)))
    seen = np.stack([windows(image, w.shape[1:3], stride, dilation) for image in padded])
    return (np.einsum("nijchw,ohwc->nijo", seen, w) + b).astype(np.float32)


def transposed(x: Array, w: Array, b: Array, stride: Sequence[int], pad: Sequence[int]) -> Array:
    """What each pixel adds around its place; ``pad`` is added to the result's borders."""
    rows, columns = (
        (size - 1) * step + extent for size, step, extent in zip(x.shape[1:3], stride, w.shape[1:3], strict=True)
    )
    made = np.zeros((len(x), rows + pad[0] + pad[1], columns + pad[2] + pad[3], len(w)))
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            top, left = i * stride[0] + pad[0], j * stride[1] + pad[2]
            made[:, top : top + w.shape[1], left : left + w.shape[2]] += np.einsum("nc,ohwc->nhwo", x[:, i, j], w)
    return (made + b).astype(np.float32)


def convolutions() -> list[Case]:
    found = []
    x, w, b, thin, all_ = (
        floats((2, 9, 10, 3)),
        floats((4, 3, 2, 3), seed=1),
        floats((4,), seed=2),
        floats((3, 2, 3, 2), seed=3),
        floats((6,), seed=4),
    )
    spread = np.zeros((6, 3, 2, 3), np.float32)  # each channel has two results of its own
    for channel in range(3):
        for multiple in range(2):
            spread[2 * channel + multiple, :, :, channel] = thin[:, :, channel, multiple]
    ins = "%a0, %a1, %a2, %z, %z"
    types = "($A0, $A1, $A2, tensor<1xf32>, tensor<1xf32>) -> $R"
    for stride, dilation, pad in (
        ((2, 1), (1, 2), (1, 1, 0, 0)),
        ((1, 2), (2, 1), (0, 2, 1, 1)),
        ((2, 2), (2, 2), (2, 0, 1, 0)),
    ):
        sizes = f"acc_type = f32, stride = {listed(stride)}, dilation = {listed(dilation)}, pad = {listed(pad)}"
        form = f"f32, strides {stride[0]}, {stride[1]}, dilation {dilation[0]}, {dilation[1]}, pad {', '.join(map(str, pad))}"
        found.append(
            computed(
                "tosa.conv2d",
                form,
                [x, w, b],
                ZERO + f"%r = tosa.conv2d {ins} {{{sizes}}} : {types}",
                convolved(x, w, b, stride, dilation, pad),
                off=1e-4,
            )
        )
        wanted = convolved(x, spread, all_, stride, dilation, pad)
        found.append(
            computed(
                "tosa.depthwise_conv2d",
                form,
                [x, thin, all_],
                ZERO + f"%r = tosa.depthwise_conv2d {ins} {{{sizes}}} : {types}",
                wanted,
                off=1e-4,
            )
        )
    for stride, pad in (((1, 1), (0, 0, 0, 0)), ((2, 2), (0, 0, 0, 0)), ((2, 3), (1, 0, 0, 2))):
        sizes = f"acc_type = f32, stride = {listed(stride)}, out_pad = {listed(pad)}"
        form = f"f32, strides {stride[0]}, {stride[1]}, pad {', '.join(map(str, pad))}"
        found.append(
            computed(
                "tosa.transpose_conv2d",
                form,
                [x, w, b],
                ZERO + f"%r = tosa.transpose_conv2d {ins} {{{sizes}}} : {types}",
                transposed(x, w, b, stride, pad),
                off=1e-4,
            )
        )
    deep, w3 = floats((1, 4, 5, 6, 2)), floats((3, 2, 2, 3, 2), seed=1)
    seen = np.stack([windows(image, (2, 2, 3), (1, 1, 1), (1, 1, 1)) for image in deep])
    wanted = (np.einsum("ndijcthw,othwc->ndijo", seen, w3) + b[:3]).astype(np.float32)
    sizes = "acc_type = f32, stride = array<i64: 1, 1, 1>, dilation = array<i64: 1, 1, 1>, pad = array<i64: 0, 0, 0, 0, 0, 0>"
    found.append(
        computed(
            "tosa.conv3d",
            "f32",
            [deep, w3, b[:3]],
            ZERO + f"%r = tosa.conv3d {ins} {{{sizes}}} : {types}",
            wanted,
            off=1e-4,
        )
    )
    return found


def spectra() -> list[Case]:
    real, imaginary = floats((2, 4, 8)), floats((2, 4, 8), seed=1)
    whole_, half = np.fft.fft2(real + 1j * imaginary), np.fft.rfft2(real)
    parts = [[np.ascontiguousarray(part, np.float32) for part in (each.real, each.imag)] for each in (whole_, half)]
    lines = "%r, %i = tosa.fft2d %a0, %a1 {inverse = false} : ($A0, $A1) -> ($R0, $R1)"
    found = [computed("tosa.fft2d", "f32", [real, imaginary], lines, parts[0], results="%r, %i", off=1e-4)]
    lines = "%r, %i = tosa.rfft2d %a0 : ($A0) -> ($R0, $R1)"
    return [*found, computed("tosa.rfft2d", "f32", [real], lines, parts[1], results="%r, %i", off=1e-4)]


def resized() -> list[Case]:
    x = floats((1, 4, 4, 2))
    lines = shape("scale", (2, 1, 2, 1)) + shape("offset", (0, 0)) + shape("border", (1, 1))
    lines += "%r = tosa.resize %a0, %scale, %offset, %border {mode = NEAREST_NEIGHBOR} : ($A0, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> $R"
    nearest = [0, 1, 1, 2, 2, 3, 3, 3]  # the later of two that are as near
    return [computed("tosa.resize", "f32, nearest", [x], lines, x[:, nearest][:, :, nearest])]


CASES = [*pools(), *convolutions(), *spectra(), *resized()]
