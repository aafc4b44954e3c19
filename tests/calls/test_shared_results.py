"""Results in memory that the CPU and the device share: what the CPU may look at, and what it may not."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import PROGRAMS
from emulator.driver import shared
from emulator.on_device import compiled

from offload.errors import SignatureError


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_what_is_shared_has_a_view(chip: str) -> None:
    backend = "cuda" if chip.startswith("sm_") else "hip"
    with shared(backend).chip(chip):
        library = compiled(PROGRAMS / "shared_results.mlir", chip)
        result = library.shared(4)
        result.host_view()[...] = 1
        assert result.shared
        assert library.same(result).host_view().tolist() == [2] * 4, "a view of an argument is as shared as that"
        for call in (lambda: library.alone(4), lambda: library.either(4, True), lambda: library.same(library.alone(4))):
            with pytest.raises(SignatureError, match=r"is out of the CPU's reach; \.numpy\(\) copies it"):
                call().host_view()
        assert np.array_equal(library.same(library.device.zeros(3, np.float32)).numpy(), [2] * 3)
    shared(backend).check()
