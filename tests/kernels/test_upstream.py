"""What stock MLIR 22 drops or lowers wrongly, program by program: seen to go wrong there, seen to be right here.

Each test runs mlir-opt 22 on a program and asserts on the fault; when a newer LLVM mends it, the test says so and
what works around it can go. The same program then goes through offload.
"""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from compiling import emit, emit_text, on_host, tool

import offload

GPU_TO_LLVM = "builtin.module(convert-scf-to-cf,gpu-to-llvm,reconcile-unrealized-casts)"

KERNEL = """
gpu.module @m [#nvvm.target] {
  llvm.func @k(%x: i32) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
"""
OURS = "gpu.module @m {\n  gpu.func @k(%x: i32) kernel {\n    gpu.return\n  }\n}\n"
LAUNCH = "gpu.launch_func {} @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%v : i32)"


def stock(program: str, pipeline: str = GPU_TO_LLVM) -> subprocess.CompletedProcess[str]:
    """mlir-opt 22 on a program."""
    return subprocess.run(
        ["mlir-opt-22", f"--pass-pipeline={pipeline}", "-"],
        input=f"module attributes {{gpu.container_module}} {{\n{program}\n}}\n",
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def ours(program: str) -> str:
    return emit_text(program, "host-llvm")


def function(body: str, arguments: str = "%v: i32") -> str:
    return f"func.func @f({arguments}) {{\n%c1 = arith.constant 1 : index\n{body}\nreturn\n}}\n"


LEFT = {
    "gpu.memcpy": ("gpu.memcpy %x, %y : memref<?xf32>, memref<?xf32>", "mgpuMemcpy"),
    "gpu.memset": ("%z = arith.constant 0.0 : f32\ngpu.memset %x, %z : memref<?xf32>, f32", "mgpuMemset32"),
    "gpu.dealloc": ("gpu.dealloc %x : memref<?xf32>", "mgpuMemFree"),
    "gpu.alloc": ("%d = gpu.alloc (%n) : memref<?xf32>\ngpu.dealloc %d : memref<?xf32>", "mgpuMemAlloc"),
    "gpu.memset of i8": (
        "%t0 = gpu.wait async\n%t = gpu.memset async [%t0] %b, %o : memref<?xi8>, i8\ngpu.wait [%t]", "mgpuMemset8",
    ),
    "gpu.memset of f64": (
        "%t0 = gpu.wait async\n%t = gpu.memset async [%t0] %d, %e : memref<?xf64>, f64\ngpu.wait [%t]", "mgpuMemset64",
    ),
    "gpu.memcpy with two dependencies": (
        "%t0 = gpu.wait async\n%t1 = gpu.wait async\n"
        "%t = gpu.memcpy async [%t0, %t1] %x, %y : memref<?xf32>, memref<?xf32>\ngpu.wait [%t]", "mgpuMemcpy",
    ),
    "gpu.memcpy, strided": (
        "%t0 = gpu.wait async\n%t = gpu.memcpy async [%t0] %s, %s : memref<?xf32, strided<[2]>>, "
        "memref<?xf32, strided<[2]>>\ngpu.wait [%t]", "mgpuMemcpyStrided",
    ),
}  # fmt: skip
ARGUMENTS = "%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %b: memref<?xi8>, %o: i8, %d: memref<?xf64>, %e: f64, "
ARGUMENTS += "%s: memref<?xf32, strided<[2]>>"


@pytest.mark.parametrize("name", LEFT)
def test_operations_left_without_an_error(name: str) -> None:
    body, call = LEFT[name]
    arguments = ARGUMENTS.replace("%d:", "%q:") if name == "gpu.alloc" else ARGUMENTS
    program = function(body, arguments)
    upstream = stock(program)
    lowered = upstream.returncode == 0 and not re.search(r"gpu\.(memcpy|memset|alloc|dealloc)", upstream.stdout)
    assert not lowered, "stock MLIR lowers it now"
    assert f"@{call}(" in ours(program)


def test_two_dependencies_of_a_launch() -> None:
    body = "%t0 = gpu.wait async\n%t1 = gpu.wait async\n"
    body += "%t = " + LAUNCH.format("async [%t0, %t1]") + "\ngpu.wait [%t]"
    assert stock(KERNEL + function(body)).returncode != 0
    assert "call void @mgpuStreamWaitStream" in ours(OURS + function(body))


def test_a_stream_through_a_loop_is_no_event() -> None:
    body = f"""
    %t0 = gpu.wait async
    %t = scf.for %i = %c1 to %n step %c1 iter_args(%u = %t0) -> !gpu.async.token {{
      %w = {LAUNCH.format("async [%u]")}
      scf.yield %w : !gpu.async.token
    }}
    gpu.wait [%t]
    """
    program = function(body, "%v: i32, %n: index")
    upstream = stock(KERNEL + program)
    assert upstream.returncode == 0
    assert "@mgpuEventSynchronize" in upstream.stdout, "stock MLIR takes the stream for a stream now"
    assert "mgpuEvent" not in ours(OURS + program)


def test_joined_streams_are_given_back() -> None:
    body = "%t0 = gpu.wait async\n%t1 = gpu.wait async\n%t2 = gpu.wait async [%t0, %t1]\n"
    body += "%t3 = " + LAUNCH.format("async [%t2]") + "\ngpu.wait [%t3]"
    upstream = stock(KERNEL + function(body)).stdout
    assert upstream.count("call @mgpuStreamCreate(") > upstream.count("call @mgpuStreamDestroy("), "mended upstream"
    text = ours(OURS + function(body))
    assert "mgpuStreamCreate" not in text
    assert "@mgpuScopeEnd(" in text


def test_the_stream_that_the_author_names() -> None:
    body = LAUNCH.format("<%s : !llvm.ptr>")
    upstream = stock(KERNEL + function(body, "%v: i32, %s: !llvm.ptr")).stdout
    assert "<%" not in next(line for line in upstream.splitlines() if "gpu.launch_func" in line), "mended upstream"
    text = ours(OURS + function(body, "%v: i32, %s: !llvm.ptr"))
    launch = next(line for line in text.splitlines() if "call void @mgpuKernelLaunch(" in line)
    assert "ptr %1," in launch


BINARY = """
gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_75">, "one">, #gpu.object<#nvvm.target<chip = "sm_90">, "other">]
"""


def translated(program: str) -> str:
    """Stock MLIR's LLVM IR of a program with a gpu.binary."""
    pipeline = (
        "builtin.module(func.func(gpu-async-region),gpu-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,"
        "reconcile-unrealized-casts)"
    )
    lowered = stock(program, pipeline)
    assert lowered.returncode == 0, lowered.stderr
    return tool("mlir-translate", "--mlir-to-llvmir", "-", given=lowered.stdout)


def test_one_image_loaded_at_start_up() -> None:
    text = translated(BINARY + function(LAUNCH.format("")))
    assert '"one"' in text
    assert '"other"' not in text, "stock MLIR embeds every object now"
    assert "llvm.global_ctors" in text
    mine = ours(OURS + function(LAUNCH.format("")))
    assert "global_ctors" not in mine


def test_a_launch_looks_nothing_up_and_makes_no_stream() -> None:
    text = translated(BINARY + function(LAUNCH.format("")))
    for call in ("mgpuModuleGetFunction", "mgpuStreamCreate", "mgpuStreamDestroy"):
        assert f"@{call}(" in text
    mine = ours(OURS + function(LAUNCH.format("")))
    assert "@mgpuKernelLaunch(" in mine
    assert "mgpuModuleGetFunction" not in mine
    assert "mgpuStream" not in mine


def test_launches_in_a_loop_leave_the_stack_alone() -> None:
    body = f"scf.for %i = %c1 to %n step %c1 {{\n{LAUNCH.format('')}\n}}"
    arguments = "%v: i32, %n: index"
    text = translated(BINARY + "\n" + stock_loops(function(body, arguments)))
    in_loop = text.split("define void @f(")[1].split("\n}")[0].split("br ", 1)[1]
    assert "alloca" in in_loop, "stock MLIR keeps the arguments in the entry block now"
    library = on_host(OURS + function(body, arguments))
    library.f(np.int32(1), 1_000_000)  # 16 bytes a launch would be twice the stack


def stock_loops(program: str) -> str:
    lowered = stock(program.replace("@m::@k", "@m::@k") + KERNEL, "builtin.module(convert-scf-to-cf)")
    assert lowered.returncode == 0, lowered.stderr
    start = lowered.stdout.index("  func.func")
    return lowered.stdout[start:].split("\n  }\n")[0] + "\n  }\n"


def test_an_unknown_amd_chip_ends_the_process() -> None:
    kernel = "gpu.module @m {\n  gpu.func @k(%x: memref<?xindex>) kernel {\n    %t = gpu.thread_id x\n"
    kernel += "    memref.store %t, %x[%t] : memref<?xindex>\n    gpu.return\n  }\n}\n"
    attach = "rocdl-attach-target{chip=gfx12345},gpu.module(convert-gpu-to-rocdl)"
    upstream = stock(kernel, f"builtin.module({attach},gpu-module-to-binary{{format=bin}})")
    assert upstream.returncode < 0, "stock MLIR lives now"
    with pytest.raises(offload.TargetError, match="unknown chip 'gfx12345'"):
        offload.compile(OURS, targets=["rocdl:gfx12345"])


def test_a_token_that_an_async_region_yields_is_no_event() -> None:
    body = f"""
    %token, %value = async.execute -> !async.value<!gpu.async.token> {{
      %s = gpu.wait async
      %u = {LAUNCH.format("async [%s]")}
      async.yield %u : !gpu.async.token
    }}
    %t = async.await %value : !async.value<!gpu.async.token>
    gpu.wait [%t]
    """
    upstream = stock(KERNEL + function(body))
    assert upstream.returncode == 0
    recorded = "mgpuEventRecord" in upstream.stdout.split("func @f")[-1]
    assert not recorded, "stock MLIR records an event now"
    assert "call @mgpuEventSynchronize(" in upstream.stdout
    text = ours(OURS + function(body))
    assert "mgpuEvent" not in text
    assert "@mgpuStreamSynchronize(" in text
    on_host(OURS + function(body)).f(np.int32(1))


def test_assertions_in_kernels_for_amd() -> None:
    kernel = 'gpu.module @m {\n  gpu.func @k(%x: i1) kernel {\n    cf.assert %x, "no"\n    gpu.return\n  }\n}\n'
    attach = "rocdl-attach-target{chip=gfx942},gpu.module(convert-scf-to-cf,convert-gpu-to-rocdl)"
    upstream = stock(kernel, f"builtin.module({attach})")
    assert upstream.returncode != 0
    assert "@assert_msg" in upstream.stderr, "stock MLIR lowers it now"
    assert len(emit(kernel, "object", ["rocdl:gfx942"])) == 1


MASKED = """
gpu.module @m {
  gpu.func @k(%x: memref<1x4xi32>, %most: memref<4xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = vector.load %x[%c0, %c0] : memref<1x4xi32>, vector<1x4xi32>
    %m = vector.load %most[%c0] : memref<4xi32>, vector<4xi32>
    %mask = vector.create_mask %c1, %n : vector<1x4xi1>
    %r = vector.mask %mask {
      vector.multi_reduction <maxsi>, %v, %m [0] : vector<1x4xi32> to vector<4xi32>
    } : vector<1x4xi1> -> vector<4xi32>
    vector.store %r, %most[%c0] : memref<4xi32>, vector<4xi32>
    %one = vector.extract %v[0, 3] : i32 from vector<1x4xi32>
    %row = vector.broadcast %one : i32 to vector<1xi32>
    %first = vector.create_mask %n : vector<1xi1>
    %high = arith.constant 1000 : i32
    %s = vector.mask %first {
      vector.multi_reduction <maxsi>, %row, %high [0] : vector<1xi32> to i32
    } : vector<1xi1> -> i32
    memref.store %s, %x[%c0, %c0] : memref<1x4xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("n", [0, 2, 4])
def test_masked_reductions_of_one_element(n: int) -> None:
    upstream = stock(MASKED, "builtin.module(canonicalize)").stdout
    found = re.search(r"(%\w+) = vector.shape_cast %\w+ : vector<1x4xi32>", upstream)
    assert found, "stock MLIR makes something else of it now"
    assert re.search(rf"arith.select %\w+, %\w+, {found[1]} ", upstream), "stock MLIR gives the accumulator now"
    x, most = np.array([[1, 20, 3, 40]], np.int32), np.array([10, 10, 10, 10], np.int32)
    expected = np.where(np.arange(4) < n, np.maximum(x[0], most), most)
    on_host(MASKED).kernels.k[1, 1](x, most, n)
    np.testing.assert_array_equal(most, expected)
    assert x[0, 0] == 1000


SUMS = """vector.contract {
  indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
  iterator_types = ["parallel", "reduction"]
} %x0, %y0, %y0 : vector<2x2xf32>, vector<2xf32> into vector<2xf32>"""
MASKED_AGAIN = f"""
func.func @f(%x: memref<2x2xf32>, %y: memref<2xf32>) {{
  %c0 = arith.constant 0 : index
  %x0 = vector.load %x[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
  %y0 = vector.load %y[%c0] : memref<2xf32>, vector<2xf32>
  %all = {SUMS}
  %mask = vector.constant_mask [2, 1] : vector<2x2xi1>
  %some = vector.mask %mask {{
    {SUMS}
  }} : vector<2x2xi1> -> vector<2xf32>
  %both = arith.subf %all, %some : vector<2xf32>
  vector.store %both, %y[%c0] : memref<2xf32>, vector<2xf32>
  return
}}
"""


def test_what_is_masked_is_not_what_stands_before_it() -> None:
    upstream = stock(MASKED_AGAIN, "builtin.module(cse)").stdout
    assert upstream.count("vector.contract") == 1, "stock MLIR keeps them apart now"
    x, y = np.array([[1, 2], [3, 4]], np.float32), np.array([10, 20], np.float32)
    on_host(MASKED_AGAIN).f(x, y)
    np.testing.assert_array_equal(y, [40, 80])
