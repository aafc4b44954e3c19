/* image.h: reads the container of an artifact's device images.
 *
 * The container is a memory range that holds LLVM OffloadBinary entries (version 1) one after another. Each
 * starts with the magic bytes 10 FF 10 AD and says its whole size; the next starts at the next multiple of 8.
 * All offsets inside an entry count from the entry's start. String keys:
 *   triple   the LLVM triple        arch    the chip: sm_90, gfx942, x86-64-v3
 *   target   nvvm, rocdl, host      format  offload, isa, bin, fatbin
 *   module   the gpu.module's name  kernels its kernels, comma-separated
 *   jit      0 to 4: the level at which a driver compiles text; absent: the driver's own
 *
 * Pure functions over the caller's memory: no allocation, no locks, safe in any thread. */
#ifndef MGPU_INTERNAL_IMAGE_H
#define MGPU_INTERNAL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* One image. Everything points into the container, which must outlive it; absent strings are "". */
struct mgpu_image {
  const void *data;
  size_t size;
  const char *triple;
  const char *arch;
  const char *target;
  const char *module;
  const char *format;
  const char *kernels;
  const char *jit;
};

struct mgpu_image_reader {
  const unsigned char *begin;
  const unsigned char *end;
  const unsigned char *next;
};

/* Starts at the first entry of [begin, end). NULL ranges are empty. */
void mgpu_image_reader_init(struct mgpu_image_reader *reader, const void *begin, const void *end);

/* Fills *image with the next entry: 1. At the end: 0. On damage: -1 and *problem, a static sentence part such
 * as "an entry's size is past the end"; the reader then stays at the end. */
int mgpu_image_next(struct mgpu_image_reader *reader, struct mgpu_image *image, const char **problem);

/* Whether the bytes start with the container's magic. */
bool mgpu_image_is_container(const void *data, size_t size);

/* What the bytes of a single image are, by their own header. */
enum mgpu_blob {
  MGPU_BLOB_UNKNOWN,
  MGPU_BLOB_TEXT,       /* printable: PTX or other assembly */
  MGPU_BLOB_CUDA_ELF,   /* cubin */
  MGPU_BLOB_CUDA_FAT,   /* NVIDIA fat binary */
  MGPU_BLOB_AMD_ELF,    /* hsaco */
  MGPU_BLOB_AMD_BUNDLE, /* clang offload bundle of hsacos */
  MGPU_BLOB_HOST_ELF,   /* ELF for another machine: a CPU */
};
enum mgpu_blob mgpu_image_blob(const void *data, size_t size);

/* Are the image's bytes of a kind that drivers of its target load? Bitcode and most assembly are for tools.
 */
bool mgpu_image_loadable(const struct mgpu_image *image);

/* The target's name for such a blob ("nvvm", "rocdl", "host"), or "" when the bytes do not tell. */
const char *mgpu_blob_target(enum mgpu_blob blob);

/* e_machine of a 64-bit little-endian ELF file, or -1 when the bytes are not one. */
int mgpu_elf_machine(const void *data, size_t size);

#endif
