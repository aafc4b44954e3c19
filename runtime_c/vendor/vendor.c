/* vendor.c: binds a driver's library at first use, and words its failures. */
#include "vendor/vendor.h"

#include "core/error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
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

/* False and the reason when no library can be used; *keeps where that stays so. A library once loaded stays:
 * drivers do not unload well.
 */
static bool bind_library(const struct mgpu_vendor *vendor, struct mgpu_text *why, bool *keeps) {
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
    mgpu_text_add(why,
                  "%s has no %s; it is too old, and this process keeps it: start another with a newer one",
                  loaded, missing);
    *keeps = true;
    return false;
  }
  for (const char *const *name = vendor->libraries; *name; ++name)
    mgpu_text_add(why, "%s%s", name == vendor->libraries ? "" : name[1] ? ", " : " and ", *name);
  mgpu_text_add(why, " cannot be loaded");
  return false;
}

/* Asks for the devices. Both vendors let a program call their first function again after it has failed. */
static int start(struct mgpu_vendor *vendor, struct mgpu_text *reason) {
  struct mgpu_text why = *reason;
  int found = 0;
  bool keeps = false;
  if (!bind_library(vendor, &why, &keeps))
    return keeps ? MGPU_VENDOR_HOPELESS : MGPU_VENDOR_ABSENT;
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
    if (code != vendor->no_device)
      mgpu_text_add(&why,
                    "; it is asked again the next time, but may need a new process to answer otherwise");
  } else {
    mgpu_text_add(&why, "%s reports no usable device", vendor->driver);
  }
  return MGPU_VENDOR_ABSENT;
}

/* Keeps the reason, if it is another than before. Called with the lock held. */
static void keep_reason(struct mgpu_vendor *vendor, const char *reason) {
  struct mgpu_vendor_absence *before = vendor->absence;
  struct mgpu_vendor_absence *made =
      before && strcmp(before->text, reason) == 0 ? NULL : malloc(sizeof *made);
  if (!made)
    return;
  made->before = before;
  snprintf(made->text, sizeof made->text, "%s", reason);
  __atomic_store_n(&vendor->absence, made, __ATOMIC_RELEASE);
}

/* Asks for the devices if the vendor is in that state. */
static int ask(struct mgpu_vendor *vendor, int state) {
  char reason[sizeof vendor->absence->text] = "";
  mgpu_init_lock();
  if (vendor->state == state) {
    int found = start(vendor, &(struct mgpu_text){reason, sizeof reason, 0});
    if (found != MGPU_VENDOR_READY)
      keep_reason(vendor, reason);
    __atomic_store_n(&vendor->state, found, __ATOMIC_RELEASE);
  }
  state = vendor->state;
  mgpu_init_unlock();
  return state;
}

int mgpu_vendor_state(struct mgpu_vendor *vendor) {
  int now = __atomic_load_n(&vendor->state, __ATOMIC_ACQUIRE);
  return now == MGPU_VENDOR_UNKNOWN ? ask(vendor, now) : now;
}

int mgpu_vendor_count(struct mgpu_vendor *vendor) {
  int now = __atomic_load_n(&vendor->state, __ATOMIC_ACQUIRE);
  if (now == MGPU_VENDOR_UNKNOWN || now == MGPU_VENDOR_ABSENT)
    now = ask(vendor, now);
  return now == MGPU_VENDOR_ABSENT || now == MGPU_VENDOR_HOPELESS ? 0 : vendor->count;
}

const char *mgpu_vendor_why_absent(const struct mgpu_vendor *vendor) {
  const struct mgpu_vendor_absence *absence = __atomic_load_n(&vendor->absence, __ATOMIC_ACQUIRE);
  return absence ? absence->text : "out of memory";
}

void mgpu_vendor_after_fork(struct mgpu_vendor *vendor) {
  if (vendor->state == MGPU_VENDOR_READY)
    vendor->state = MGPU_VENDOR_FORKED;
}

bool mgpu_vendor_forked(const struct mgpu_vendor *vendor) {
  return __atomic_load_n(&vendor->state, __ATOMIC_ACQUIRE) == MGPU_VENDOR_FORKED;
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
  char buffer[800] = "";
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
