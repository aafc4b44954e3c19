"""Loading and calling artifacts: needs NumPy and libc, and whatever driver is there."""

from offload.runtime.device import Device, DeviceArray, DeviceInfo
from offload.runtime.function import Function
from offload.runtime.kernel import Kernel
from offload.runtime.library import Library, load, use
from offload.runtime.plans import FAST
from offload.runtime.streams import Stream

__all__ = ["FAST", "Device", "DeviceArray", "DeviceInfo", "Function", "Kernel", "Library", "Stream", "load", "use"]
