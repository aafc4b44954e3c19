"""The readers of image containers on damaged input: the C one under libFuzzer, the Python one on the same corpus."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from fuzz import run as fuzz

from offload.artifact import container
from offload.errors import ArtifactError

CORPUS = sorted(fuzz.CORPUS.iterdir())


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fuzz.build(tmp_path_factory.mktemp("fuzz"))


def test_the_corpus_and_a_short_search(fuzzer: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    said = fuzz.run(fuzzer, 200_000, tmp_path / "new", fuzz.CORPUS, found=tmp_path)
    executed = re.search(r"number_of_executed_units: (\d+)", said)
    assert executed
    assert int(executed[1]) >= 200_000


def test_the_fuzzer_notices(tmp_path: Path) -> None:
    """A reader that forgets one bound is caught within the short search: the search can fail."""
    source = (fuzz.RUNTIME / "core/image.c").read_text()
    careless = source.replace("if (!inside(data, data_size, size))", "if (data > size)")
    assert careless != source
    (tmp_path / "image.c").write_text(careless)
    (tmp_path / "new").mkdir()
    program = fuzz.build(tmp_path, tmp_path / "image.c")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        fuzz.run(program, 200_000, tmp_path / "new", fuzz.CORPUS, found=tmp_path)
    assert "heap-buffer-overflow" in caught.value.stderr


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name[:8])
def test_the_reader_in_python(path: Path) -> None:
    try:
        images = list(container.read(path.read_bytes()))
    except ArtifactError as error:
        assert str(error)
    else:
        assert all(isinstance(image.data, bytes) for image in images)
