/* vendor.h: what the backends of GPU drivers share: a driver's library that is bound at first use, its
 * devices, why there are none, the words of its failures, and the lists of modules' kernels.
 *
 * All functions are safe in any thread unless they say otherwise. */
#ifndef MGPU_INTERNAL_VENDOR_H
#define MGPU_INTERNAL_VENDOR_H

#include "core/backend.h"
#include "core/error.h"

/* A function of the driver's library and where its address goes. */
struct mgpu_symbol {
  const char *name;
  void *place; /* a pointer to a function pointer */
  bool optional;
};

/* ABSENT is asked again whenever somebody counts the devices; HOPELESS is not, in this process. */
enum {
  MGPU_VENDOR_UNKNOWN,
  MGPU_VENDOR_READY,
  MGPU_VENDOR_ABSENT,
  MGPU_VENDOR_HOPELESS,
  MGPU_VENDOR_FORKED,
};

/* Results that no driver has: the process was forked after the driver had been used; the device is of no use
 * to this runtime. */
enum { MGPU_CODE_FORKED = -1, MGPU_CODE_UNUSABLE = -2 };

struct mgpu_vendor_kernel;
struct mgpu_vendor {
  const char *name;             /* of the backend: "cuda" */
  const char *title;            /* in sentences: "CUDA" */
  const char *driver;           /* in sentences: "the CUDA driver" */
  const char *const *libraries; /* the first that has all symbols is taken; ends with NULL */
  const struct mgpu_symbol *symbols;
  size_t symbols_count;
  /* Starts the driver and counts its devices. 0, or the driver's code and which call gave it. */
  int (*start)(int *count, const char **call);
  /* Fills in what is known of a device. Not 0, the driver's code and which call gave it, or
   * MGPU_CODE_UNUSABLE: neither it nor any later one is used. */
  int (*read_device)(int device, mgpuDeviceInfo *info, const char **call);
  /* The driver's own words for one of its codes; may be NULL. */
  const char *(*code_name)(int code);
  const char *(*code_text)(int code);
  /* Called after a failure; NULL where there is nothing to do. */
  void (*after_failure)(void);
  int no_device;           /* the driver's code for there being none */
  int out_of_memory;       /* the driver's code for it */
  int gone;                /* its code once it has shut down, at the end of the process */
  mgpuDeviceInfo *devices; /* room for MGPU_MAX_DEVICES; apart, so that it takes none in the file */
  /* Room for MGPU_MAX_DEVICES: the kernel that was launched last; atomic. */
  const struct mgpu_vendor_kernel **launched;
  const int *late_codes; /* of failures that running work causes, whichever call tells of them; ends with 0 */

  /* From here on the business of vendor/vendor.c; written before `state` leaves UNKNOWN. */
  int state; /* atomic */
  int count;
  /* Why there is no device, the last answer first; atomic. Those before it stay, for who reads them. */
  struct mgpu_vendor_absence {
    const struct mgpu_vendor_absence *before;
    char text[384];
  } *absence;
};

/* The state, after binding and starting the driver if nobody has yet. */
int mgpu_vendor_state(struct mgpu_vendor *vendor);

/* The slots of the same names. Counting asks again where there was no device before. */
int mgpu_vendor_count(struct mgpu_vendor *vendor);
const char *mgpu_vendor_why_absent(const struct mgpu_vendor *vendor);
void mgpu_vendor_after_fork(struct mgpu_vendor *vendor);
bool mgpu_vendor_forked(const struct mgpu_vendor *vendor);

/* Adds the name of the kernel that was launched last on the device, if it is known. */
void mgpu_vendor_last_kernel(const struct mgpu_vendor *vendor, int device, struct mgpu_text *to);

/* The lock of those names; for core/fork.c. Nothing else is locked under it. */
void mgpu_vendor_names_lock(void);
void mgpu_vendor_names_unlock(void);

/* Keeps the error of a call that failed on a device with the driver's code, or with MGPU_CODE_FORKED. `call`
 * is the subject of the sentence. `waited`: the call waits for work, so that any failure may be the work's.
 * Returns the kept code. */
int mgpu_vendor_failed(const struct mgpu_vendor *vendor, int device, int code, const char *call, bool waited);

/* The same for a call that releases something; 0 and no error where there is nothing to release any more: the
 * driver has shut down, or this is the child of a fork and the thing is its parent's. */
int mgpu_vendor_released(const struct mgpu_vendor *vendor, int device, int code, const char *call);

/* The same for a launch. */
int mgpu_vendor_launch_failed(const struct mgpu_vendor *vendor, int device, int code, const char *kernel,
                              const struct mgpu_launch *launch);

/* A kernel as the backend knows it: the first member of its own struct. */
struct mgpu_vendor_kernel {
  struct mgpu_vendor_kernel *next;
  const char *name; /* behind the struct, in one block with it */
};

/* A module as the backend knows it. */
struct mgpu_vendor_module {
  void *handle; /* the driver's */
  void *copy;   /* of the image where the driver needs it for as long as the module; else NULL */
  struct mgpu_vendor_kernel *kernels; /* under mgpu_lock */
};

/* A zeroed struct of `size` bytes with the kernel's name; NULL after mgpu_fail. */
void *mgpu_vendor_kernel_new(size_t size, const char *name);

/* Gives the kernel to the module. Called under mgpu_lock. */
void mgpu_vendor_kernel_keep(struct mgpu_vendor_module *module, struct mgpu_vendor_kernel *kernel);

/* A module without a handle, with a terminated copy of the image, page-aligned, if `copied`; NULL after
 * mgpu_fail. */
struct mgpu_vendor_module *mgpu_vendor_module_new(const void *data, size_t size, bool copied);

/* Frees the module and its kernels; the driver's handle is the caller's business. */
void mgpu_vendor_module_free(struct mgpu_vendor *vendor, struct mgpu_vendor_module *module);

/* Remembers a kernel as the last that was launched on the device, for messages. */
static inline void mgpu_vendor_launched(struct mgpu_vendor *vendor, int device,
                                        const struct mgpu_vendor_kernel *kernel) {
  __atomic_store_n(&vendor->launched[device], kernel, __ATOMIC_RELEASE);
}

#endif
