/* cuda_descriptors.h: tensors' descriptors of the stand-in CUDA driver. What stands in them is its own. */

#include "tensor_map.h"

_Static_assert(sizeof(struct tensor_map) <= sizeof(CUtensorMap), "room");

/* Logs the descriptor that a kernel gets, dimensions from the innermost one. */
static void note_descriptor(const struct tensor_map *map) {
  note("descriptor at %p type %d interleave %d swizzle %d promotion %d fill %d", map->address, map->codes[0],
       map->codes[1], map->codes[2], map->codes[3], map->codes[4]);
  for (int i = 0; i < map->rank; ++i)
    note("dimension size %u stride %llu box %u step %d", map->sizes[i], i ? map->strides[i - 1] : 0,
         map->box[i], map->steps[i]);
}

/* A descriptor is what was asked for, after the rules that NVIDIA documents for it. */
EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                       void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                       const cuuint32_t *box, const cuuint32_t *steps,
                                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  TURN;
  static const unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}, spans[] = {0, 32, 64, 128};
  enum { FLOAT16 = 6, SWIZZLE_32B = 1, INTERLEAVE_32B = 2 };
  struct tensor_map *out = (struct tensor_map *)(void *)map;
  NEED_CONTEXT;
  size_t unit = interleave == INTERLEAVE_32B ? 32 : 16;
  if ((size_t)map % 64 || type < 0 || (size_t)type >= sizeof bytes / sizeof *bytes || rank < 1 || rank > 5 ||
      (interleave && rank < 3) || (size_t)address % unit || interleave < 0 || interleave > INTERLEAVE_32B ||
      swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill < 0 || fill > 1)
    return INVALID_VALUE;
  for (unsigned i = 0; i < rank; ++i)
    if (sizes[i] < 1 || sizes[i] > 1ull << 32 || box[i] < 1 || box[i] > 256 || steps[i] < 1 || steps[i] > 8 ||
        (i + 1 < rank && (strides[i] % unit || strides[i] >= 1ull << 40)))
      return INVALID_VALUE;
  size_t row = box[0] * bytes[type];
  if ((!interleave && (row % 16 || (swizzle && row > spans[swizzle]))) || (fill && type < FLOAT16) ||
      (interleave == INTERLEAVE_32B && swizzle != SWIZZLE_32B))
    return INVALID_VALUE;
  memset(map, 0, sizeof *map);
  out->address = address;
  out->rank = (unsigned char)rank;
  memcpy(out->codes,
         (unsigned char[]){(unsigned char)type, (unsigned char)interleave, (unsigned char)swizzle,
                           (unsigned char)promotion, (unsigned char)fill},
         sizeof out->codes);
  for (unsigned i = 0; i < rank; ++i) {
    out->sizes[i] = (unsigned)sizes[i];
    out->strides[i] = i + 1 < rank ? strides[i] : 0;
    out->box[i] = (unsigned short)box[i];
    out->steps[i] = (unsigned char)steps[i];
  }
  return CUDA_SUCCESS;
}
