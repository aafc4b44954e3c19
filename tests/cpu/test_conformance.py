"""Each kernel of tests/conformance in every way in which the CPU can run it, against NumPy."""

from __future__ import annotations

import re

import pytest
from compiling import on_host
from conformance import Kernel, all_kernels, all_themes, copied, judge

WAYS = ("host", "host,coroutines", "host,O=0,debug", "host,warp=64", "host,warp=64,coroutines")
KERNELS = all_kernels()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.theme}.{kernel.name}")
def test_kernel(kernel: Kernel, way: str) -> None:
    (theme,) = [theme for theme in all_themes() if theme.name == kernel.theme]
    library = on_host(theme.source, opt=0 if "O=0" in way else 3, target=way)
    for launch, answer in kernel.launches(64 if "warp=64" in way else 32, count=3):
        given, arrays = copied(answer.arguments)
        library.kernels[kernel.name][launch.grid, launch.block, None, answer.shared](*given)
        judge(arrays, answer)


def test_each_kernel_has_an_answer() -> None:
    for theme in all_themes():
        written = set(re.findall(r"gpu\.func @(\w+)\(", theme.source))
        assert written == {kernel.name for kernel in theme.kernels}
