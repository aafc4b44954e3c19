"""Programs with sparse operations for a format, types, modes and a style, and their runs against dense NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from offload.runtime import Library

STYLES = {
    "sync": "",
    "async": "async ",
    "async, after one": "async [%last] ",
    "async, after several": "async [%first, %last, %other] ",
    "waits for several": "[%first, %last] ",
}
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
INDICES: dict[str, Any] = {"index": np.int64, "i64": np.int64, "i32": np.int32, "i16": np.int16}
MODES = {"NON_TRANSPOSE": lambda x: x, "TRANSPOSE": lambda x: x.T, "CONJUGATE_TRANSPOSE": lambda x: x.conj().T}
M, K, N = 6, 8, 4
WIDE = 32  # of 2:4 matrices: vendors multiply whole tiles


class Body:
    """Writes operations of a function in one style, with a token each where the style has one."""

    def __init__(self, style: str) -> None:
        self.form = STYLES[style]
        self.tokens = 0
        self.lines: list[str] = []
        if "[" in self.form:
            self.lines += [f"%{name} = gpu.wait async" for name in ("first", "t0", "other")]

    def add(self, op: str, rest: str, *results: str) -> None:
        names = list(results)
        form = self.form.replace("%last", f"%t{self.tokens}")
        if form.startswith("async"):
            self.tokens += 1
            names.append(f"%t{self.tokens}")
        self.lines.append(f"{', '.join(names)}{' = ' if names else ''}gpu.{op} {form}{rest}")
        if form == "async ":
            self.lines.append(f"gpu.wait [{names[-1]}]")

    def alloc(self, name: str, size: str, element: str = "i8") -> None:
        self.lines.append(f"{name} = gpu.alloc ({size}) : memref<?x{element}>")

    def free(self, *names: str, element: str = "i8") -> None:
        self.lines += [f"gpu.dealloc {name} : memref<?x{element}>" for name in names]

    def function(self, name: str, arguments: str, results: str = "", returned: str = "") -> str:
        end = [f"gpu.wait [%t{self.tokens}]"] if self.tokens and self.form != "async " else []
        text = "\n  ".join(["%c0 = arith.constant 0 : index", *self.lines, *end, f"return {returned}"])
        return f"func.func @{name}({arguments}) {results} {{\n  {text}\n}}\n"


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Small whole numbers: every type computes with them exactly."""
    random = np.random.default_rng(seed)
    made = random.integers(-3, 4, shape).astype(np.float64)
    if np.issubdtype(dtype, np.complexfloating):
        return (made + 1j * random.integers(-3, 4, shape)).astype(dtype)
    return made.astype(dtype)


def sparse(rows: int, cols: int, dtype: Any, seed: int) -> Any:
    dense = numbers((rows, cols), dtype, seed)
    dense[np.random.default_rng(seed + 100).random((rows, cols)) < 0.6] = 0
    return dense


FORMATS = {
    "coo": ("%p: memref<?x{i}>, %q: memref<?x{i}>", "%rows, %cols, %n, %p, %q, %v : memref<?x{i}>, memref<?x{i}>"),
    "coo_aos": ("%p: memref<?x{i}>, %q: memref<?x{i}>", "%rows, %cols, %n, %p, %v : memref<?x{i}>"),
    "csr": ("%p: memref<?x{i}>, %q: memref<?x{i}>", "%rows, %cols, %n, %p, %q, %v : memref<?x{i}>, memref<?x{i}>"),
    "csc": ("%p: memref<?x{i}>, %q: memref<?x{i}>", "%rows, %cols, %n, %p, %q, %v : memref<?x{i}>, memref<?x{i}>"),
    "bsr": (
        "%p: memref<?x{i}>, %q: memref<?x{i}>",
        "%rows, %cols, %n, %c2, %c2, %p, %q, %v : memref<?x{i}>, memref<?x{i}>",
    ),
}


def coordinates(dense: Any, format: str) -> tuple[Any, Any]:
    """Rows and columns of what a format stores of a matrix, in its order."""
    if format == "bsr":
        rows, cols = dense.shape
        blocks = dense.reshape(rows // 2, 2, cols // 2, 2).astype(bool).any(axis=(1, 3))
        corners = 2 * np.argwhere(blocks)
        at = (corners[:, None, :] + [[0, 0], [0, 1], [1, 0], [1, 1]]).reshape(-1, 2)
    else:
        at = np.argwhere(dense != 0)
        at = at[np.lexsort((at[:, 0], at[:, 1]))] if format == "csc" else at
    return at[:, 0], at[:, 1]


def stored(dense: Any, format: str, index: Any = np.int64) -> tuple[Any, ...]:
    """rows, cols, number, the two arrays of indices and the values of a matrix in a format."""
    (rows, cols), (row, col) = dense.shape, coordinates(dense, format)
    values = np.ascontiguousarray(dense[row, col])
    if format == "bsr":
        rows, cols, row, col = rows // 2, cols // 2, row[::4] // 2, col[::4] // 2
    count, p, q = len(row), row, col
    if format == "coo_aos":
        p, q = np.stack([row, col], axis=1).reshape(-1), np.zeros(0)
    elif format == "csc":
        p, q = np.searchsorted(col, np.arange(cols + 1)), row
    elif format != "coo":
        p = np.searchsorted(row, np.arange(rows + 1))
    return rows, cols, count, np.ascontiguousarray(p, index), np.ascontiguousarray(q, index), values


def matrix(body: Body, format: str, index: str, element: str) -> str:
    """Makes %m; returns the arguments that it needs."""
    arguments, rest = (text.format(i=index) for text in FORMATS[format])
    if format == "bsr":
        body.lines.append("%c2 = arith.constant 2 : index")
    body.add(f"create_{format}", f"{rest}, memref<?x{element}>", "%m")
    return f"%rows: index, %cols: index, %n: index, {arguments}, %v: memref<?x{element}>"


def call(library: Library, name: str, *arguments: Any) -> Any:
    """Calls a function with NumPy arrays, wherever its kernels run; what it writes is in the arrays afterwards."""
    function = library.functions[name]
    if library.backend == "host":
        return function(*arguments)
    there = [library.device.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    result = function(*there)
    for here, array in zip(arguments, there, strict=True):
        if isinstance(here, np.ndarray):
            here[...] = array.numpy()
    return result


def spmv(style: str = "sync", format: str = "csr", index: str = "index", a: str = "f32", y: str = "", ctp: str = "",
         mode: str = "NON_TRANSPOSE", name: str = "spmv") -> str:  # fmt: skip
    y = y or a
    body = Body(style)
    arguments = matrix(body, format, index, a)
    body.lines += ["%nx = memref.dim %x, %c0 : memref<?x" + a + ">", "%ny = memref.dim %y, %c0 : memref<?x" + y + ">"]
    body.add("create_dn_tensor", f"%x, %nx : index into memref<?x{a}>", "%dx")
    body.add("create_dn_tensor", f"%y, %ny : index into memref<?x{y}>", "%dy")
    body.add("spmv_buffer_size", f"%m{{{mode}}}, %dx, %dy into {ctp or y}", "%size")
    body.alloc("%buffer", "%size")
    body.add("spmv", f"%m{{{mode}}}, %dx, %dy, %buffer : memref<?xi8> into {ctp or y}")
    body.add("destroy_sp_mat", "%m")
    body.add("destroy_dn_tensor", "%dx")
    body.add("destroy_dn_tensor", "%dy")
    source = body.function(name, f"{arguments}, %x: memref<?x{a}>, %y: memref<?x{y}>")
    return source.replace("  return", "  gpu.dealloc %buffer : memref<?xi8>\n  return")


def run_spmv(format: str = "csr", index: str = "index", a: str = "f32", y: str = "", mode: str = "NON_TRANSPOSE",
             name: str = "spmv") -> Callable[[Library], None]:  # fmt: skip
    def run(library: Library) -> None:
        dense = sparse(M, K, DTYPES[a], 1)
        turned = MODES[mode](dense)
        x, result = numbers((turned.shape[1],), DTYPES[a], 2), numbers((turned.shape[0],), DTYPES[y or a], 3)
        wide = np.result_type(DTYPES[y or a], np.float64 if DTYPES[y or a] != np.int32 else np.int64)
        expected = turned.astype(wide) @ x.astype(wide) + result.astype(wide)
        call(library, name, *stored(dense, format, INDICES[index]), x, result)
        np.testing.assert_array_equal(result.astype(wide), expected)

    return run


DENSE = "%{0}: memref<?x?x{1}>"


def dense(body: Body, name: str, element: str) -> None:
    """Makes %d<name> of %<name>, a matrix."""
    type = f"memref<?x?x{element}>"
    body.lines += [f"%dim_{name}{i} = memref.dim %{name}, %d{i} : {type}" for i in (0, 1)]
    body.add("create_dn_tensor", f"%{name}, %dim_{name}0, %dim_{name}1 : index, index into {type}", f"%d{name}")


ONE_AND_ZERO = ["%d0 = arith.constant 0 : index", "%d1 = arith.constant 1 : index"]


def spmm(style: str = "sync", format: str = "csr", index: str = "index", a: str = "f32",
         modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"), name: str = "spmm") -> str:  # fmt: skip
    body = Body(style)
    body.lines += ONE_AND_ZERO
    arguments = matrix(body, format, index, a)
    dense(body, "b", a)
    dense(body, "c", a)
    operands = f"%m{{{modes[0]}}}, %db{{{modes[1]}}}, %dc"
    body.add("spmm_buffer_size", f"{operands} : index into {a}", "%size")
    body.alloc("%buffer", "%size")
    body.add("spmm", f"{operands}, %buffer : memref<?xi8> into {a}")
    body.add("destroy_sp_mat", "%m")
    return body.function(name, f"{arguments}, {DENSE.format('b', a)}, {DENSE.format('c', a)}")


def run_spmm(format: str = "csr", a: str = "f32", modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"),
             name: str = "spmm") -> Callable[[Library], None]:  # fmt: skip
    def run(library: Library) -> None:
        left = sparse(M, K, DTYPES[a], 4)
        turned = MODES[modes[0]](left)
        depth = turned.shape[1]
        right = numbers((depth, N) if modes[1] == "NON_TRANSPOSE" else (N, depth), DTYPES[a], 5)
        result = numbers((turned.shape[0], N), DTYPES[a], 6)
        expected = turned @ MODES[modes[1]](right) + result
        call(library, name, *stored(left, format), right, result)
        np.testing.assert_array_equal(result, expected)

    return run


def sddmm(style: str = "sync", format: str = "csr", a: str = "f32",
          modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"), name: str = "sddmm") -> str:  # fmt: skip
    body = Body(style)
    body.lines += ONE_AND_ZERO
    arguments = matrix(body, format, "index", a)
    dense(body, "a", a)
    dense(body, "b", a)
    operands = f"%da{{{modes[0]}}}, %db{{{modes[1]}}}, %m"
    body.add("sddmm_buffer_size", f"{operands} into {a}", "%size")
    body.alloc("%buffer", "%size")
    body.add("sddmm", f"{operands}, %buffer : memref<?xi8> into {a}")
    body.add("destroy_sp_mat", "%m")
    return body.function(name, f"{arguments}, {DENSE.format('a', a)}, {DENSE.format('b', a)}")


def run_sddmm(format: str = "csr", a: str = "f32", modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"),
              name: str = "sddmm") -> Callable[[Library], None]:  # fmt: skip
    def run(library: Library) -> None:
        result = sparse(M, K, DTYPES[a], 7)
        left = numbers((M, N) if modes[0] == "NON_TRANSPOSE" else (N, M), DTYPES[a], 8)
        right = numbers((N, K) if modes[1] == "NON_TRANSPOSE" else (K, N), DTYPES[a], 9)
        arrays = stored(result, format)
        expected = result + MODES[modes[0]](left) @ MODES[modes[1]](right)
        call(library, name, *arrays, left, right)
        np.testing.assert_array_equal(arrays[-1], expected[coordinates(result, format)])

    return run


def spgemm(style: str = "sync", a: str = "f32", index: str = "index", formats: tuple[str, str] = ("csr", "csr"),
           modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"), name: str = "spgemm") -> str:  # fmt: skip
    """The whole protocol. Returns what is asked of the result, and fills arrays of the caller's with it."""
    body = Body(style)
    indices, values = f"memref<?x{index}>", f"memref<?x{a}>"
    arguments = []
    for operand, format in zip("ab", formats, strict=True):
        _, rest = FORMATS[format]
        rest = re.sub(r"%(?!c2)(\w+)", rf"%{operand}\1", rest.format(i=index))
        body.add(f"create_{format}", f"{rest}, {values}", f"%{operand}")
        arguments.append(
            f"%{operand}rows: index, %{operand}cols: index, %{operand}n: index, %{operand}p: {indices}, "
            f"%{operand}q: {indices}, %{operand}v: {values}"
        )
    body.add("create_csr", f"%rows, %cols, %n, %cp, %cq, %cv : {indices}, {indices}, {values}", "%c")
    body.add("spgemm_create_descr", "", "%s")
    operands = f"%a{{{modes[0]}}}, %b{{{modes[1]}}}, %c, %s"
    work = "spgemm_work_estimation_or_compute"
    body.alloc("%none", "%c0")
    for kind, size in (("WORK_ESTIMATION", "size1"), ("COMPUTE", "size2")):
        body.add(work, f"{{{kind}}} {operands}, %c0, %none : {a} into memref<?xi8>", f"%{size}")
        body.alloc(f"%of_{size}", f"%{size}")
        body.add(work, f"{{{kind}}} {operands}, %{size}, %of_{size} : {a} into memref<?xi8>", f"%{size}_again")
    body.add("spmat_get_size", "%c", "%m", "%k", "%nnz")
    body.add("set_csr_pointers", f"%c, %cp, %nq, %nv : {indices}, {indices}, {values}")
    body.add("spgemm_copy", f"{operands} : {a}")
    body.add("spgemm_destroy_descr", "%s")
    for handle in "abc":
        body.add("destroy_sp_mat", f"%{handle}")
    arguments.append(
        f"%rows: index, %cols: index, %n: index, %cp: {indices}, %cq: {indices}, %cv: {values}, "
        f"%nq: {indices}, %nv: {values}"
    )
    return body.function(name, ", ".join(arguments), "-> (index, index, index)", "%m, %k, %nnz : index, index, index")


def run_spgemm(a: str = "f32", index: str = "index", formats: tuple[str, str] = ("csr", "csr"),
               modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"), name: str = "spgemm",
               empty: bool = True) -> Callable[[Library], None]:  # fmt: skip
    def run(library: Library) -> None:
        left = sparse(*((M, K) if modes[0] == "NON_TRANSPOSE" else (K, M)), DTYPES[a], 10)
        right = sparse(*((K, N) if modes[1] == "NON_TRANSPOSE" else (N, K)), DTYPES[a], 11)
        before = np.zeros((M, N), DTYPES[a]) if empty else sparse(M, N, DTYPES[a], 12)
        expected = MODES[modes[0]](left) @ MODES[modes[1]](right) + before
        rows, cols, n, cp, cq, cv = stored(before, "csr", INDICES[index])
        nq, nv = np.full(M * N, -1, INDICES[index]), np.zeros(M * N, DTYPES[a])
        operands = [
            *stored(left, formats[0], INDICES[index]), *stored(right, formats[1], INDICES[index]),
            rows, cols, n, cp, cq, cv, nq, nv,
        ]  # fmt: skip
        m, k, nnz = call(library, name, *operands)
        assert (m, k, nnz) == (M, N, cp[M])
        result = np.zeros_like(expected)
        for i in range(M):
            line = nq[cp[i] : cp[i + 1]]
            assert (np.diff(line) > 0).all()
            result[i, line] = nv[cp[i] : cp[i + 1]]
        np.testing.assert_array_equal(result, expected)
        assert (nq[nnz:] == -1).all()

    return run


def two_to_four(style: str = "sync", a: str = "f16", prune: str = "PRUNE_AND_CHECK", ctp: str = "f16", c: str = "",
                modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"), name: str = "spmm24") -> str:  # fmt: skip
    body = Body(style)
    body.lines += ONE_AND_ZERO
    body.lines += [f"%dim_a{i} = memref.dim %a, %d{i} : memref<?x?x{a}>" for i in (0, 1)]
    body.add("create_2to4_spmat", f"{{{prune}}} %dim_a0, %dim_a1, %a : memref<?x?x{a}>", "%m")
    dense(body, "b", a)
    dense(body, "c", c or a)
    operands = f"%m{{{modes[0]}}}, %db{{{modes[1]}}}, %dc"
    body.add("spmm_buffer_size", f"{operands} : index, index, index into {ctp}", "%s1", "%s2", "%s3")
    for i in "123":
        body.alloc(f"%buffer{i}", f"%s{i}")
    buffers = "memref<?xi8>, memref<?xi8>, memref<?xi8>"
    body.add("spmm", f"{operands}, %buffer1, %buffer2, %buffer3 : {buffers} into {ctp}")
    for handle in ("destroy_sp_mat %m", "destroy_dn_tensor %db", "destroy_dn_tensor %dc"):
        body.add(*handle.split())
    return body.function(name, f"{DENSE.format('a', a)}, {DENSE.format('b', a)}, {DENSE.format('c', c or a)}")


def pruned(matrix: Any) -> Any:
    """The two largest of each four values of a row."""
    groups = matrix.reshape(-1, 4).copy()
    order = np.argsort(-np.abs(groups.astype(np.float64)), axis=1, kind="stable")
    np.put_along_axis(groups, order[:, 2:], 0, axis=1)
    return groups.reshape(matrix.shape)


def run_two_to_four(a: str = "f16", prune: bool = True, c: str = "",
                    modes: tuple[str, str] = ("NON_TRANSPOSE", "NON_TRANSPOSE"),
                    name: str = "spmm24") -> Callable[[Library], None]:  # fmt: skip
    def run(library: Library) -> None:
        turn = MODES["TRANSPOSE" if modes[0] != "NON_TRANSPOSE" else modes[0]]
        full = numbers((WIDE, WIDE), DTYPES[a], 13)
        kept = pruned(full)
        left = np.ascontiguousarray(turn(full if prune else kept))
        right = numbers((WIDE, WIDE), DTYPES[a], 14)
        result = numbers((WIDE, WIDE), DTYPES[c or a], 15)
        wide = np.int64 if a == "i8" else np.float64
        expected = kept.astype(wide) @ MODES[modes[1]](right).astype(wide) + result.astype(wide)
        call(library, name, left, right, result)
        np.testing.assert_array_equal(turn(left), kept)
        np.testing.assert_array_equal(result.astype(wide), expected)

    return run
