/* tensor.c: tensor descriptors, made by the CUDA driver; what it refuses without a word is explained. */
#include "core/error.h"
#include "cuda/backend.h"

#include <string.h>

enum { INTERLEAVE_32B = 2, SWIZZLE_NONE = 0, SWIZZLE_32B = 1, SWIZZLE_64B = 2 };
enum { MOST_DIMENSIONS = 5, MOST_BOX = 256 };

/* By the code of the type, as are the next. */
static const unsigned char element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const bool is_float[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};

/* Which of the rules that cuTensorMapEncodeTiled documents the tensor breaks; dimensions are counted as in
 * the program, from the outermost one. False when it breaks none. */
static bool explain(const struct mgpu_tensor *tensor, struct mgpu_text *why) {
  uint32_t rank = tensor->rank;
  uint64_t unit = tensor->interleave == INTERLEAVE_32B ? 32 : 16;
  if (rank < 1 || rank > MOST_DIMENSIONS || (tensor->interleave && rank < 3))
    mgpu_text_add(why, "it has %u dimensions, and %s", rank,
                  tensor->interleave ? "an interleaved one has 3 to 5" : "1 to 5 are possible");
  else if ((uintptr_t)tensor->address % unit)
    mgpu_text_add(why, "its address %p is no multiple of %llu", tensor->address, (unsigned long long)unit);
  for (uint32_t i = 0; i < rank && !why->used; ++i) {
    unsigned dimension = rank - 1 - i;
    if (tensor->sizes[i] < 1 || tensor->sizes[i] > 1ull << 32)
      mgpu_text_add(why, "its size is %llu in dimension %u", (unsigned long long)tensor->sizes[i], dimension);
    else if (tensor->box[i] < 1 || tensor->box[i] > MOST_BOX)
      mgpu_text_add(why, "its box is %u wide in dimension %u, and 1 to 256 are possible", tensor->box[i],
                    dimension);
    else if (i > 0 && (tensor->distances[i - 1] % unit || tensor->distances[i - 1] >= 1ull << 40))
      mgpu_text_add(why,
                    "its elements are %lld bytes apart in dimension %u, and multiples of %llu are possible",
                    (long long)tensor->distances[i - 1], dimension, (unsigned long long)unit);
  }
  if (why->used || tensor->type < 0 || tensor->type >= (int32_t)sizeof element_bytes)
    return why->used != 0;
  unsigned row = tensor->box[0] * element_bytes[tensor->type];
  unsigned span = tensor->swizzle == SWIZZLE_32B ? 32 : tensor->swizzle == SWIZZLE_64B ? 64 : 128;
  if (!tensor->interleave && row % 16)
    mgpu_text_add(why, "its box has rows of %u bytes, and multiples of 16 are possible", row);
  else if (!tensor->interleave && tensor->swizzle != SWIZZLE_NONE && row > span)
    mgpu_text_add(why, "its box has rows of %u bytes, and its swizzle takes at most %u", row, span);
  else if (tensor->interleave == INTERLEAVE_32B && tensor->swizzle != SWIZZLE_32B)
    mgpu_text_add(why, "an interleave of 32 bytes needs a swizzle of 32 bytes");
  else if (tensor->oob_fill && !is_float[tensor->type])
    mgpu_text_add(why, "only floats can be NaN where the box is outside of the tensor");
  return why->used != 0;
}

int mgpu_cuda_describe(int device, const struct mgpu_tensor *tensor, struct mgpu_descriptor *out) {
  CUtensorMap map;
  if (!mgpu_cuda.cuTensorMapEncodeTiled)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "This CUDA driver has no tensor descriptors: they came with CUDA 12.0.");
  CUcontext previous;
  int failure = mgpu_cuda_enter(device, &previous);
  if (failure)
    return failure;
  CUresult result = mgpu_cuda.cuTensorMapEncodeTiled(
      &map, tensor->type, tensor->rank, tensor->address, tensor->sizes, tensor->distances, tensor->box,
      tensor->steps, tensor->interleave, tensor->swizzle, tensor->l2_promotion, tensor->oob_fill);
  mgpu_cuda_leave(device, previous);
  char buffer[192] = "";
  struct mgpu_text why = {buffer, sizeof buffer, 0};
  if (result == CUDA_ERROR_INVALID_VALUE && explain(tensor, &why))
    return mgpu_fail(MGPU_ERROR_INVALID, "The tensor cannot be described for TMA: %s.", buffer);
  if (!result)
    memcpy(out, &map, sizeof map);
  return mgpu_cuda_check(device, result, "cuTensorMapEncodeTiled", false);
}
