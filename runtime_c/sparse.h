/* sparse.h: sparse and dense operands as the runtime knows them, and what a backend does with them.
 *
 * Every handle of the ABI stands for one struct mgpu_sparse, found by its address in a table: no foreign
 * memory is read, and a handle that was destroyed or never made is an error. The table is safe in any thread;
 * whoever destroys an operand while another thread computes with it has made a mistake that is not looked
 * for. */
#ifndef MGPU_INTERNAL_SPARSE_H
#define MGPU_INTERNAL_SPARSE_H

#include "backend.h"

/* cudaDataType_t, as the compiler writes it. */
enum mgpu_type {
  MGPU_F32 = 0,
  MGPU_F64 = 1,
  MGPU_F16 = 2,
  MGPU_I8 = 3,
  MGPU_C32 = 4,
  MGPU_C64 = 5,
  MGPU_C16 = 6,
  MGPU_I32 = 10,
  MGPU_BF16 = 14,
  MGPU_CBF16 = 15,
};

/* cusparseIndexType_t. */
enum mgpu_index_type { MGPU_INDEX_U16 = 1, MGPU_INDEX_I32 = 2, MGPU_INDEX_I64 = 3 };

/* cusparseOperation_t: what happens to an operand before it is used. */
enum mgpu_mode { MGPU_AS_IS = 0, MGPU_TRANSPOSE = 1, MGPU_CONJUGATE_TRANSPOSE = 2 };

enum mgpu_sparse_kind { MGPU_DENSE_VECTOR, MGPU_DENSE_MATRIX, MGPU_SPARSE_MATRIX, MGPU_SPGEMM };

enum mgpu_sparse_format { MGPU_COO, MGPU_COO_AOS, MGPU_CSR, MGPU_CSC, MGPU_BSR, MGPU_2TO4 };

struct mgpu_sparse {
  struct mgpu_sparse *next; /* of the table */
  const void *handle;       /* the address that the ABI knows it by: its own, or the caller's buffer */
  enum mgpu_sparse_kind kind;
  enum mgpu_sparse_format format; /* of a sparse matrix */
  int backend;
  int64_t rows, cols;             /* in elements; a vector has one column */
  int64_t stored;                 /* entries that the arrays hold; blocks for BSR */
  int64_t block_rows, block_cols; /* 1 but for BSR */
  int position_type, index_type, type;
  /* The caller's memory. COO: row and column indices; AoS: pairs in `indices`; CSR, BSR: row positions and
   * column indices; CSC: column positions and row indices; values of a block, of 2:4 and of dense operands
   * row by row. */
  void *positions, *indices, *values;
  /* 2:4: what mgpuCuSparseLtSpMMBufferSize was told. */
  bool planned;
  int mode_a, mode_b, compute;
  /* The result of an SpGEMM: entries that are computed and not copied yet, or -1. */
  int64_t pending;
  /* An SpGEMM: the backend's own, freed by its release slot. */
  void *state;
};

/* C = op(A) op(B) + C. SpMV is SpMM with vectors. */
struct mgpu_sparse_call {
  int mode_a, mode_b; /* enum mgpu_mode */
  int compute;        /* enum mgpu_type: what sums are kept in; 16-bit ones are kept in 32 bits */
  struct mgpu_sparse *a, *b, *c;
};

/* What a backend computes. Operands are checked and belong to the backend; the stream they come on is idle.
 * Each returns 0, or an error code after mgpu_fail. */
struct mgpu_sparse_ops {
  size_t workspace; /* bytes that every operation asks its caller to allocate; at least 1 */
  /* A sparse. Plain formats only. */
  int (*spmm)(const struct mgpu_sparse_call *call);
  /* C sparse: only its entries are computed. */
  int (*sddmm)(const struct mgpu_sparse_call *call);
  /* All sparse, C in CSR: computes into spgemm->state and tells the number of entries. */
  int (*spgemm_compute)(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, int64_t *entries);
  int (*spgemm_copy)(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm);
  /* A is 2:4. prune keeps the two largest of each four values along the summed dimension, in place. */
  int (*prune)(const struct mgpu_sparse_call *call);
  int (*spmm_2to4)(const struct mgpu_sparse_call *call);
  /* Frees spgemm->state. */
  void (*release)(struct mgpu_sparse *spgemm);
};

/* sparse_table.c: the operands that exist. */

/* A copy of *operand in the table, owned by it. `handle` is the caller's buffer, whose former operand, if
 * any, is forgotten, or NULL: the copy's own address. NULL after mgpu_fail. */
struct mgpu_sparse *mgpu_sparse_add(const struct mgpu_sparse *operand, void *handle);
/* NULL when there is none. */
struct mgpu_sparse *mgpu_sparse_find(const void *handle);
/* Takes it out of the table; the caller frees it. NULL when there is none. */
struct mgpu_sparse *mgpu_sparse_take(const void *handle);

/* sparse_check.c: what can be said about operands without reading their memory. Each returns 0, or an error
 * code after mgpu_fail; `what` names the operation or the operand in messages. */

int mgpu_sparse_check_type(const char *what, int type);
int mgpu_sparse_check_index_type(const char *what, int type);
/* Not negative, and their product with 16 bytes per element is a size. */
int mgpu_sparse_check_sizes(const char *what, int64_t rows, int64_t cols);
/* Modes, value and compute types and shapes of C = op(A) op(B) + C. */
int mgpu_sparse_check_call(const char *what, const struct mgpu_sparse_call *call);

/* sparse_handles.c: the operations of the stream's backend and its id; NULL after mgpu_fail, or when an error
 * is kept already. */
const struct mgpu_sparse_ops *mgpu_sparse_backend(void *stream, int *backend);

/* host_sparse.c */
extern const struct mgpu_sparse_ops mgpu_host_sparse;

#endif
