"""Loading and calling artifacts: needs NumPy and libc, and whatever driver is there."""

from offload.runtime.array import DeviceArray
from offload.runtime.device import Device, DeviceInfo
from offload.runtime.function import Function
from offload.runtime.kernel import Kernel
from offload.runtime.launch import Launch
from offload.runtime.library import Library, load, use
from offload.runtime.occupancy import Occupancy
from offload.runtime.pending import Pending, Running
from offload.runtime.plans import FAST
from offload.runtime.streams import Stream

__all__ = [
    "FAST",
    "Device",
    "DeviceArray",
    "DeviceInfo",
    "Function",
    "Kernel",
    "Launch",
    "Library",
    "Occupancy",
    "Pending",
    "Running",
    "Stream",
    "load",
    "use",
]
