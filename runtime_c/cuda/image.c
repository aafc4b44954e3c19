/* image.c: which image suits which NVIDIA chip. */
#include "cuda/backend.h"

#include <string.h>

struct chip {
  int major, minor;
  char variant; /* 'a', 'f' or 0 */
};

/* "sm_90a" */
static bool read_chip(const char *name, struct chip *chip) {
  int number = 0, digits = 0;
  if (strncmp(name, "sm_", 3) != 0)
    return false;
  for (name += 3; *name >= '0' && *name <= '9' && digits < 4; ++name, ++digits)
    number = 10 * number + (*name - '0');
  *chip = (struct chip){number / 10, number % 10, *name};
  return digits >= 2 && (*name == 0 || ((*name == 'a' || *name == 'f') && name[1] == 0));
}

/* The chips of NVIDIA's systems-on-chip. They do not promise to run the code of other chips. */
static bool is_integrated(int major, int minor) {
  static const int known[] = {53, 62, 72, 87, 101, 110};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (10 * major + minor == known[i])
      return true;
  return false;
}

/* Machine code beats text. Machine code runs on its own major version from its minor version on; code of
 * variant f in its family, that is the same; code of variant a on its own chip only. Text without a variant
 * runs from its version on. Systems-on-chip stand apart: what is not for exactly theirs comes after text. */
int mgpu_cuda_image_rank(int index, const struct mgpu_image *image) {
  enum { CODE = 100000 };
  const struct mgpu_cuda_device *device = &mgpu_cuda_devices[index];
  enum mgpu_blob blob = mgpu_image_blob(image->data, image->size);
  struct chip chip;
  bool code = blob == MGPU_BLOB_CUDA_ELF || blob == MGPU_BLOB_CUDA_FAT;
  bool text = blob == MGPU_BLOB_TEXT || blob == MGPU_BLOB_CUDA_FAT;
  if ((!code && !text) || !read_chip(image->arch, &chip))
    return 0;
  bool family = chip.major == device->major && chip.minor <= device->minor;
  bool same = family && chip.minor == device->minor;
  bool runs = chip.variant == 'a' ? same : family;
  bool foreign =
      !same && (is_integrated(device->major, device->minor) || is_integrated(chip.major, chip.minor));
  int detail = 10 * chip.minor + (chip.variant == 'a' ? 4 : chip.variant == 'f' ? 2 : 0);
  if (code && runs && !foreign)
    return CODE + detail + (blob == MGPU_BLOB_CUDA_ELF);
  bool later = chip.major < device->major || family;
  if (text && (chip.variant ? runs && !foreign : later))
    return 100 * chip.major + detail + 1;
  return code && runs && !chip.variant;
}
