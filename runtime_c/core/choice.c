/* choice.c: the table of backends and the choice of the one in use. */
#include "core/backend.h"
#include "core/error.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct mgpu_backend *mgpu_backends[MGPU_BACKENDS] = {
#define MGPU_BACKEND(name) &mgpu_backend_##name,
#include "core/backends.def"
#undef MGPU_BACKEND
};

/* The artifact's own container. Absent (both NULL) in libmgpu.so. */
extern const unsigned char offload_images_begin[] __attribute__((weak, visibility("hidden")));
extern const unsigned char offload_images_end[] __attribute__((weak, visibility("hidden")));

static int active = -1; /* atomic; written under mgpu_lock */

int mgpu_backend_find(const char *name) {
  for (int i = 0; i < MGPU_BACKENDS; ++i)
    if (strcmp(mgpu_backends[i]->name, name) == 0 ||
        (mgpu_backends[i]->also && strcmp(mgpu_backends[i]->also, name) == 0))
      return i;
  return -1;
}

int mgpu_backend_devices(int backend) {
  int count = mgpu_backends[backend]->device_count();
  return count > MGPU_MAX_DEVICES ? MGPU_MAX_DEVICES : count;
}

bool mgpu_backend_forked(int backend) {
  return mgpu_backends[backend]->forked && mgpu_backends[backend]->forked();
}

void mgpu_backend_list(struct mgpu_text *text) {
  for (int i = 0; i < MGPU_BACKENDS; ++i) {
    const struct mgpu_backend *backend = mgpu_backends[i];
    int count = mgpu_backend_devices(i);
    if (count == 0)
      mgpu_text_add(text, "%s%s none (%s)", i ? "; " : "", backend->name, backend->why_absent());
    for (int device = 0; device < count; ++device) {
      mgpuDeviceInfo info;
      if (backend->device_info(device, &info) == 0)
        mgpu_text_add(text, "%s%s:%d %s (%s)", i || device ? "; " : "", backend->name, device, info.chip,
                      info.name);
      else
        mgpu_text_add(text, "%s%s:%d unknown", i || device ? "; " : "", backend->name, device);
    }
  }
}

static bool has_images(void) {
  return &offload_images_begin[0] != &offload_images_end[0]; /* both NULL when absent */
}

/* What images a container has, which may be in it for many modules, and the devices that there are. False
 * after mgpu_fail, for a damaged one. */
static bool add_choices(struct mgpu_text *text, const void *begin, const void *end) {
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem, *separator = " ";
  int more;
  mgpu_text_add(text, " Images:");
  mgpu_image_reader_init(&reader, begin, end);
  while ((more = mgpu_image_next(&reader, &image, &problem)) == 1) {
    char one[160];
    snprintf(one, sizeof one, "%s%s %s %s", separator, image.target, image.arch, image.format);
    if (strstr(text->data, one + strlen(separator)))
      continue;
    mgpu_text_add(text, "%s%s", one,
                  mgpu_image_loadable(&image) ? "" : " (no driver loads this format: build with format=bin)");
    separator = ", ";
  }
  if (more < 0) {
    mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The image container is damaged: %s.", problem);
    return false;
  }
  mgpu_text_add(text, ". Devices: ");
  mgpu_backend_list(text);
  return true;
}

/* Fixes a backend by name; called with the lock held. Returns its id, or -1 after mgpu_fail. */
static int by_name(const char *name, const char *asked_by) {
  int backend = mgpu_backend_find(name);
  if (backend < 0) {
    mgpu_fail(MGPU_ERROR_INVALID,
              "%s asks for the backend \"%s\", which is unknown; known are cuda, hip and host.", asked_by,
              name);
    return -1;
  }
  if (mgpu_backend_devices(backend) == 0) {
    char buffer[1024] = "";
    struct mgpu_text text = {buffer, sizeof buffer, 0};
    if (!has_images() || add_choices(&text, offload_images_begin, offload_images_end))
      mgpu_fail(MGPU_ERROR_NO_DEVICE, "%s asks for the backend \"%s\", which has no device here: %s.%s%s",
                asked_by, name, mgpu_backends[backend]->why_absent(), buffer, *buffer ? "." : "");
    return -1;
  }
  return backend;
}

static bool holds_target(const void *begin, const void *end, const char *target) {
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem;
  mgpu_image_reader_init(&reader, begin, end);
  while (mgpu_image_next(&reader, &image, &problem) == 1)
    if (strcmp(image.target, target) == 0)
      return true;
  return false;
}

/* Called with the lock held. */
static int choose(const void *begin, const void *end, const char *target) {
  const char *named = getenv("OFFLOAD_BACKEND");
  if (named && *named)
    return by_name(named, "The environment variable OFFLOAD_BACKEND");
  if (has_images()) {
    begin = offload_images_begin;
    end = offload_images_end;
    target = NULL;
  }
  bool by_images = begin != NULL && begin != end;
  for (int i = 0; i < MGPU_BACKENDS; ++i) {
    if (mgpu_backend_devices(i) == 0)
      continue;
    if (target ? strcmp(target, mgpu_backends[i]->target) == 0
               : !by_images || holds_target(begin, end, mgpu_backends[i]->target))
      return i;
  }
  char buffer[1024] = "";
  struct mgpu_text text = {buffer, sizeof buffer, 0};
  if (target) {
    mgpu_text_add(&text, " Images: %s. Devices: ", target);
    mgpu_backend_list(&text);
  } else if (!add_choices(&text, begin, end)) {
    return -1;
  }
  mgpu_fail(MGPU_ERROR_NO_IMAGE, "No image is for a device of this machine.%s.%s", buffer,
            target ? "" : " Build for one of these, too: --target host is for the CPU.");
  return -1;
}

/* Before a choice: what is to be done at first use, and an error, whose code it returns, where a setting of
 * the runtime means nothing. */
static int begin_choice(void) {
  mgpu_first_use();
  return mgpu_trace_problem() || mgpu_error_setting_problem() ? mgpu_pending() : 0;
}

int mgpu_backend_active(const void *begin, const void *end, const char *target) {
  int chosen = __atomic_load_n(&active, __ATOMIC_ACQUIRE);
  if (chosen >= 0)
    return chosen;
  if (begin_choice())
    return -1;
  mgpu_lock();
  chosen = active;
  if (chosen < 0) {
    chosen = choose(begin, end, target);
    __atomic_store_n(&active, chosen, __ATOMIC_RELEASE);
  }
  mgpu_unlock();
  return chosen;
}

int32_t mgpuBackendUse(const char *name) {
  if (mgpu_pending())
    return mgpu_pending();
  if (begin_choice())
    return mgpu_pending();
  mgpu_lock();
  int chosen = name ? by_name(name, "mgpuBackendUse") : -1;
  bool fails = name && chosen < 0;
  if (!fails)
    __atomic_store_n(&active, chosen, __ATOMIC_RELEASE);
  mgpu_unlock();
  return fails ? mgpu_pending() : 0;
}

const char *mgpuBackendName(void) {
  if (mgpu_pending())
    return NULL;
  int chosen = mgpu_backend_active(NULL, NULL, NULL);
  return chosen < 0 ? NULL : mgpu_backends[chosen]->name;
}
