/* image.c: which image suits which AMD chip. */
#include "hip/backend.h"

#include <stdio.h>
#include <string.h>

/* Which chips run code for a generic target. */
static bool generic_covers(const char *generic, const char *chip) {
  static const struct {
    const char *generic, *chips;
  } table[] = {
      {"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
      {"gfx9-4-generic", " gfx940 gfx941 gfx942 gfx950 "},
      {"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
      {"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
      {"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
      {"gfx12-generic", " gfx1200 gfx1201 "},
  };
  char word[80];
  snprintf(word, sizeof word, " %s ", chip);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    if (strcmp(table[i].generic, generic) == 0)
      return strstr(table[i].chips, word) != NULL;
  return false;
}

/* Splits "gfx942:sramecc+:xnack-" at its first colon; *features is then "sramecc+:xnack-" or "". */
static void split(const char *from, char *chip, size_t size, const char **features) {
  size_t length = strcspn(from, ":");
  *features = from[length] ? from + length + 1 : "";
  snprintf(chip, size, "%.*s", (int)(length < size ? length : size - 1), from);
}

static bool has_feature(const char *features, const char *feature, size_t length) {
  for (; *features; features += features[0] == ':') {
    size_t next = strcspn(features, ":");
    if (next == length && memcmp(features, feature, length) == 0)
      return true;
    features += next;
  }
  return false;
}

/* The chip must be the same, or covered by a generic one. A feature that the image names (xnack+) must be
 * what the device has; one that it does not name may be anything. More features named is better. */
int mgpu_hip_image_rank(int index, const struct mgpu_image *image) {
  enum { EXACT = 10, GENERIC = 1 };
  enum mgpu_blob blob = mgpu_image_blob(image->data, image->size);
  if (blob != MGPU_BLOB_AMD_ELF && blob != MGPU_BLOB_AMD_BUNDLE)
    return 0;
  char wanted[64], present[64];
  const char *needs, *has;
  split(image->arch, wanted, sizeof wanted, &needs);
  split(mgpu_hip_vendor.devices[index].chip, present, sizeof present, &has);
  int rank = strcmp(wanted, present) == 0 ? EXACT : generic_covers(wanted, present) ? GENERIC : 0;
  while (rank && *needs) {
    size_t length = strcspn(needs, ":");
    if (length && !has_feature(has, needs, length))
      return 0;
    needs += length + (needs[length] == ':');
    ++rank;
  }
  return rank;
}
