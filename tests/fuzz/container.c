/* container.c: libFuzzer's entry to the reader of image containers (core/image.h). Everything that the reader
 * hands out is read to its last byte; the input is a heap block of its own, so that the address sanitizer
 * sees the first byte outside. */
#include "core/image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t sum;

static void expect(bool holds) {
  if (!holds)
    abort();
}

static void read_image(const struct mgpu_image *image) {
  const char *const strings[] = {image->triple, image->arch,    image->target, image->module,
                                 image->format, image->kernels, image->jit};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; ++i)
    sum += strlen(strings[i]);
  for (size_t i = 0; i < image->size; ++i)
    sum += ((const unsigned char *)image->data)[i];
  sum += strlen(mgpu_blob_target(mgpu_image_blob(image->data, image->size)));
  sum += mgpu_image_loadable(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem;
  int more;
  size_t entries = 0;
  mgpu_image_reader_init(&reader, data, data + size);
  while ((more = mgpu_image_next(&reader, &image, &problem)) == 1) {
    read_image(&image);
    expect(++entries <= size / 32 + 1); /* each entry takes its header: the reader goes forward */
  }
  expect(more == 0 || *problem);
  expect(mgpu_image_next(&reader, &image, &problem) == 0); /* it stays at the end */
  expect(mgpu_image_is_container(data, size) || entries == 0);
  return 0;
}
