/* vendor.c: binds a driver's library at first use, and words its failures. */
#include "vendor/vendor.h"

#include "core/error.h"

#include <dlfcn.h>
#include <string.h>

/* The name of the first symbol that must be there and is not, or NULL. */
static const char *bind_symbols(const struct mgpu_vendor *vendor, void *library) {
  const char *missing = NULL;
  for (size_t i = 0; i < vendor->symbols_count; ++i) {
    const struct mgpu_symbol *symbol = &vendor->symbols[i];
    void *address = dlsym(library, symbol->name);
    memcpy(symbol->place, &address, sizeof address);
    if (!address && !symbol->optional && !missing)
      missing = symbol->name;
  }
  return missing;
}

/* False and the reason when no library can be used. A library once loaded stays: drivers do not unload well.
 */
static bool bind_library(const struct mgpu_vendor *vendor, struct mgpu_text *why) {
  const char *missing = NULL, *loaded = NULL;
  for (const char *const *name = vendor->libraries; *name; ++name) {
    void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    loaded = *name;
    missing = bind_symbols(vendor, library);
    if (!missing)
      return true;
  }
  if (loaded) {
    mgpu_text_add(why, "%s has no %s; it is too old", loaded, missing);
    return false;
  }
  for (const char *const *name = vendor->libraries; *name; ++name)
    mgpu_text_add(why, "%s%s", name == vendor->libraries ? "" : name[1] ? ", " : " and ", *name);
  mgpu_text_add(why, " cannot be loaded");
  return false;
}

static int start(struct mgpu_vendor *vendor) {
  struct mgpu_text why = {vendor->absence, sizeof vendor->absence, 0};
  int found = 0;
  if (!bind_library(vendor, &why))
    return MGPU_VENDOR_ABSENT;
  const char *call = "";
  int code = vendor->start(&found, &call);
  while (!code && vendor->count < found && vendor->count < MGPU_MAX_DEVICES) {
    code = vendor->read_device(vendor->count, &vendor->devices[vendor->count], &call);
    if (!code)
      strcpy(vendor->devices[vendor->count++].backend, vendor->name);
  }
  if (code && vendor->after_failure)
    vendor->after_failure();
  if (vendor->count)
    return MGPU_VENDOR_READY;
  if (code && code != MGPU_CODE_UNUSABLE) {
    const char *name = vendor->code_name(code);
    mgpu_text_add(&why, "%s answers %s (%d) to %s", vendor->driver, name ? name : "an unknown code", code,
                  call);
  } else {
    mgpu_text_add(&why, "%s reports no usable device", vendor->driver);
  }
  return MGPU_VENDOR_ABSENT;
}

int mgpu_vendor_state(struct mgpu_vendor *vendor) {
  int now = __atomic_load_n(&vendor->state, __ATOMIC_ACQUIRE);
  if (now != MGPU_VENDOR_UNKNOWN)
    return now;
  mgpu_init_lock();
  if (vendor->state == MGPU_VENDOR_UNKNOWN)
    __atomic_store_n(&vendor->state, start(vendor), __ATOMIC_RELEASE);
  now = vendor->state;
  mgpu_init_unlock();
  return now;
}

int mgpu_vendor_count(struct mgpu_vendor *vendor) {
  return mgpu_vendor_state(vendor) == MGPU_VENDOR_ABSENT ? 0 : vendor->count;
}

void mgpu_vendor_after_fork(struct mgpu_vendor *vendor) {
  if (vendor->state == MGPU_VENDOR_READY)
    vendor->state = MGPU_VENDOR_FORKED;
}

static bool is_late(const struct mgpu_vendor *vendor, int code) {
  const int *late = vendor->late_codes;
  while (*late && *late != code)
    ++late;
  return *late != 0;
}

int mgpu_vendor_failed(const struct mgpu_vendor *vendor, int device, int code, const char *call,
                       bool waited) {
  if (code == MGPU_CODE_FORKED)
    return mgpu_fail(
        MGPU_ERROR_DRIVER,
        "This process was forked after %s had been used; %s does not work in the child. Start it "
        "with spawn, or fork before the first use.",
        vendor->title, vendor->title);
  const char *name = vendor->code_name(code), *text = vendor->code_text(code);
  if (vendor->after_failure)
    vendor->after_failure();
  char buffer[400] = "";
  struct mgpu_text late = {buffer, sizeof buffer, 0};
  if (is_late(vendor, code) || waited) {
    mgpu_text_add(&late, " Work that was put on the device earlier %s it",
                  is_late(vendor, code) ? "caused" : "may have caused");
    mgpu_vendor_last_kernel(vendor, device, &late);
    mgpu_text_add(&late,
                  is_late(vendor, code) ? "; the driver may refuse all further work of this process." : ".");
  }
  return mgpu_fail(code == vendor->out_of_memory ? MGPU_ERROR_MEMORY : MGPU_ERROR_DRIVER,
                   "%s on %s:%d failed with %s (%d): %s.%s", call, vendor->name, device,
                   name ? name : "an unknown code", code, text ? text : "no description", buffer);
}

int mgpu_vendor_released(const struct mgpu_vendor *vendor, int device, int code, const char *call) {
  bool nothing_left = code == 0 || code == vendor->gone || code == MGPU_CODE_FORKED;
  return nothing_left ? 0 : mgpu_vendor_failed(vendor, device, code, call, false);
}

int mgpu_vendor_launch_failed(const struct mgpu_vendor *vendor, int device, int code, const char *kernel,
                              const struct mgpu_launch *launch) {
  char buffer[400];
  struct mgpu_text call = {buffer, sizeof buffer, 0};
  mgpu_text_add(&call, "The launch of the kernel \"%.128s\" with grid (%u, %u, %u), block (%u, %u, %u)",
                kernel, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                launch->block[2]);
  if (launch->cluster[0])
    mgpu_text_add(&call, ", cluster (%u, %u, %u)", launch->cluster[0], launch->cluster[1],
                  launch->cluster[2]);
  mgpu_text_add(&call, " and %u bytes of dynamic workgroup memory", launch->smem);
  return mgpu_vendor_failed(vendor, device, code, buffer, false);
}
