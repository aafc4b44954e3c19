"""The metadata of an artifact: round trips, and what is wrong with wrong ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from compiling import command, on_host
from sample_artifact import IMAGES, KERNEL, SIGNATURE, X, meta_of

import offload
from offload.artifact import (
    Argument,
    ImageInfo,
    Metadata,
)
from offload.errors import ArtifactError

# The metadata.


def test_metadata_round_trip() -> None:
    meta = meta_of(IMAGES)
    text = meta.to_json()
    assert Metadata.from_json(text) == meta
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert json.loads(text)["functions"][0]["args"][0] == {
        "name": "x", "kind": "memref", "dtype": "float32", "rank": 2, "shape": [None, 4], "strides": None,
        "offset": 0, "space": "any",
    }  # fmt: skip
    assert str(X) == "float32[?, 4]"
    assert str(KERNEL.args[1]) == "bool"


def test_index_is_int64() -> None:
    record = {**Argument("n", "scalar", "int64").to_json(), "dtype": "index"}
    assert Argument.from_json(record).dtype == "int64"


def change(**fields: object) -> str:
    return json.dumps({**json.loads(meta_of([]).to_json()), **fields})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m: the metadata is not JSON"),
        (b"\xff\xfe", "m: the metadata is not JSON"),
        ("[" * 100000, "m: the metadata is not JSON"),
        ("[]", "m: expected a JSON object, found list"),
        ("{}", "m: the field 'schema' is missing"),
        (change(schema=2), "m: expected metadata of schema 1, found 2; update offload"),
        (change(schema=0), "m: expected metadata of schema 1, found 0; build the artifact again"),
        (change(schema=True), "m: expected int in the field 'schema', found bool"),
        (change(runtime="none"), "m: expected one of static, shared in the field 'runtime', found 'none'"),
        (change(functions={}), "m: expected list in the field 'functions', found dict"),
        (change(functions=[1]), "m: functions[0]: expected a JSON object, found int"),
        (change(kernels=[{"name": "k"}]), "m: kernels[0]: the field 'module' is missing"),
        (change(images=[{**ImageInfo("a", "b", "c", "d").to_json(), "kernels": [1]}]),
         "m: images[0]: kernels[0]: expected a string, found int"),
        (change(images=[{**ImageInfo("a", "b", "c", "d").to_json(), "resources": {"k": 1}}]),
         "m: images[0]: expected an object per kernel in 'resources'"),
        (change(functions=[{**SIGNATURE.to_json(), "args": [{**X.to_json(), "rank": 1}]}]),
         "m: functions[0]: args[0]: rank 1, shape (None, 4) and strides None do not agree"),
        (change(functions=[{**SIGNATURE.to_json(), "args": [{**X.to_json(), "shape": [-1, 4]}]}]),
         "m: functions[0]: args[0]: [-1, 4] is not the shape of a memref"),
        (change(functions=[{**SIGNATURE.to_json(), "args": [{**X.to_json(), "shape": [1.5, 4]}]}]),
         "expected integers and null in the field 'shape'"),
        (change(functions=[{**SIGNATURE.to_json(), "args": [{**X.to_json(), "kind": "tensor"}]}]),
         "expected one of memref, scalar in the field 'kind', found 'tensor'"),
    ],
)  # fmt: skip
def test_malformed_metadata(text: str | bytes, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        Metadata.from_json(text, "m")
    assert message in str(caught.value)


def test_functions_that_python_cannot_call_say_so() -> None:
    library = on_host("func.func @f(%x: vector<4xf32>) -> vector<4xf32> {\n  return %x : vector<4xf32>\n}\n")
    assert not library.functions
    with pytest.raises(
        AttributeError, match=r"^the program has a function 'f' with a type that has no counterpart in Python: "
    ):
        library.f(1)
    with pytest.raises(AttributeError, match=r"^the program has no function 'g'"):
        library.g(1)


def test_functions_for_c_alone_are_told(tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(
        "func.func @f(%x: vector<4xf32>) -> vector<4xf32> {\n  return %x : vector<4xf32>\n}\n"
        "func.func @g(%x: f32) -> f32 {\n  return %x : f32\n}\n"
        "llvm.func @h(%x: !llvm.struct<(f32, f32)>) {\n  llvm.return\n}\n"
    )
    path = offload.build(program, tmp_path / "program.so")
    library = offload.load(path)
    why = r"!llvm.struct<\(f32, f32\)> of argument 'x' \(1 of 1\)"
    told = f"^program.so has a function 'h' for C alone, because of a type that has no counterpart in Python: {why};"
    with pytest.raises(AttributeError, match=told):
        library.h(1)
    with pytest.raises(KeyError, match=told.removeprefix("^")):
        library.functions["h"]
    with pytest.raises(AttributeError, match=r"^program.so has no function 'printf'\. It has: g$"):
        library.printf(1)  # the loader finds that one, too
    assert offload.artifact.functions_for_c(path, library.metadata) == {"f": "_mlir_ciface_f", "h": "h"}
    said = command("inspect", path, cwd=tmp_path).stdout
    assert "  g(x: float32) -> float32\n  for C alone: f (vector<4xf32> of argument 'x' (1 of 1)), h (" in said


def test_kernels_that_python_cannot_launch_say_so() -> None:
    library = on_host("gpu.module @m { gpu.func @k(%x: memref<?xvector<4xf32>>) kernel { gpu.return } }\n")
    assert not library.kernels
    for name in ("k", "m.k"):
        with pytest.raises(KeyError, match=f"has a kernel '{name}' that Python cannot launch, because of an argument"):
            library.kernels[name]
    with pytest.raises(AttributeError, match="has a kernel 'k' that Python cannot launch"):
        library.kernels.k(1)
    with pytest.raises(AttributeError, match=r"^the program has no kernel 'j'"):
        library.kernels.j(1)


def test_functions_of_programs_that_choose_devices_are_marked(tmp_path: Path) -> None:
    """Arrays that they are given may be on any device."""
    plain = "func.func @f(%x: memref<?xf32>) { return }\n"
    chooses = "func.func @g(%n: i32) { gpu.set_default_device %n return }\n"
    assert [on_host(program).signatures["f"].any_device for program in (plain, plain + chooses)] == [False, True]
    (tmp_path / "h.c").write_text("void h(void) {}\n")
    subprocess.run(["cc", "-c", "-fPIC", "h.c"], cwd=tmp_path, check=True)
    calls = "func.func private @h()\nfunc.func @g() { call @h() : () -> () return }\n"
    linked = offload.compile(plain + calls, targets=["host"], objects=[tmp_path / "h.o"])
    assert linked.signatures["f"].any_device
