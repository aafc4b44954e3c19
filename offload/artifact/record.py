"""JSON objects whose fields are read with their types."""

from __future__ import annotations

from typing import Any

from offload.errors import ArtifactError


def text_of(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ArtifactError(f"{where}: expected a string, found {type(value).__name__}")
    return value


class Record:
    """A JSON object whose fields are read with their type; `where` is its place, for messages."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ArtifactError(f"{where}: expected a JSON object, found {type(value).__name__}")
        self.value = value
        self.where = where

    def get(self, key: str, kind: type, optional: bool = False) -> Any:
        if key not in self.value:
            raise ArtifactError(f"{self.where}: the field {key!r} is missing")
        value = self.value[key]
        if value is None and optional:
            return None
        if type(value) is not kind:
            raise ArtifactError(
                f"{self.where}: expected {kind.__name__} in the field {key!r}, found {type(value).__name__}"
            )
        return value

    def flag(self, key: str) -> bool:
        """A field that may be missing, which is False."""
        return key in self.value and bool(self.get(key, bool))

    def text(self, key: str) -> str:
        """A field that may be missing, which is empty."""
        return str(self.get(key, str)) if key in self.value else ""

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value: str = self.get(key, str)
        if value not in choices:
            raise ArtifactError(
                f"{self.where}: expected one of {', '.join(choices)} in the field {key!r}, found {value!r}"
            )
        return value

    def numbers(self, key: str, count: int) -> tuple[int, ...]:
        """A field that may be missing, which is empty, else so many integers."""
        values = self.get(key, list) if key in self.value else []
        if values and not (len(values) == count and all(type(value) is int for value in values)):
            raise ArtifactError(f"{self.where}: expected {count} integers in the field {key!r}, found {values}")
        return tuple(values)

    def sizes(self, key: str) -> tuple[int | None, ...]:
        values = self.get(key, list)
        if not all(value is None or type(value) is int for value in values):
            raise ArtifactError(f"{self.where}: expected integers and null in the field {key!r}, found {values}")
        return tuple(values)

    def all(self, key: str, read: Any) -> tuple[Any, ...]:
        return tuple(read(value, f"{self.where}: {key}[{index}]") for index, value in enumerate(self.get(key, list)))
