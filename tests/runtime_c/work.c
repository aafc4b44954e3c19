/* work.c: see work.h. */
#include "work.h"

#include "standins.h"

static void *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "cannot open %s", path);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *data = malloc(*size);
  CHECK(data && fread(data, 1, *size, file) == *size, "cannot read %s", path);
  fclose(file);
  return data;
}

/* What a stand-in's launches do. */
static void run(const char *name, const unsigned grid[3], const unsigned block[3], unsigned smem,
                void **params) {
  CHECK(strcmp(name, "saxpy") == 0 && smem == 0, "%s is launched", name);
  float a = *(float *)params[0], *x = *(float **)params[1], *out = *(float **)params[2];
  uint64_t n = *(uint64_t *)params[3], threads = (uint64_t)grid[0] * block[0];
  for (uint64_t i = 0; i < threads && i < n; ++i)
    out[i] += a * x[i];
}

static void use_standin(struct work *work, const char *library) {
  void (*kernels)(void (*)(const char *, const unsigned *, const unsigned *, unsigned, void **));
  struct standin standin = standin_open(library);
  *(void **)&kernels = dlsym(standin.library, "standin_kernels");
  CHECK(kernels, "%s has no standin_kernels", library);
  kernels(run);
  work->driver = standin.library;
  work->live = standin.live;
}

void work_start(struct work *work, const char *backend, const char *image_path) {
  enum { CUDA_MACHINE = 190, AMD_MACHINE = 224 };
  unsigned char elf[128];
  *work = (struct work){.module = {.name = "m"}};
  if (strcmp(backend, "host") == 0) {
    size_t size;
    void *image = read_file(image_path, &size);
    container_add_image(&work->container, "host", "", "bin", "m", image, size);
    free(image);
  } else if (strcmp(backend, "cuda") == 0) {
    container_add_image(&work->container, "nvvm", "sm_90", "bin", "m", elf, fake_elf(elf, CUDA_MACHINE, "x"));
    use_standin(work, "libcuda.so.1");
  } else {
    container_add_image(&work->container, "rocdl", "gfx942", "bin", "m", elf,
                        fake_elf(elf, AMD_MACHINE, "x"));
    use_standin(work, "libamdhip64.so.6");
  }
  work->module.images_begin = work->container.data;
  work->module.images_end = work->container.data + work->container.size;
  work->saxpy = (mgpuKernelSlot){&work->module, "saxpy", NULL};
  mgpuBackendUse(backend);
  CHECK_CLEAN();
  work->devices = mgpuDeviceCount(backend);
}

void work_check_end(const struct work *work, int own_streams) {
  CHECK_CLEAN();
  CHECK(mgpuCount(MGPU_COUNT_ALLOCATIONS) == 0, "%lld allocations",
        (long long)mgpuCount(MGPU_COUNT_ALLOCATIONS));
  CHECK(mgpuCount(MGPU_COUNT_STREAMS) == own_streams, "%lld streams",
        (long long)mgpuCount(MGPU_COUNT_STREAMS));
  CHECK(mgpuCount(MGPU_COUNT_EVENTS) == 0, "%lld events", (long long)mgpuCount(MGPU_COUNT_EVENTS));
  CHECK(mgpuCount(MGPU_COUNT_MODULES) <= work->devices, "%lld modules",
        (long long)mgpuCount(MGPU_COUNT_MODULES));
  if (!work->live)
    return;
  CHECK(work->live(MEMORY) == 0, "the driver has %d blocks", work->live(MEMORY));
  CHECK(work->live(MODULES) == mgpuCount(MGPU_COUNT_MODULES), "the driver has %d modules",
        work->live(MODULES));
  CHECK(work->live(STREAMS) == own_streams + mgpuCount(MGPU_COUNT_POOLED_STREAMS),
        "the driver has %d streams", work->live(STREAMS));
  CHECK(work->live(EVENTS) == mgpuCount(MGPU_COUNT_POOLED_EVENTS), "the driver has %d events",
        work->live(EVENTS));
}
