/* gpu_library.c: a vendor's sparse library: its first use, its handles, its statuses. */
#include "core/error.h"
#include "core/handle.h"
#include "sparse/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOLED_HANDLES = 16 };

static void tell_call(struct mgpu_text *text, const struct mgpu_sparse_call *call) {
  mgpu_text_add(text, " This was %s of ", call->what);
  mgpu_sparse_tell(text, call->a, call->mode_a);
  mgpu_text_add(text, " and ");
  mgpu_sparse_tell(text, call->b, call->mode_b);
  mgpu_text_add(text, " into ");
  mgpu_sparse_tell(text, call->c, MGPU_AS_IS);
  mgpu_text_add(text, ", computed in %s.", mgpu_sparse_type_name(mgpu_sparse_compute_type(call->compute)));
}

int mgpu_sparse_result(const struct mgpu_sparse_vendor *vendor, int status, const char *name,
                       const struct mgpu_sparse_call *call) {
  static const struct {
    int value;
    const char *name;
  } statuses[] = {
#define SPARSE_STATUS(name, value) {value, #name},
#include "sparse/gpu.def"
  };
  if (status == MGPU_SPARSE_STATUS_SUCCESS)
    return 0;
  const char *called = "an unknown status", *prefix = "", *meaning = NULL;
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i)
    if (statuses[i].value == status) {
      called = statuses[i].name;
      prefix = vendor->status_prefix;
    }
  if (vendor->functions.GetErrorString)
    meaning = vendor->functions.GetErrorString(status);
  int code =
      status == MGPU_SPARSE_STATUS_ALLOC_FAILED || status == MGPU_SPARSE_STATUS_INSUFFICIENT_RESOURCES
          ? MGPU_ERROR_MEMORY
      : status == MGPU_SPARSE_STATUS_NOT_SUPPORTED || status == MGPU_SPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED
          ? MGPU_ERROR_UNSUPPORTED
          : MGPU_ERROR_DRIVER;
  char told[256] = "";
  struct mgpu_text text = {told, sizeof told, 0};
  if (call && status == MGPU_SPARSE_STATUS_NOT_SUPPORTED)
    tell_call(&text, call);
  return mgpu_fail(code, "%s%s failed with %s%s (%d)%s%s.%s", vendor->prefix, name, prefix, called, status,
                   meaning ? ": " : "", meaning ? meaning : "", told);
}

/* Fills the table, NULL where the library has no such function. The first that must be there and is not, or
 * NULL. */
static const char *bind(struct mgpu_sparse_vendor *vendor, void *library) {
  const char *missing = NULL;
  char full[64];
#define SPARSE_OPTIONAL(name, params)                                                                        \
  snprintf(full, sizeof full, "%s%s", vendor->prefix, #name);                                                \
  *(void **)&vendor->functions.name = dlsym(library, full);
#define SPARSE_FUNCTION(name, params)                                                                        \
  SPARSE_OPTIONAL(name, params)                                                                              \
  if (!vendor->functions.name && !missing)                                                                   \
    missing = #name;
#define SPARSE_TEXT(name, params) SPARSE_OPTIONAL(name, params)
#include "sparse/gpu.def"
  return missing;
}

/* Opens the library; called with the lock of first uses held, and the device current. */
static int load(struct mgpu_sparse_vendor *vendor) {
  void *library;
  const char *name;
  int failure = mgpu_library_open(&vendor->library, &library, &name);
  if (failure)
    return failure;
  const char *missing = bind(vendor, library);
  if (missing)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "%s has no %s%s; %s.", name, vendor->prefix, missing,
                     vendor->library.advice);
  void *handle;
  failure = MGPU_SPARSE_CALL(vendor, Create, (&handle));
  if (failure)
    return failure;
  failure = MGPU_SPARSE_CALL(vendor, GetVersion, (handle, &vendor->version));
  if (!failure)
    vendor->row_order = vendor->order(vendor->version);
  int status = vendor->functions.Destroy(handle);
  return failure ? failure : mgpu_sparse_result(vendor, status, "Destroy", NULL);
}

static int first_use(struct mgpu_sparse_vendor *vendor) {
  int failure = 0;
  if (__atomic_load_n(&vendor->ready, __ATOMIC_ACQUIRE))
    return 0;
  mgpu_init_lock();
  if (!vendor->ready)
    failure = load(vendor);
  if (!failure)
    __atomic_store_n(&vendor->ready, 1, __ATOMIC_RELEASE);
  mgpu_init_unlock();
  return failure;
}

/* An idle handle of the device, the one that was used with the stream before if there is one; or NULL. Work
 * that was put on another stream with a handle may still run, and use what the handle has. */
static struct mgpu_sparse_handle *take_idle(struct mgpu_sparse_vendor *vendor,
                                            const struct mgpu_place *place) {
  struct mgpu_sparse_handle **best = NULL;
  mgpu_handles_lock();
  for (struct mgpu_sparse_handle **link = &vendor->idle; *link; link = &(*link)->next)
    if ((*link)->device == place->device &&
        ((*link)->driver == place->driver || (!best && !vendor->has_scratch)))
      best = link;
  struct mgpu_sparse_handle *found = best ? *best : NULL;
  if (found) {
    *best = found->next;
    --vendor->idle_count;
  }
  mgpu_handles_unlock();
  return found;
}

static int make_handle(struct mgpu_sparse_vendor *vendor, int device, struct mgpu_sparse_handle **out) {
  struct mgpu_sparse_handle *made = calloc(1, sizeof *made);
  if (!made)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a handle of %s.", vendor->library.product);
  made->device = device;
  int failure = MGPU_SPARSE_CALL(vendor, Create, (&made->handle));
  if (failure)
    free(made);
  else
    *out = made;
  return failure;
}

/* Destroys the handle of a device that is current. */
static void destroy_handle(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_handle *handle) {
  MGPU_SPARSE_CALL(vendor, Destroy, (handle->handle));
  free(handle);
}

int mgpu_sparse_begin_with(struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse_call *call,
                           struct mgpu_sparse_handle *handle, struct mgpu_sparse_use *use) {
  *use = (struct mgpu_sparse_use){.vendor = vendor, .handle = handle, .device = call->place.device};
  int failure = vendor->enter(use->device, &use->previous);
  if (failure)
    return failure;
  failure = first_use(vendor);
  if (!failure && !handle) {
    use->handle = take_idle(vendor, &call->place);
    if (!use->handle)
      failure = make_handle(vendor, use->device, &use->handle);
  }
  if (!failure) {
    use->handle->driver = call->place.driver;
    failure = MGPU_SPARSE_CALL(vendor, SetStream, (use->handle->handle, call->place.driver));
  }
  if (!failure)
    return 0;
  if (!handle && use->handle)
    destroy_handle(vendor, use->handle);
  vendor->leave(use->device, use->previous);
  return failure;
}

int mgpu_sparse_begin(struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse_call *call,
                      struct mgpu_sparse_use *use) {
  return mgpu_sparse_begin_with(vendor, call, NULL, use);
}

void mgpu_sparse_end(struct mgpu_sparse_use *use, struct mgpu_sparse_handle **keep) {
  use->vendor->leave(use->device, use->previous);
  if (keep)
    *keep = use->handle;
  else
    mgpu_sparse_give(use->vendor, use->handle);
}

/* Destroys a list of handles; those of a device that cannot be entered any more are forgotten. */
static void destroy_list(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_handle *list) {
  for (struct mgpu_sparse_handle *handle = list, *next; handle; handle = next) {
    void *previous;
    next = handle->next;
    int device = handle->device;
    if (vendor->reach(device, &previous)) {
      destroy_handle(vendor, handle);
      vendor->leave(device, previous);
    } else {
      free(handle);
    }
  }
}

/* Takes the handle that has been idle for the longest out of the list. Called with the lock held. */
static struct mgpu_sparse_handle *take_oldest(struct mgpu_sparse_vendor *vendor) {
  struct mgpu_sparse_handle **link = &vendor->idle, *oldest;
  while ((*link)->next)
    link = &(*link)->next;
  oldest = *link;
  *link = NULL;
  --vendor->idle_count;
  return oldest;
}

void mgpu_sparse_give(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_handle *handle) {
  mgpu_handles_lock();
  handle->next = vendor->idle;
  vendor->idle = handle;
  ++vendor->idle_count;
  struct mgpu_sparse_handle *too_many = vendor->idle_count > POOLED_HANDLES ? take_oldest(vendor) : NULL;
  mgpu_handles_unlock();
  destroy_list(vendor, too_many);
}

void mgpu_sparse_trim(struct mgpu_sparse_vendor *vendor) {
  mgpu_handles_lock();
  struct mgpu_sparse_handle *list = vendor->idle;
  vendor->idle = NULL;
  vendor->idle_count = 0;
  mgpu_handles_unlock();
  destroy_list(vendor, list);
}
