"""Python started in the folder of the sources, which it finds before the installed package; and other folders whose
names are like those of the sources."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from compiling import ROOT
from runtime_support import real_path

from offload.runtime import abi


def test_the_readme_runs_in_the_folder_of_the_sources(tmp_path: Path) -> None:
    """As it says, with the Python that it says: this folder has half of the package, which Python finds first."""
    text = (ROOT / "README.md").read_text()
    (option,) = re.findall(r"`\.venv/bin/python(.*?)` and `\.venv/bin/offload`", text)
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    block = block.replace('"saxpy.so"', repr(str(tmp_path / "saxpy.so")))

    def started(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *options], input=block, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
        )

    assert started(*option.split()).stderr == ""
    assert f"ModuleNotFoundError: {ROOT / 'offload'} has the sources of offload" in started("-").stderr


def test_an_installed_package_beside_a_folder_named_like_one_of_the_sources(tmp_path: Path) -> None:
    """As ``pip install --target`` leaves it in a project that has such a folder."""
    (tmp_path / "runtime_c").mkdir()
    (tmp_path / "offload").mkdir()
    for path in Path(abi.__file__).parent.parent.iterdir():
        (tmp_path / "offload" / path.name).symlink_to(path)
    program = "import sys, offload; offload.targets; print(offload.__path__, offload.load(sys.argv[1]).echo_int8(3))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = subprocess.run([sys.executable, "-c", program, real_path()], check=True, capture_output=True,
                             text=True, env=environment, cwd=tmp_path).stdout  # fmt: skip
    assert printed == f"['{tmp_path}/offload'] 3\n"
