"""``--timing``: how long each stage of a build took, and each pass of MLIR."""

from __future__ import annotations

from offload.compiler import steps


class Timing:
    """Listens to the steps of a build."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._stages: dict[str, float] = {}
        self._passes: dict[str, tuple[float, int]] = {}

    def __call__(self, event: steps.Event) -> None:
        """Takes what a build tells; any thread may."""
        if isinstance(event, steps.Begun):
            self._names[event.key] = str(event)
        elif isinstance(event, steps.Ended):
            name = self._names.pop(event.key)
            self._stages[name] = self._stages.get(name, 0.0) + event.seconds
        else:
            for name, seconds in event.times:
                sum_, count = self._passes.get(name, (0.0, 0))
                self._passes[name] = sum_ + seconds, count + 1

    def report(self, seconds: float) -> str:
        """The table; ``seconds`` is the whole build. Stages of different targets may overlap, and so exceed it."""
        lines = [f"{'ms':>9}  stage", *(_line(taken, name) for name, taken in self._stages.items())]
        lines.append(_line(seconds, "the whole build"))
        if self._passes:
            lines.append(f"{'ms':>9}  pass of MLIR, within the stages; how often it ran")
            longest = sorted(self._passes.items(), key=lambda item: -item[1][0])
            lines += [_line(taken, f"{name} ({count})") for name, (taken, count) in longest]
        return "\n".join(lines)


def _line(seconds: float, name: str) -> str:
    return f"{1000 * seconds:9.2f}  {name}"
