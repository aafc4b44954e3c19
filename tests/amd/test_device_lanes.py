"""How lanes read each other's values on chips whose waves differ, seen in the code: there is no such chip here."""

from __future__ import annotations

import re

import pytest
from compiling import emit_text
from device_values import mapped, module

SHUFFLE = module(mapped("k", "i32", """
  %five = arith.constant 5 : i32
  %width = arith.constant 32 : i32
  %r, %valid = gpu.shuffle xor %v, %five, %width : i32"""))  # fmt: skip
REDUCE = module(mapped("k", "i32", "%r = gpu.subgroup_reduce add %v uniform : (i32) -> i32"))
BLOCK = module(
    mapped(
        "k", "i32", "%r = gpu.all_reduce add %v uniform {} : (i32) -> i32",
        attributes="attributes {known_block_size = array<i32: 256, 1, 1>}",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "reads"),
    [
        ("rocdl:gfx942", {"ds.bpermute": 1}),
        ("rocdl:gfx1100", {"ds.bpermute": 1}),
        ("rocdl:gfx1100,wave64", {"wave.shuffle": 1}),  # ds_bpermute stays within a half of 32 lanes
        ("rocdl:gfx1030", {"ds.bpermute": 1}),
        ("rocdl:gfx1030,wave64", {"readlane": 64}),
        ("nvvm:sm_75", {"shfl.sync.bfly": 1}),
    ],
)
def test_one_word_is_read_in_the_way_of_the_chip(target: str, reads: dict[str, int]) -> None:
    text = emit_text(SHUFFLE, "llvm", [target])
    found = re.findall(r"call .*@llvm\.(?:amdgcn|nvvm)\.([\w.]+?)(?:\.i32)?\(", text)
    kinds = {"ds.bpermute", "wave.shuffle", "readlane", "shfl.sync.idx", "shfl.sync.bfly"}
    assert {name: found.count(name) for name in kinds & set(found)} == reads


@pytest.mark.parametrize(
    ("mode", "offset", "width", "read"),
    [
        ("up", 1, 32, "up"), ("down", 31, 32, "down"), ("xor", 16, 32, "bfly"), ("idx", 3, 32, "idx"),
        ("up", 32, 32, "idx"), ("up", -1, 32, "idx"), ("xor", 1, 16, "idx"),
    ],
)  # fmt: skip
def test_shuffles_by_a_known_offset_are_one_instruction(mode: str, offset: int, width: int, read: str) -> None:
    """Where all lanes take part and there may be such a lane: the instructions look at five bits of an offset."""
    shuffle = module(mapped("k", "i32", f"""
      %by = arith.constant {offset} : i32
      %width = arith.constant {width} : i32
      %r, %valid = gpu.shuffle {mode} %v, %by, %width : i32"""))  # fmt: skip
    assert re.findall(r"shfl\.sync\.(\w+)\.b32", emit_text(shuffle, "isa", ["nvvm:sm_75"])) == [read]


@pytest.mark.parametrize(
    ("target", "steps"),
    [("rocdl:gfx942", 6), ("rocdl:gfx1100", 5), ("rocdl:gfx90a", 6), ("nvvm:sm_75", 5)],
)
def test_a_reduction_covers_the_waves_of_the_chip(target: str, steps: int) -> None:
    """A read per step, and one that tells all lanes, which LLVM makes a readlane where it can; with whole subgroups all
    lanes have the result anyway."""
    read = re.compile(r"call i32 @llvm\.(amdgcn\.ds\.bpermute|nvvm\.shfl\.sync\.(?:idx|bfly)\.i32)\(")
    assert len(read.findall(emit_text(REDUCE, "llvm", [target]))) == steps + target.startswith("nvvm")
    assert len(read.findall(emit_text(BLOCK, "llvm", [target]))) == steps


@pytest.mark.parametrize("form", ["uniform", "uniform cluster(size = 32)", "", "cluster(size = 32)"])
def test_chips_with_an_instruction_for_it_reduce_by_that(form: str) -> None:
    """Where all lanes of all subgroups come to it: as it is marked, or as the program and the block's size show."""
    attributes = "attributes {known_block_size = array<i32: 256, 1, 1>}"
    reduce = module(mapped("k", "i32", f"%r = gpu.subgroup_reduce add %v {form} : (i32) -> i32", attributes=attributes))
    assert "redux.sync.add" in emit_text(reduce, "isa", ["nvvm:sm_80"])
    assert "redux" not in emit_text(reduce, "isa", ["nvvm:sm_75"])


def test_a_subgroup_that_may_lack_lanes_reduces_step_by_step() -> None:
    """Unless it is said that they all come."""
    assert "redux.sync.add" in emit_text(REDUCE, "isa", ["nvvm:sm_80"])
    assert "redux" not in emit_text(REDUCE.replace(" uniform", ""), "isa", ["nvvm:sm_80"])


@pytest.mark.parametrize(("target", "waves"), [("rocdl:gfx942", 16), ("rocdl:gfx1100", 32), ("nvvm:sm_90", 32)])
def test_a_block_has_room_for_all_its_subgroups(target: str, waves: int) -> None:
    text = emit_text(BLOCK, "lowered", [target])
    assert f"@__offload_parts_i32() {{addr_space = 3 : i32}} : !llvm.array<{waves} x i32>" in text


@pytest.mark.parametrize("chip", ["gfx942", "gfx1250"])
def test_a_block_is_a_cluster_where_launches_have_none(chip: str) -> None:
    """HIP launches blocks without clusters, on chips that have these too."""
    ids = "\n".join(
        f"%{name} = gpu.{name} x\n%as_{name} = arith.index_cast %{name} : index to i32"
        for name in ("cluster_id", "cluster_dim", "cluster_block_id", "cluster_dim_blocks")
    )
    sums = """
      %s = arith.addi %as_cluster_id, %as_cluster_dim : i32
      %u = arith.addi %as_cluster_block_id, %as_cluster_dim_blocks : i32
      %r = arith.addi %s, %u : i32"""
    text = emit_text(module(mapped("k", "i32", ids + sums)), "llvm", [f"rocdl:{chip}"])
    assert "llvm.amdgcn.workgroup.id.x" in text
    assert "amdgcn.cluster" not in text
