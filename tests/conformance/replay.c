/* replay.c: launches kernels of a host image as a file says and writes down what their arrays hold then.
 *
 * Usage: replay IMAGE LAUNCHES RESULTS. For runs under sanitizers, where Python cannot be the program: the
 * runtime is linked in, and the image may be instrumented, too. replay.py writes the file and reads the
 * results. Words are of 8 bytes. */
#include "mgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 }; /* parameters of a kernel, arrays of a launch */

static void stop(const char *what, const char *why) {
  fprintf(stderr, "replay: %s: %s\n", what, why);
  exit(1);
}

struct bytes {
  unsigned char *data;
  size_t size, at;
};

static struct bytes read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END))
    stop(path, "cannot be read");
  struct bytes bytes = {NULL, (size_t)ftell(file), 0};
  rewind(file);
  bytes.data = malloc(bytes.size + 1);
  if (!bytes.data || fread(bytes.data, 1, bytes.size, file) != bytes.size)
    stop(path, "cannot be read");
  fclose(file);
  return bytes;
}

static void take(struct bytes *from, void *to, size_t size) {
  if (size > from->size - from->at)
    stop("launches", "the file ends early");
  memcpy(to, from->data + from->at, size);
  from->at += size;
}

static uint64_t word(struct bytes *from) {
  uint64_t value;
  take(from, &value, sizeof value);
  return value;
}

/* A launch is its kernel's name, nine sizes, the arrays with their bytes, and the parameters: a word each, or
 * the address of an array by its number. */
static void launch(void *module, struct bytes *from, FILE *results) {
  char name[64];
  intptr_t sizes[6];
  unsigned char *arrays[MOST];
  size_t array_sizes[MOST];
  uint64_t values[MOST];
  void *params[MOST];
  take(from, name, sizeof name);
  for (int i = 0; i < 6; ++i)
    sizes[i] = (intptr_t)word(from);
  uint64_t shared = word(from), array_count = word(from), param_count = word(from);
  if (name[sizeof name - 1] || array_count > MOST || param_count > MOST)
    stop(name, "too long, or too many parameters");
  for (uint64_t i = 0; i < array_count; ++i) {
    array_sizes[i] = (size_t)word(from);
    arrays[i] = malloc(array_sizes[i] + 1);
    if (!arrays[i])
      stop(name, "out of memory");
    take(from, arrays[i], array_sizes[i]);
  }
  for (uint64_t i = 0; i < param_count; ++i) {
    uint64_t is_array = word(from);
    values[i] = word(from);
    if (is_array && values[i] >= array_count)
      stop(name, "no such array");
    if (is_array)
      values[i] = (uint64_t)(uintptr_t)arrays[values[i]];
    params[i] = &values[i];
  }
  void *function = mgpuModuleGetFunction(module, name);
  mgpuLaunchKernel(function, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], (int32_t)shared,
                   NULL, params, NULL, param_count);
  if (mgpuGetLastError())
    stop(name, mgpuGetLastErrorMessage());
  for (uint64_t i = 0; i < array_count; ++i) {
    if (fwrite(arrays[i], 1, array_sizes[i], results) != array_sizes[i])
      stop(name, "the results cannot be written");
    free(arrays[i]);
  }
}

int main(int count, char **arguments) {
  if (count != 4)
    stop("usage", "replay IMAGE LAUNCHES RESULTS");
  struct bytes image = read_file(arguments[1]), launches = read_file(arguments[2]);
  FILE *results = fopen(arguments[3], "wb");
  if (!results)
    stop(arguments[3], "cannot be written");
  if (mgpuBackendUse("host"))
    stop("host", mgpuGetLastErrorMessage());
  void *module = mgpuModuleLoad(image.data, image.size);
  if (!module)
    stop(arguments[1], mgpuGetLastErrorMessage());
  while (launches.at < launches.size)
    launch(module, &launches, results);
  mgpuModuleUnload(module);
  if (fclose(results))
    stop(arguments[3], "cannot be written");
  free(image.data);
  free(launches.data);
  return 0;
}
