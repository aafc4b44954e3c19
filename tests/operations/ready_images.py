"""Compiled code in a program: the objects of a gpu.binary, the attributes of a gpu.module."""

from __future__ import annotations

import numpy as np
from ready import BODY, CUBIN, HSACO, PTX, annotated, binary, bitcode, image, nvvm_object, rocdl_object

from offload.runtime import Library
from operations import Case

_NONE = {name: f"'m' has no image for {name}" for name in ("nvvm", "rocdl", "host")}
"""What a target is told for which there is neither an image nor source."""


def _without(*names: str) -> dict[str, str]:
    return {name: _NONE[name] for name in names}


def _everywhere(reason: str) -> dict[str, str]:
    return dict.fromkeys(_NONE, reason)


def _stores(library: Library) -> None:
    x = np.zeros(6, np.float32)
    library.f(x, np.float32(2.5))
    np.testing.assert_array_equal(x, [2.5, 2.5, 2.5, 2.5, 0, 0])


_BOTH = [nvvm_object("sm_90", CUBIN), rocdl_object("gfx942", HSACO)]
_SPIRV = '#gpu.object<#spirv.target_env<#spirv.vce<v1.0, [Shader], []>, #spirv.resource_limits<>>, bin = "abc">'

CASES = [
    Case("gpu.binary", "bin, objects of two vendors", binary(*_BOTH), refused=_without("host")),
    Case(
        "gpu.binary",
        "assembly",
        binary(
            nvvm_object("sm_90", PTX, "assembly = ", "properties = {O = 2 : i32}, "),
            rocdl_object("gfx942", image("rocdl:gfx942", "isa"), "assembly = "),
        ),
        refused=_without("host"),
    ),
    Case(
        "gpu.binary",
        "fatbin",
        binary(
            nvvm_object("sm_90", image("nvvm:sm_90,format=fatbin", "fat"), ""),
            rocdl_object("gfx942", image("rocdl:gfx942,format=fatbin", "fat"), ""),
        ),
        refused=_without("host"),
    ),
    Case(
        "gpu.binary",
        "offload (LLVM bitcode): carried, run by no driver",
        binary(nvvm_object("sm_90", bitcode("nvvm:sm_90"), "offload = ")),
        refused=_without("rocdl", "host"),
    ),
    Case(
        "gpu.binary",
        "select_object",
        binary(*_BOTH, handler="<#gpu.select_object<1>>"),
        refused=_without("nvvm", "host"),
    ),
    Case(
        "gpu.binary",
        "object of a target that does not exist here (spirv)",
        binary(*_BOTH, _SPIRV),
        refused=_everywhere("would run nowhere"),
    ),
    Case(
        "gpu.binary",
        "damaged object",
        binary(nvvm_object("sm_90", CUBIN[:-1])),
        refused=_everywhere("holds a damaged cubin"),
    ),
    Case("gpu.module", "nvvm.cubin, with source", annotated({"nvvm.cubin": CUBIN}, BODY), _stores),
    Case("gpu.module", "rocdl.hsaco, with source", annotated({"rocdl.hsaco": HSACO}, BODY), _stores),
    Case(
        "gpu.module",
        "nvvm.cubin and rocdl.hsaco, without source",
        annotated({"nvvm.cubin": CUBIN, "rocdl.hsaco": HSACO}),
        refused=_without("host"),
    ),
    Case(
        "gpu.module",
        "attribute named by gpu_binary_annotation, with source",
        annotated({"my.code": HSACO}, BODY),
        _stores,
        options={"gpu_binary_annotation": "my.code"},
    ),
]
