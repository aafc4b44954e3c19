"""The page with the figures of JAX's programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_that_of_the_saved_figures(tmp_path: Path) -> None:
    """And without figures it says so; with some it shows them, and what was wrong."""

    def written(*words: str | Path) -> str:
        subprocess.run(
            [sys.executable, ROOT / "scripts" / "docs_jax.py", "--page", tmp_path / "page.md", *words], check=True
        )
        return (tmp_path / "page.md").read_text()

    assert written() == (ROOT / "docs" / "jax_programs.md").read_text()
    assert "Nothing was measured yet." in written("--results", tmp_path / "none.json")
    ways = {"offload": {"runs": 9, "median": 1.5}, "xla": {"runs": 9, "median": 1.0}}
    figures = {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"processor": "one", "cores": 2},
        "versions": {"jax": "0.1"},
        "checked": [
            {"target": "host", "sizes": "known", "programs": {"right": 3, "not lowered": 1}},
            {"target": "sm_90", "sizes": "unknown", "programs": {"right": 2, "wrong": 1}},
        ],
        "wrong": [{"program": "tanh", "why": "other numbers"}],
        "milliseconds": {"matmul": ways},
        "median": 1.5,
        "goal": 2.0,
    }
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    text = written("--results", tmp_path / "figures.json")
    assert "| the CPU | known | 3 | 0 | 1 |" in text
    assert "| an emulated sm_90 | unknown | 2 | 1 | 0 |" in text
    assert "Wrong: tanh: other numbers" in text
    assert "medians of 9 turns" in text
    assert "| matmul | 1.500 | 1.000 | 1.50 |" in text
