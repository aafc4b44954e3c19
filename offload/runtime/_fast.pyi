"""Types of the extension, used by plans.py alone."""

from collections.abc import Sequence
from typing import Any

ABI_VERSION: int

class Caller:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def inherit_call(subclass: type) -> None: ...
def dlpack_destructor() -> int: ...
def set_numpy(array: type, floating: type, integer: type) -> None: ...
def set_device_array(array: type, memory: type, uses: type) -> None: ...
def arm_function(
    caller: object,
    native: object,
    api: int,
    function: int,
    arguments: Sequence[dict[str, Any]],
    result: dict[str, Any] | None,
    names: Sequence[str],
    takes_stream: bool,
    brief: bool,
    on_any_device: bool,
    equal: Sequence[Any],
) -> None: ...
def arm_launch(
    caller: object,
    api: int,
    slot: int,
    arguments: Sequence[dict[str, Any]],
    sizes: Sequence[int],
    cluster: Sequence[int],
    shared: int,
    bare_pointers: bool,
    goes_on: bool,
    names: Sequence[str],
) -> None: ...
