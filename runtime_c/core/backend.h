/* backend.h: what a backend is: one table of functions per vendor, filled by one .c file each.
 *
 * Rules for every slot: any thread may call it; `device` is in [0, device_count()); int slots return 0, or an
 * error code after mgpu_fail. Slots never look at the kept error themselves; their callers do. Driver handles
 * (modules, kernels, streams, events) are opaque to everyone else; whoever creates one destroys it once. */
#ifndef MGPU_INTERNAL_BACKEND_H
#define MGPU_INTERNAL_BACKEND_H

#include "core/image.h"
#include "mgpu.h"

/* Handle tables are arrays of this length; further devices are not seen. */
enum { MGPU_MAX_DEVICES = 64 };

struct mgpu_launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3]; /* all 0: no cluster */
  uint32_t smem;       /* bytes of dynamic workgroup memory */
  bool cooperative;    /* all blocks run at the same time, or it is an error */
  void *stream;
  bool own_stream; /* it is the calling thread's own, which no other thread uses */
  void **params;   /* one pointer per kernel parameter */
};

struct mgpu_sparse_ops;
/* A tiled tensor as a descriptor tells of it; dimensions from the innermost one, codes are the ABI's. */
struct mgpu_tensor {
  int32_t type;
  uint32_t rank;
  void *address;
  const uint64_t *sizes;
  const uint64_t *distances; /* bytes, of all dimensions but the innermost */
  const uint32_t *box;
  const uint32_t *steps;
  int32_t interleave, swizzle, l2_promotion, oob_fill;
};

struct mgpu_descriptor {
  _Alignas(64) uint64_t words[16];
};

struct mgpu_backend {
  const char *name;   /* "cuda" */
  const char *also;   /* what users may call it besides, or NULL */
  const char *target; /* the images it runs: "nvvm" */
  bool is_cpu;        /* its memory is the program's own */

  /* How many devices; 0 with no driver. Never fails, keeps no error. May look again where there were none. */
  int (*device_count)(void);
  /* Why there are none, as a part of a sentence; static or process-lifetime memory. */
  const char *(*why_absent)(void);
  int (*device_info)(int device, mgpuDeviceInfo *info);
  /* 0 when the image cannot run there, else higher is better. Never fails. */
  int (*image_rank)(int device, const struct mgpu_image *image);

  /* `data` need not outlive the call. jit_level: 0-4 for text images, -1 for the driver's default. */
  int (*module_load)(int device, const void *data, size_t size, int jit_level, void **module);
  int (*module_unload)(int device, void *module);
  /* The kernel belongs to the module and dies with it. */
  int (*kernel_get)(int device, void *module, const char *name, void **kernel);
  int (*launch)(int device, void *kernel, const struct mgpu_launch *launch);
  /* How many blocks of *threads threads, with `smem` bytes of dynamic workgroup memory each, a multiprocessor
   * runs at a time; 0 for a block that it cannot run. Where *threads is 0, it is first set to the size that
   * keeps the device busiest. */
  int (*occupancy)(int device, void *kernel, uint32_t smem, int *threads, int *blocks);

  /* Streams are in order and do not wait for the driver's default stream. */
  int (*stream_create)(int device, void **stream);
  int (*stream_destroy)(int device, void *stream);
  int (*stream_sync)(int device, void *stream);
  int (*stream_wait_event)(int device, void *stream, void *event);
  /* The device of a stream that another library has made; `current` where the driver cannot tell. *stream
   * becomes what the driver calls it: 1 is a default stream's handle here, whatever it is there. */
  int (*stream_device)(void **stream, int current);
  /* Whether work on the stream is put into a graph, and does not run. NULL where there are no graphs. */
  int (*stream_capturing)(int device, void *stream, bool *capturing);
  int (*event_create)(int device, void **event);
  int (*event_destroy)(int device, void *event);
  int (*event_record)(int device, void *event, void *stream);
  int (*event_sync)(int device, void *event);

  /* size > 0. `shared`: the CPU may use it too. Memory is usable by work on `stream`. */
  int (*alloc)(int device, size_t size, void *stream, bool shared, void **memory);
  int (*free)(int device, void *memory, void *stream, bool shared);
  int (*memcpy)(int device, void *to, const void *from, size_t size, void *stream);
  /* `height` rows of `width` bytes; the pitches, from row to row, are at least `width` and below 2 GiB. Where
   * is_cpu, the source's may also be less than `width`, 0 and negative. */
  int (*memcpy2d)(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch, size_t width,
                  size_t height, void *stream);
  /* width is 1, 2, 4 or 8 bytes; count elements. */
  int (*memset)(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream);
  int (*host_register)(int device, void *memory, size_t size);
  int (*host_unregister)(int device, void *memory);
  /* What kernels know registered memory by. NULL: the address that the host has. */
  int (*device_address)(int device, void *memory, void **address);

  /* Sparse operations: sparse/sparse.h. */
  const struct mgpu_sparse_ops *sparse;
  /* Fills in a tensor descriptor. NULL where there is no such thing. */
  int (*describe)(int device, const struct mgpu_tensor *tensor, struct mgpu_descriptor *out);

  /* Marks: points of a stream's work whose times a trace asks for. They keep no error; false: the driver does
   * not answer. NULL where work runs when it is put on a stream. */
  bool (*mark_create)(int device, void **mark);
  bool (*mark_put)(int device, void *mark, void *stream); /* none where the stream's work goes into a graph */
  /* Puts the mark on an idle stream and waits for it; *at is the host's CLOCK_MONOTONIC at that, in ns. */
  bool (*mark_now)(int device, void *mark, uint64_t *at);
  /* The ns from one mark to another; false as long as either has not been passed. */
  bool (*mark_elapsed)(int device, void *from, void *to, double *ns);

  /* Runs in the child after a fork: marks what did not survive. Touches no driver. */
  void (*after_fork)(void);
  /* Whether all that there is belongs to the parent: this is the child of a fork, and the driver does not
   * work. Touches no driver. NULL: never. */
  bool (*forked)(void);
};

enum mgpu_backend_id {
#define MGPU_BACKEND(name) MGPU_BACKEND_##name,
#include "core/backends.def"
#undef MGPU_BACKEND
  MGPU_BACKENDS
};

#define MGPU_BACKEND(name) extern const struct mgpu_backend mgpu_backend_##name;
#include "core/backends.def"
#undef MGPU_BACKEND

/* All of them, indexed by mgpu_backend_id, in the order in which they are tried. Not to be read before
 * mgpu_first_use, which may replace them. */
extern const struct mgpu_backend *mgpu_backends[MGPU_BACKENDS];

/* The id of the backend that users call so, or -1. */
int mgpu_backend_find(const char *name);

/* min(device_count(), MGPU_MAX_DEVICES). */
int mgpu_backend_devices(int backend);

/* Its slot of that name; false where there is none. */
bool mgpu_backend_forked(int backend);

/* The id of the backend in use, chosen now if none was; -1 and a kept error when there is none. When the
 * artifact has no container of its own, [begin, end) is the container to choose by (NULL: by devices alone)
 * and `target`, if not NULL, the one target that counts. */
int mgpu_backend_active(const void *begin, const void *end, const char *target);

/* A line that lists every backend's devices, for messages. */
struct mgpu_text;
void mgpu_backend_list(struct mgpu_text *text);

/* The lock of all slow paths: choice, module loading, handle slabs. Held during driver loads; fork waits for
 * it. */
void mgpu_lock(void);
void mgpu_unlock(void);

/* The lock of a backend's own first use (loading the driver, starting the pool); taken after mgpu_lock, if
 * both. */
void mgpu_init_lock(void);
void mgpu_init_unlock(void);

/* Makes sure that fork is safe from now on, and that what runs is traced if it is to be. Called before any
 * backend is. */
void mgpu_first_use(void);

#endif
