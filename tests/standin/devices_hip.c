/* devices_hip.c: a stand-in for libamdhip64.so that has devices and nothing that runs on them: what is asked for
 * when devices are looked for, of a gfx942 and a gfx1100 that differ in everything.
 *
 * Environment: STANDIN_DEVICES, how many (2 when unset; 0: HIP answers "no device"); STANDIN_REFUSES, "CALL" or
 * "CALL DEVICE" that answers an error; STANDIN_NAMELESS: HIP knows no names, as without AMD's table of them.
 * Compiled with OLD: without the functions of ROCm 6. */
#include "hip/layout.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, UNKNOWN = 999 };

/* The beginning of hipDeviceProp_tR0600, as far as it is asked for. */
struct properties {
  char name[256];
  char uuid[16], luid[8];
  unsigned luid_mask;
  size_t memory, shared_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int threads_per_block, block[3], grid[3], clock_rate;
  size_t constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch;
  int overlap, processors;
};

static const struct {
  const char *name, *chip;
  size_t memory;
  int processors;
} known[] = {{"Stand-in M", "gfx942:sramecc+:xnack-", (size_t)192 << 30, 304},
             {"Stand-in R", "gfx1100", (size_t)24 << 30, 48}};

static int count(void) {
  const char *value = getenv("STANDIN_DEVICES");
  return value ? atoi(value) : 2;
}

static int refused(const char *call, int device) {
  const char *value = getenv("STANDIN_REFUSES");
  char with_device[64];
  snprintf(with_device, sizeof with_device, "%s %d", call, device);
  return value && (!strcmp(value, call) || !strcmp(value, with_device)) ? UNKNOWN : SUCCESS;
}

EXPORT int hipGetDeviceCount(int *out) {
  *out = count();
  return refused("hipGetDeviceCount", 0) ? UNKNOWN : *out ? SUCCESS : NO_DEVICE;
}

EXPORT int hipDriverGetVersion(int *version) {
  *version = 60443484;
  return refused("hipDriverGetVersion", 0);
}

#ifndef OLD
EXPORT int hipGetDevicePropertiesR0600(void *out, int device) {
  if (refused("hipGetDeviceProperties", device))
    return UNKNOWN;
  if (device < 0 || device >= count())
    return INVALID_DEVICE;
  memset(out, 0, HIP_PROPERTIES_R0600_SIZE);
  struct properties *properties = out;
  if (!getenv("STANDIN_NAMELESS"))
    strcpy(properties->name, known[device].name);
  properties->memory = known[device].memory;
  properties->processors = known[device].processors;
  strcpy((char *)out + HIP_PROPERTIES_R0600_ARCH, known[device].chip);
  return SUCCESS;
}
#endif
