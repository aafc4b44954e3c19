/* sparse.h: sparse and dense operands as the runtime knows them, and what a backend does with them.
 *
 * Every handle of the ABI stands for one struct mgpu_sparse, found by its address in a table: no foreign
 * memory is read, and a handle that was destroyed or never made is an error. The table is safe in any thread;
 * whoever destroys an operand while another thread computes with it has made a mistake that is not looked
 * for. */
#ifndef MGPU_INTERNAL_SPARSE_H
#define MGPU_INTERNAL_SPARSE_H

#include "abi/stream.h"
#include "core/backend.h"

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
  uint64_t guard;                 /* the number of the guard under which it was made (abi/guard.h), or 0 */
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
  /* An SpGEMM, a planned 2:4 matrix: the backend's own, freed by its release slot. */
  void *state;
};

enum mgpu_product { MGPU_SPMV, MGPU_SPMM, MGPU_SDDMM };

/* What is asked of a 2:4 matrix before it is multiplied: that it stays, that of each four values along the
 * summed dimension the two largest stay, in place, and that this is looked at afterwards. */
enum mgpu_prune { MGPU_PRUNE_NONE, MGPU_PRUNE, MGPU_PRUNE_AND_CHECK };

/* C = op(A) op(B) + C. SpMV is SpMM with vectors. */
struct mgpu_sparse_call {
  const char *what;   /* for messages */
  int mode_a, mode_b; /* enum mgpu_mode */
  int compute;        /* enum mgpu_type: what sums are kept in; 16-bit ones are kept in 32 bits */
  struct mgpu_sparse *a, *b, *c;
  struct mgpu_place place;
};

/* What a backend computes. Operands are checked and belong to the backend. Work goes on the stream, after
 * what is there, and may be done later; sizes are known when a slot returns. Each returns 0, or an error code
 * after mgpu_fail. */
struct mgpu_sparse_vendor;
struct mgpu_sparse_ops {
  struct mgpu_sparse_vendor *vendor; /* whose library computes (sparse/gpu.h); NULL: none */
  /* SpMV, SpMM: A sparse, in a plain format. SDDMM: C sparse, only its entries are computed. `size` is what
   * the product needs as its workspace, in bytes, at least 1. */
  int (*product_size)(enum mgpu_product product, const struct mgpu_sparse_call *call, size_t *size);
  int (*product)(enum mgpu_product product, const struct mgpu_sparse_call *call, void *workspace);
  /* All sparse, C in CSR. Without a buffer each of the two tells the size that it needs, with one of *size
   * bytes it works; the buffers live until the result is copied. Compute makes spgemm->state and tells the
   * number of entries. */
  int (*spgemm_estimate)(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                         void *buffer);
  int (*spgemm_compute)(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                        void *buffer, int64_t *entries);
  int (*spgemm_copy)(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm);
  /* A is 2:4. The plan tells the sizes of the product's three buffers: workspace, A in short, and the
   * workspace of making it short. */
  int (*plan_2to4)(const struct mgpu_sparse_call *call, enum mgpu_prune prune, int64_t sizes[3]);
  int (*product_2to4)(const struct mgpu_sparse_call *call, void *const buffers[3]);
  /* Frees operand->state. */
  void (*release)(struct mgpu_sparse *operand);
  /* Gives back what is kept for later operations. NULL: nothing is. */
  void (*trim)(void);
};

/* sparse/table.c: the operands that exist. */

/* A copy of *operand in the table, owned by it. `handle` is the caller's buffer, which no operand of the
 * table has, or NULL: the copy's own address. NULL after mgpu_fail. */
struct mgpu_sparse *mgpu_sparse_add(const struct mgpu_sparse *operand, void *handle);
/* NULL when there is none. */
struct mgpu_sparse *mgpu_sparse_find(const void *handle);
/* Takes it out of the table; the caller frees it. NULL when there is none. */
struct mgpu_sparse *mgpu_sparse_take(const void *handle);

/* Takes one that was made under that guard out of the table, likewise. */
struct mgpu_sparse *mgpu_sparse_take_under(uint64_t guard);
/* How many there are. */
size_t mgpu_sparse_count(void);

/* sparse/check.c: what can be said about operands without reading their memory. Each returns 0, or an error
 * code after mgpu_fail; `what` names the operation or the operand in messages. */

int mgpu_sparse_check_type(const char *what, int type);
int mgpu_sparse_check_index_type(const char *what, int type);
/* Not negative, and positions of so many rows or columns have a size in bytes. What is stored is checked
 * apart. */
int mgpu_sparse_check_shape(const char *what, int64_t rows, int64_t cols);
/* And all elements, of 16 bytes each, have one: of what is not sparse. */
int mgpu_sparse_check_dense(const char *what, int64_t rows, int64_t cols);
/* Modes, value and compute types and shapes of C = op(A) op(B) + C. */
int mgpu_sparse_check_call(const struct mgpu_sparse_call *call);
/* The caller's buffer is large enough. */
int mgpu_sparse_check_buffer(const char *what, size_t size, size_t needed);
/* "bf16"; the type must be a known one. */
const char *mgpu_sparse_type_name(int type);
/* "CSR of f32 with 64-bit indices, transposed" */
struct mgpu_text;
void mgpu_sparse_tell(struct mgpu_text *text, const struct mgpu_sparse *operand, int mode);
/* In bytes, likewise. */
size_t mgpu_sparse_type_size(int type);
bool mgpu_sparse_is_complex(int type);

/* sparse/handles.c: where work on the stream goes, and the operations of its backend; NULL after mgpu_fail,
 * or when an error is kept already. */
const struct mgpu_sparse_ops *mgpu_sparse_backend(void *stream, struct mgpu_place *place);

/* Destroys what was made under that guard. */
void mgpu_sparse_destroy_under(uint64_t guard);

/* host/sparse.c, cuda/sparse.c, hip/sparse.c */
extern const struct mgpu_sparse_ops mgpu_host_sparse, mgpu_cuda_sparse, mgpu_hip_sparse;

#endif
