"""linalg's convolutions and pools, of tensors of known and of unknown sizes."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensor_cases import Array, named, whole, windows

from operations import Case

# What a letter of a name is an index of, in NumPy's notation: channels and groups are the same in all operands.
POOLED = {"max": np.max, "min": np.min, "sum": np.sum}
STRIDES, DILATIONS = (2, 1, 1), (1, 2, 1)


def seen(x: Array, layout: str, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """The windows of ``x``, whose dimensions are called n, g, c and d, h, w: the others first, then the places, then the
    window's own."""
    spatial = [layout.index(letter) for letter in "dhw" if letter in layout]
    others = [axis for axis in range(x.ndim) if axis not in spatial]
    return np.moveaxis(
        windows(x.transpose(*spatial, *others), sizes, strides, dilations),
        range(len(sizes)),
        range(x.ndim - len(sizes), x.ndim),
    )


def convolution(
    name: str, x: Sequence[int], w: Sequence[int], *, element: str = "f32", into: str = "", steps: bool = True
) -> list[Case]:
    """``name`` is that of an operation: ``conv_2d_nhwc_hwcf`` and such. Weights and images have these sizes."""
    parts = name.removeprefix("depthwise_").removesuffix("_q").split("_")
    rank = int(parts[1][0])
    space = "dhw"[3 - rank :]
    images, weights = (parts[2], parts[3]) if len(parts) > 2 else (space, space)
    strides, dilations = (STRIDES[:rank], DILATIONS[:rank]) if steps and len(parts) > 2 else ((1,) * rank, (1,) * rank)
    image, weight = whole(x, element, 0), whole(w, element, 1)
    extents = [w[weights.index(letter)] for letter in space]
    found = seen(image, images, extents, strides, dilations)
    others = "".join(letter for letter in images if letter not in space)
    places, window = "xyz"[:rank], "ijk"[:rank]
    kernel = weights.translate(str.maketrans(space, window))
    channels = "m" if "m" in weights else "f" if "f" in weights else ""
    result = images.translate(str.maketrans(space, places))
    if name.startswith("depthwise"):
        result += channels
    elif channels:
        result = result.replace("c", "f")
        if "g" in result and "f" not in result:
            result += "f"
    wide = np.float64 if element.startswith("f") else np.int64
    points = [3, -2] if name.endswith("_q") else [0, 0]
    made = np.einsum(
        f"{others}{places}{window},{kernel}->{result}", found.astype(wide) - points[0], weight.astype(wide) - points[1]
    )
    start = whole(made.shape, into or element, 2)
    wanted = (start + made).astype(start.dtype)
    attributes = (
        f"{{strides = dense<{list(strides)}> : tensor<{rank}xi64>, dilations = dense<{list(dilations)}> : tensor<{rank}xi64>}} "
        if len(parts) > 2
        else ""
    )
    scalars = [f"%q{i} = arith.constant {point} : i32" for i, point in enumerate(points)] if name.endswith("_q") else []
    return named(
        name,
        element if not into else f"{element} to {into}",
        [image, weight, start],
        wanted,
        attributes,
        before=scalars,
    )


def pool(name: str, x: Sequence[int], element: str = "f32") -> list[Case]:
    _, layout, *how = name.split("_")
    rank = len(layout) - 2
    image, sizes = whole(x, element, 0, *((-5, 6) if "unsigned" not in how else (-100, 100))), (2, 3, 2)[:rank]
    found = seen(image, layout, sizes, STRIDES[:rank], DILATIONS[:rank])
    last = tuple(range(-rank, 0))
    if "unsigned" in how:
        made = POOLED[how[0]](found.view(f"u{image.dtype.itemsize}"), last).view(image.dtype)
    else:
        made = POOLED[how[0]](found, last)
    made = np.ascontiguousarray(np.moveaxis(made, 1, -1) if layout.endswith("c") else made).astype(image.dtype)
    start = np.zeros_like(made) if how[0] == "sum" else made.copy()
    # The window's values do not count.
    attributes = f"{{strides = dense<{list(STRIDES[:rank])}> : tensor<{rank}xi64>, dilations = dense<{list(DILATIONS[:rank])}> : tensor<{rank}xi64>}} "
    return named(name, element, [image, np.zeros(sizes, image.dtype), start], made, attributes)


CASES = [
    *convolution("conv_1d", (12,), (3,)),
    *convolution("conv_2d", (9, 8), (3, 2)),
    *convolution("conv_3d", (5, 6, 7), (2, 3, 2)),
    *convolution("conv_1d_nwc_wcf", (2, 11, 3), (4, 3, 5)),
    *convolution("conv_1d_ncw_fcw", (2, 3, 11), (5, 3, 4)),
    *convolution("conv_2d_nhwc_hwcf", (2, 9, 8, 3), (3, 2, 3, 4)),
    *convolution("conv_2d_nhwc_hwcf", (2, 9, 8, 3), (3, 2, 3, 4), element="f16", into="f32"),
    *convolution("conv_2d_nhwc_hwcf", (2, 9, 8, 3), (3, 2, 3, 4), element="i8", into="i32"),
    *convolution("conv_2d_nhwc_fhwc", (2, 9, 8, 3), (4, 3, 2, 3)),
    *convolution("conv_2d_nchw_fchw", (2, 3, 9, 8), (4, 3, 3, 2)),
    *convolution("conv_2d_ngchw_fgchw", (2, 2, 3, 9, 8), (4, 2, 3, 3, 2)),
    *convolution("conv_2d_ngchw_gfchw", (2, 2, 3, 9, 8), (2, 4, 3, 3, 2)),
    *convolution("conv_2d_nhwgc_gfhwc", (2, 9, 8, 2, 3), (2, 4, 3, 2, 3)),
    *convolution("conv_3d_ndhwc_dhwcf", (1, 5, 6, 7, 2), (2, 3, 2, 2, 3)),
    *convolution("conv_3d_ncdhw_fcdhw", (1, 2, 5, 6, 7), (3, 2, 2, 3, 2)),
    *convolution("depthwise_conv_1d_nwc_wc", (2, 11, 3), (4, 3)),
    *convolution("depthwise_conv_1d_ncw_cw", (2, 3, 11), (3, 4)),
    *convolution("depthwise_conv_1d_nwc_wcm", (2, 11, 3), (4, 3, 2)),
    *convolution("depthwise_conv_2d_nhwc_hwc", (2, 9, 8, 3), (3, 2, 3)),
    *convolution("depthwise_conv_2d_nchw_chw", (2, 3, 9, 8), (3, 3, 2)),
    *convolution("depthwise_conv_2d_nhwc_hwcm", (2, 9, 8, 3), (3, 2, 3, 2)),
    *convolution("depthwise_conv_3d_ndhwc_dhwc", (1, 5, 6, 7, 2), (2, 3, 2, 2)),
    *convolution("depthwise_conv_3d_ncdhw_cdhw", (1, 2, 5, 6, 7), (2, 2, 3, 2)),
    *convolution("depthwise_conv_3d_ndhwc_dhwcm", (1, 5, 6, 7, 2), (2, 3, 2, 2, 2)),
    *convolution("conv_2d_nhwc_hwcf_q", (2, 9, 8, 3), (3, 2, 3, 4), element="i8", into="i32"),
    *convolution("conv_2d_nhwc_fhwc_q", (2, 9, 8, 3), (4, 3, 2, 3), element="i8", into="i32"),
    *convolution("conv_2d_nchw_fchw_q", (2, 3, 9, 8), (4, 3, 3, 2), element="i8", into="i32"),
    *convolution("depthwise_conv_2d_nhwc_hwc_q", (2, 9, 8, 3), (3, 2, 3), element="i8", into="i32"),
    *convolution("depthwise_conv_2d_nhwc_hwcm_q", (2, 9, 8, 3), (3, 2, 3, 2), element="i8", into="i32"),
    *(case for how in ("sum", "max", "min") for case in pool(f"pooling_nhwc_{how}", (2, 9, 8, 3))),
    *(case for how in ("max", "min") for case in pool(f"pooling_nhwc_{how}_unsigned", (2, 9, 8, 3), "i8")),
    *(case for how in ("sum", "max") for case in pool(f"pooling_nchw_{how}", (2, 3, 9, 8))),
    *(case for how in ("sum", "max", "min") for case in pool(f"pooling_nwc_{how}", (2, 9, 3))),
    *(case for how in ("max", "min") for case in pool(f"pooling_nwc_{how}_unsigned", (2, 9, 3), "i32")),
    *(case for how in ("sum", "max") for case in pool(f"pooling_ncw_{how}", (2, 3, 9))),
    *(case for how in ("sum", "max", "min") for case in pool(f"pooling_ndhwc_{how}", (1, 6, 7, 5, 2))),
]  # fmt: skip
