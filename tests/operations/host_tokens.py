"""Host code: tokens through everything that carries values."""

from __future__ import annotations

import numpy as np

from offload.runtime import Library
from operations import Case
from operations.host_launch import MODULE, _function, _plus_one

ADD = """gpu.launch_func async [{}] @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1)
      args(%d : memref<?xi32>, {} : i32)"""
TOKEN = "!gpu.async.token"


def add(token: str, value: str = "%one") -> str:
    return ADD.format(token, value)


IF = f"""  %even = arith.remui %n, %c2 : index
  %is = arith.cmpi eq, %even, %c0 : index
  %t = scf.if %is -> {TOKEN} {{
    %u = {add("%a")}
    scf.yield %u : {TOKEN}
  }} else {{
    scf.yield %b : {TOKEN}
  }}
  gpu.wait [%t]
"""

FOR = f"""  %zero = arith.constant 0 : i32
  %c5 = arith.constant 5 : index
  %t, %o = scf.for %i = %c0 to %c5 step %c1 iter_args(%u = %a, %v = %b) -> ({TOKEN}, {TOKEN}) {{
    %w = {add("%v", "%zero")}
    %s = gpu.wait async [%u, %w]
    scf.yield %w, %s : {TOKEN}, {TOKEN}
  }}
  %e = {add("%t, %o")}
  gpu.wait [%e]
"""

WHILE = f"""  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i32
  %k, %t = scf.while (%i = %c0, %u = %a) : (index, {TOKEN}) -> (index, {TOKEN}) {{
    %more = arith.cmpi ult, %i, %c3 : index
    scf.condition(%more) %i, %u : index, {TOKEN}
  }} do {{
  ^bb0(%i: index, %u: {TOKEN}):
    %j = arith.addi %i, %c1 : index
    %w = {add("%u", "%zero")}
    scf.yield %j, %w : index, {TOKEN}
  }}
  %e = {add("%t")}
  gpu.wait [%e]
"""

SWITCH = f"""  %which = arith.remui %n, %c2 : index
  %t = scf.index_switch %which -> {TOKEN}
  case 0 {{
    %u = {add("%a")}
    scf.yield %u : {TOKEN}
  }}
  default {{
    %u = gpu.wait async [%a, %b]
    scf.yield %u : {TOKEN}
  }}
  gpu.wait [%t]
"""

SELECT = f"""  %even = arith.remui %n, %c2 : index
  %is = arith.cmpi eq, %even, %c0 : index
  %s = arith.select %is, %a, %b : {TOKEN}
  %t = {add("%s")}
  gpu.wait [%t]
"""

BLOCKS = f"""  %even = arith.remui %n, %c2 : index
  %is = arith.cmpi eq, %even, %c0 : index
  cf.cond_br %is, ^left(%a : {TOKEN}), ^right(%b, %c : {TOKEN}, {TOKEN})
^left(%l: {TOKEN}):
  %t = {add("%l")}
  cf.br ^end(%t : {TOKEN})
^right(%r: {TOKEN}, %s: {TOKEN}):
  %u = gpu.wait async [%r, %s]
  cf.br ^end(%u : {TOKEN})
^end(%e: {TOKEN}):
  gpu.wait [%e]
"""

CALLS = f"""
func.func private @added(%d: memref<?xi32>, %half: index, %t: {TOKEN}) -> ({TOKEN}, {TOKEN}) {{
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : i32
  %u = {add("%t")}
  %v = gpu.wait async [%t]
  return %u, %v : {TOKEN}, {TOKEN}
}}
"""

CALLED = f"""  %t, %u = func.call @added(%d, %half, %a) : (memref<?xi32>, index, {TOKEN}) -> ({TOKEN}, {TOKEN})
  gpu.wait [%u, %t]
"""

MIXED = f"""  %zero = arith.constant 0 : i32
  %t = {add("%a", "%zero")}
  gpu.wait [%t]
  gpu.launch_func @m::@add blocks in (%c2, %c1, %c1) threads in (%half, %c1, %c1) args(%d : memref<?xi32>, %one : i32)
  %u = {add("%b", "%zero")}
  %v = gpu.wait async [%u]
  gpu.wait [%v]
"""

RETURN = f"""
{MODULE}
func.func @f(%x: memref<?xi32>) {{
  %t = func.call @start(%x) : (memref<?xi32>) -> {TOKEN}
  gpu.wait [%t]
  return
}}
func.func private @start(%x: memref<?xi32>) -> {TOKEN} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] (%n) : memref<?xi32>
  %t2 = gpu.memcpy async [%t1] %d, %x : memref<?xi32>, memref<?xi32>
  %t3 = gpu.launch_func async [%t2] @m::@add blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%d : memref<?xi32>, %one : i32)
  %t4 = gpu.memcpy async [%t3] %x, %d : memref<?xi32>, memref<?xi32>
  %t5 = gpu.dealloc async [%t4] %d : memref<?xi32>
  return %t5 : {TOKEN}
}}
"""


def _even(library: Library) -> None:
    _plus_one(library)
    x = np.arange(3, dtype=np.int32)  # odd: the other way, where nothing is added
    library.f(x)
    np.testing.assert_array_equal(x, np.arange(3))


def _half(library: Library) -> None:
    for n in (2, 64):
        x = np.arange(n, dtype=np.int32)
        library.f(x)
        np.testing.assert_array_equal(x, np.arange(n) + 1)


CASES = [
    Case("!gpu.async.token", "result of scf.if", _function(IF), _even),
    Case("!gpu.async.token", "two of them round scf.for", _function(FOR), _half),
    Case("!gpu.async.token", "round scf.while", _function(WHILE), _half),
    Case("!gpu.async.token", "result of scf.index_switch", _function(SWITCH), _even),
    Case("!gpu.async.token", "arith.select", _function(SELECT), _half),
    Case("!gpu.async.token", "arguments of blocks (cf.br, cf.cond_br)", _function(BLOCKS), _even),
    Case("!gpu.async.token", "argument and results of a function", _function(CALLED, MODULE + CALLS), _half),
    Case("!gpu.async.token", "result of a function that made it", RETURN, _plus_one),
    Case("!gpu.async.token", "beside operations without", _function(MIXED), _half),
]
