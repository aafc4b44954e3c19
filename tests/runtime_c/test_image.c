/* test_image.c: the container reader on good and damaged input. Each range is an exact heap block, so that
 * the address sanitizer sees the first byte read outside of it. */
#include "check.h"
#include "core/image.h"

static struct container sample(void) {
  struct container container = {NULL, 0};
  container_add_image(&container, "nvvm", "sm_90", "bin", "m", "cubin", 5);
  const char *strings[] = {"arch",    "gfx942", "target", "rocdl", "unknown", "value",
                           "kernels", "a,b",    "jit",    "2",     NULL};
  container_add(&container, "hsaco bytes", 11, strings);
  container_add_image(&container, "host", "x86-64-v3", "bin", "m", "", 0);
  return container;
}

/* Reads all of the bytes that the reader hands out; returns how many entries, -1 on damage. */
static int read_all(const unsigned char *data, size_t size, unsigned *sum) {
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem;
  int entries = 0, more;
  mgpu_image_reader_init(&reader, data, data + size);
  while ((more = mgpu_image_next(&reader, &image, &problem)) == 1) {
    ++entries;
    for (size_t i = 0; i < image.size; ++i)
      *sum += ((const unsigned char *)image.data)[i];
    *sum +=
        (unsigned)(strlen(image.triple) + strlen(image.arch) + strlen(image.target) + strlen(image.module) +
                   strlen(image.format) + strlen(image.kernels) + strlen(image.jit));
    *sum += (unsigned)mgpu_image_blob(image.data, image.size);
  }
  if (more < 0)
    CHECK(*problem, "damage without a problem");
  CHECK(mgpu_image_next(&reader, &image, &problem) == 0, "the reader goes on after its end");
  return more < 0 ? -1 : entries;
}

static void test_good(const struct container *container) {
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem;
  mgpu_image_reader_init(&reader, container->data, container->data + container->size);
  CHECK(mgpu_image_next(&reader, &image, &problem) == 1, "first entry: %s", problem);
  CHECK(strcmp(image.arch, "sm_90") == 0 && strcmp(image.target, "nvvm") == 0, "%s %s", image.arch,
        image.target);
  CHECK(image.size == 5 && memcmp(image.data, "cubin", 5) == 0, "image bytes");
  CHECK(mgpu_image_next(&reader, &image, &problem) == 1, "second entry: %s", problem);
  CHECK(strcmp(image.kernels, "a,b") == 0 && *image.module == 0, "%s %s", image.kernels, image.module);
  CHECK(strcmp(image.jit, "2") == 0, "%s", image.jit);
  CHECK(mgpu_image_next(&reader, &image, &problem) == 1 && image.size == 0, "third entry: %s", problem);
  CHECK(mgpu_image_next(&reader, &image, &problem) == 0, "end");
  mgpu_image_reader_init(&reader, NULL, NULL);
  CHECK(mgpu_image_next(&reader, &image, &problem) == 0, "a NULL range is empty");
}

static void test_truncations(const struct container *container) {
  unsigned sum = 0;
  int whole = 0;
  for (size_t size = 0; size < container->size; ++size) {
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, container->data, size);
    whole += read_all(copy, size, &sum) >= 0;
    free(copy);
  }
  CHECK(whole == 3, "a cut range is whole only between entries, not %d times", whole);
}

static void test_flips(const struct container *container) {
  unsigned sum = 0;
  for (size_t bit = 0; bit < 8 * container->size; ++bit) {
    unsigned char *copy = malloc(container->size);
    memcpy(copy, container->data, container->size);
    copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
    read_all(copy, container->size, &sum);
    free(copy);
  }
  unsigned state = 1;
  for (int round = 0; round < 20000; ++round) { /* many damaged bytes at once, in the numbers above all */
    unsigned char *copy = malloc(container->size);
    memcpy(copy, container->data, container->size);
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525u + 1013904223u;
      copy[8 + (state >> 8) % 100] = (unsigned char)(state >> 24);
    }
    read_all(copy, container->size, &sum);
    free(copy);
  }
}

static void test_blobs(void) {
  unsigned char elf[128];
  size_t size = fake_elf(elf, 190, "x");
  CHECK(mgpu_image_blob(elf, size) == MGPU_BLOB_CUDA_ELF, "cubin");
  fake_elf(elf, 224, "x");
  CHECK(mgpu_image_blob(elf, size) == MGPU_BLOB_AMD_ELF, "hsaco");
  fake_elf(elf, 62, "x");
  CHECK(mgpu_image_blob(elf, size) == MGPU_BLOB_HOST_ELF, "host");
  CHECK(mgpu_image_blob(elf, 63) == MGPU_BLOB_UNKNOWN, "half a header");
  CHECK(mgpu_image_blob("\x50\xED\x55\xBA....", 8) == MGPU_BLOB_CUDA_FAT, "fat binary");
  CHECK(mgpu_image_blob("//\n.version 8.0\n", 16) == MGPU_BLOB_TEXT, "text");
  CHECK(mgpu_image_blob("", 0) == MGPU_BLOB_UNKNOWN, "nothing");
}

void test_image(void) {
  struct container container = sample();
  test_good(&container);
  test_truncations(&container);
  test_flips(&container);
  test_blobs();
  free(container.data);
}
