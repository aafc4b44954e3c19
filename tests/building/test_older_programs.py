"""Programs of other MLIRs: an operation that has another name here is an error that tells it."""

from __future__ import annotations

import pytest

import offload
from offload.compiler import older


def refusal(text: str) -> str:
    """The error of a function with an operation in it; empty where there is none."""
    try:
        offload.compile(f"func.func @f() {{\n  {text}\n  return\n}}\n")
    except offload.CompileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("former", "present"), older.RENAMED.items(), ids=lambda name: name)
def test_names(former: str, present: str) -> None:
    generic = [] if former.startswith("llvm.") else [f'"{former}"() : () -> ()']  # that dialect may have unknown ones
    for text in (former, *generic):
        error = refusal(text)
        assert error.startswith(f"<string>:2:3: error: unknown operation '{former}': "), error
        assert f"'{present}' in its place" in error
    error = refusal(f'"{present}"() : () -> ()')
    assert "unregistered" not in error
    assert "unknown operation" not in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '%b = "stablehlo.abs"(%a) : (f32) -> f32',
            "'stablehlo.abs': .*--stablehlo-legalize-to-linalg",
        ),
        (
            "%b = chlo.tan %a : f32",
            "2:6: error: unknown operation 'chlo.tan': .* lower it to linalg, .*-opt --chlo-",
        ),
        ('%b = "torch.aten.abs" (%a) : (f32) -> f32', "'torch.aten.abs': .*torch-mlir-opt "),
        ('%b = "foo.abs"(%a) : (f32) -> f32', "unknown operation 'foo.abs': MLIR 22 has no dialect 'foo'; lower it"),
        ("%b = addf %a, %a : f32", "2:6: error: unknown operation 'addf': .* is in 'arith' in MLIR 22"),
        ("%b = std.mulf %a, %a : f32", "2:6: error: unknown operation 'std.mulf': .* is in 'arith' in MLIR 22"),
        ('gpu.printf "%f, \\22" %a : f32', "2:26: error: a comma stands between the format"),
        ('gpu.printf "%f"\n\n%a : f32', "4:5: error: a comma stands between the format"),
        ("%p = llvm.mlir.undef : !llvm.ptr<f32>", "2:34: error: a pointer has no element type in MLIR 22"),
        ("util.return", "unknown operation 'util.return': MLIR 22 has 'func.return' in its place"),
        ("%b = nvgpu.mbarrier.create -> !nvgpu.mbarrier.barrier<memorySpace = 3>", "'!nvgpu.mbarrier.group' in its"),
        (
            "%b = gpu.all_reduce min %a {} : (f32) -> (f32)",
            "2:25: error: 'gpu.all_reduce' has no such kind in MLIR 22, which has add, mul, minui, minsi, minnumf, ",
        ),
        ("%b = gpu.subgroup_reduce max %a : (f32) -> f32", "'gpu.subgroup_reduce' has no such kind in MLIR 22"),
        ("nvvm.mbarrier.init.shared %p, %a : !llvm.ptr<3>, i32", "MLIR 22 has 'nvvm.mbarrier.init' in its place"),
        ("%b = math.tahn %a : f32", r"2:6: error: unknown operation 'math.tahn'; did you mean .*'math.tanh'.*\?"),
        ('%b = "math.tahn"(%a) : (f32) -> f32', r"unknown operation 'math.tahn'; did you mean .*'math.tanh'.*\?"),
        (f'%b = arith.constant dense<"0x{"01" * 64}"> : tensor<64xi1>', "has eight i1 in a byte, .* --mlir-print-elem"),
        ('%b = arith.constant dense<"0x0102"> : tensor<64xi8>', r"invalid for provided type: 'tensor<64xi8>'\n"),
        ("%b = arith.addff %a, %a : f32", r"did you mean 'arith.addf'"),
        # What is wrong otherwise keeps MLIR's words.
        ("%b = arith.frob %a, %a : f32", "custom op 'arith.frob' is unknown"),
        ("%a : f32", "expected integer number of results"),
    ],
)
def test_syntax(text: str, message: str) -> None:
    with pytest.raises(offload.CompileError, match=message):
        offload.compile(f"func.func @f(%a: f32) {{\n{text}\n  return\n}}\n")
