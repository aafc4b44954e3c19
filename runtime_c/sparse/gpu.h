/* gpu.h: sparse operations on a GPU, through the vendor's library. What is the same for all vendors is
 * in gpu_sparse*.c; a vendor is a struct mgpu_sparse_vendor, in its own file.
 *
 * The library is loaded at the first operation, its handles are made when they are needed and kept for the
 * next operation. Everything here may be called by any thread. Functions return 0, or an error code after
 * mgpu_fail. */
#ifndef MGPU_INTERNAL_GPU_SPARSE_H
#define MGPU_INTERNAL_GPU_SPARSE_H

#include "sparse/sparse.h"

/* The library's functions. Its handles and descriptors are pointers, its enums ints: checks/ asserts it. */
#define HANDLE void *
#define STREAM void *
#define VECTOR void *
#define MATRIX void *
#define SPARSE void *
#define CONST_VECTOR const void *
#define CONST_MATRIX const void *
#define CONST_SPARSE const void *
#define SPGEMM void *
#define STATUS int
#define TYPE int
#define INDEX int
#define BASE int
#define ORDER int
#define MODE int
#define SPMV_WAY int
#define SPMM_WAY int
#define SDDMM_WAY int
#define SPGEMM_WAY int

struct mgpu_sparse_functions {
#define SPARSE_FUNCTION(name, params) STATUS(*name) params;
#define SPARSE_OPTIONAL(name, params) STATUS(*name) params;
#define SPARSE_TEXT(name, params) const char *(*name)params;
#include "sparse/gpu.def"
};

#undef HANDLE
#undef STREAM
#undef VECTOR
#undef MATRIX
#undef SPARSE
#undef CONST_VECTOR
#undef CONST_MATRIX
#undef CONST_SPARSE
#undef SPGEMM
#undef STATUS
#undef TYPE
#undef INDEX
#undef BASE
#undef ORDER
#undef MODE
#undef SPMV_WAY
#undef SPMM_WAY
#undef SDDMM_WAY
#undef SPGEMM_WAY

enum {
#define SPARSE_CONSTANT(name, value) MGPU_SPARSE_##name = value,
#define SPARSE_STATUS(name, value) MGPU_SPARSE_##name = value,
#include "sparse/gpu.def"
};

enum { MGPU_SPARSE_ORDER_UNKNOWN = -1 };

/* How a vendor's library is found: by the loader, then in folders of an installation, then beside the Python
 * packages that this process has loaded, where pip puts it. */
struct mgpu_library {
  const char *product;         /* for messages */
  const char *const *names;    /* of the file, the best first; NULL ends each of these lists */
  const char *variable;        /* of the environment: where the vendor's software is installed */
  const char *const *roots;    /* where it is when the variable is not set */
  const char *const *packages; /* folders below that of all packages */
  const char *advice;          /* the end of the message that it is not there */
};

/* vendor/library.c: an open library and the name that it was found by. 0, or an error code after mgpu_fail.
 */
int mgpu_library_open(const struct mgpu_library *library, void **opened, const char **name);

/* A library's own handle, which one operation at a time uses. */
struct mgpu_sparse_handle {
  struct mgpu_sparse_handle *next;
  int device;
  void *driver; /* the stream that it was used with last */
  void *handle;
};

struct mgpu_sparse_vendor {
  int backend;
  const char *prefix; /* of the functions' names */
  const char *status_prefix;
  struct mgpu_library library;
  /* Makes the device current for this thread; *previous is for leave. */
  int (*enter)(int device, void **previous);
  void (*leave)(int device, void *previous);
  /* Enters without keeping an error: false where there is nothing to release any more. */
  bool (*reach)(int device, void **previous);
  /* What the library calls row by row in its version; MGPU_SPARSE_ORDER_UNKNOWN where that is not known: what
   * needs it is then refused. */
  int (*order)(int version);
  /* Whether the library has values of that type and computes in it. NULL: it says so itself. */
  int (*check_type)(int version, int type);
  /* Whether a handle has memory that work uses when it runs. The work of another stream then needs another.
   */
  bool has_scratch;
  /* From here on the vendor's state; the rest is written before `ready` becomes 1. */
  int ready; /* atomic */
  struct mgpu_sparse_functions functions;
  int version, row_order;
  struct mgpu_sparse_handle *idle; /* under the lock of core/handle.h */
  unsigned idle_count;
};

/* sparse/gpu_library.c */

/* An operation in progress: the device is current, the handle works on the call's stream. */
struct mgpu_sparse_use {
  struct mgpu_sparse_vendor *vendor;
  struct mgpu_sparse_handle *handle;
  int device;
  void *previous;
};

/* Fails without anything to end. */
int mgpu_sparse_begin(struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse_call *call,
                      struct mgpu_sparse_use *use);
/* The same with a handle that its caller has; mgpu_sparse_end leaves it to the caller. */
int mgpu_sparse_begin_with(struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse_call *call,
                           struct mgpu_sparse_handle *handle, struct mgpu_sparse_use *use);
/* Keeps the handle, for a later operation if `keep` is not NULL, which becomes it. */
void mgpu_sparse_end(struct mgpu_sparse_use *use, struct mgpu_sparse_handle **keep);
/* For handles that were kept. */
void mgpu_sparse_give(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_handle *handle);
/* Destroys the handles that nobody uses. */
void mgpu_sparse_trim(struct mgpu_sparse_vendor *vendor);

/* Turns a status of the library into an error; `name` is the function's, without the vendor's prefix. `call`,
 * if not NULL, is told of when it is what the library does not have. */
int mgpu_sparse_result(const struct mgpu_sparse_vendor *vendor, int status, const char *name,
                       const struct mgpu_sparse_call *call);

#define MGPU_SPARSE_CALL(vendor, name, arguments)                                                            \
  mgpu_sparse_result(vendor, (vendor)->functions.name arguments, #name, NULL)
/* The same for a function that works on the operands of a call. */
#define MGPU_SPARSE_CALL_ON(vendor, call, name, arguments)                                                   \
  mgpu_sparse_result(vendor, (vendor)->functions.name arguments, #name, call)

/* sparse/gpu_descriptors.c: the library's descriptors of the operands of a call. */
struct mgpu_sparse_descriptors {
  const struct mgpu_sparse_call *call;
  void *of[3]; /* A, B, C */
};

/* `split`: room for the indices of an operand that has them in pairs, or NULL when only sizes are asked for.
 */
int mgpu_sparse_describe(struct mgpu_sparse_use *use, const struct mgpu_sparse_call *call, void *split,
                         struct mgpu_sparse_descriptors *descriptors);
void mgpu_sparse_undescribe(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_descriptors *descriptors);
/* Bytes that pairs of indices need to be split. */
size_t mgpu_sparse_split_size(const struct mgpu_sparse_call *call);

/* sparse/gpu.c, sparse/gpu_spgemm.c: slots of struct mgpu_sparse_ops, for the library of the call's backend.
 */
int mgpu_gpu_product_size(enum mgpu_product product, const struct mgpu_sparse_call *call, size_t *size);
int mgpu_gpu_product(enum mgpu_product product, const struct mgpu_sparse_call *call, void *workspace);
int mgpu_gpu_spgemm_estimate(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                             void *buffer);
int mgpu_gpu_spgemm_compute(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                            void *buffer, int64_t *entries);
int mgpu_gpu_spgemm_copy(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm);
void mgpu_gpu_spgemm_release(struct mgpu_sparse *spgemm);

static inline struct mgpu_sparse_vendor *mgpu_sparse_vendor_of(int backend) {
  return mgpu_backends[backend]->sparse->vendor;
}

/* What the library computes in for the ABI's compute type: 16-bit types in 32 bits. */
int mgpu_sparse_compute_type(int compute);
/* The mode of an operand for the library: numbers without an imaginary part are conjugated as they are, and
 * not every function takes the mode that says so. */
int mgpu_sparse_mode(int mode, const struct mgpu_sparse *operand);
/* 1 and 0 in that type. */
const void *mgpu_sparse_one(int compute_type);
const void *mgpu_sparse_zero(void);

#endif
