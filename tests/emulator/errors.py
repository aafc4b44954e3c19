"""The error of the emulator."""

from __future__ import annotations


class EmulationError(Exception):
    """Code did what hardware forbids, or what the emulator does not know; says which instruction."""


class AccessError(EmulationError):
    """Code reached for memory that nobody allocated."""


class AbortedError(EmulationError):
    """The program stopped itself with a trap, as after a failed assertion."""
