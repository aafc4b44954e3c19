/* test_tensor.c: descriptors of tiled tensors over the stand-in CUDA driver, which holds them to NVIDIA's
 * rules. */
#include "../standin/tensor_map.h"
#include "standins.h"

#include <pthread.h>

enum { U8, F16 = 6, F32 };

/* A memref descriptor of up to 5 dimensions. */
struct memref {
  void *allocated, *aligned;
  int64_t offset, sizes_and_strides[10];
};

static struct standin cuda;

static struct memref make(void *memory, int64_t rank, const int64_t *sizes, const int64_t *strides) {
  struct memref made = {memory, memory, 0, {0}};
  for (int64_t i = 0; i < rank; ++i) {
    made.sizes_and_strides[i] = sizes[i];
    made.sizes_and_strides[rank + i] = strides[i];
  }
  return made;
}

/* An f32 tensor of 4 x 8 x 64, of which each row is followed by 64 others, in boxes of 1 x 4 x 32. */
static const int64_t sizes[] = {4, 8, 64}, strides[] = {1024, 128, 1};

static const struct tensor_map *describe(struct memref *memref) {
  int64_t box[] = {1, 4, 32};
  return mgpuTensorMapEncodeTiledMemref(3, memref, F32, 0, 3, 2, 1, box);
}

static void test_values(char *memory) {
  struct memref memref = make(memory, 3, sizes, strides);
  memref.offset = 16;
  const struct tensor_map *map = describe(&memref);
  CHECK_CLEAN();
  CHECK(map->address == memory + 64 && map->rank == 3, "the offset counts elements");
  CHECK(map->sizes[0] == 64 && map->sizes[1] == 8 && map->sizes[2] == 4, "sizes from the innermost one");
  CHECK(map->strides[0] == 512 && map->strides[1] == 4096, "distances in bytes");
  CHECK(map->box[0] == 32 && map->box[1] == 4 && map->box[2] == 1, "box");
  CHECK(map->steps[0] == 1 && map->steps[1] == 1 && map->steps[2] == 1, "every element");
  CHECK(memcmp(map->codes, (unsigned char[]){F32, 0, 3, 2, 1}, 5) == 0, "codes");

  struct tensor_map direct[2]; /* with room for 128 bytes */
  _Static_assert(sizeof direct >= 128, "room");
  uint64_t dims[] = {64, 8}, distances[] = {256};
  uint32_t box[] = {16, 8}, steps[] = {1, 2};
  mgpuTensorMapEncodeTiled(direct, F16, 2, memory, dims, distances, box, steps, 0, 0, 1, 0);
  CHECK_CLEAN();
  CHECK(direct->address == memory && direct->rank == 2 && direct->sizes[1] == 8 &&
            direct->strides[0] == 256 && direct->box[0] == 16 && direct->steps[1] == 2 &&
            direct->codes[3] == 1,
        "the values as they are");
}

/* A changed tensor is refused for the reason that is told. */
static void refuse(struct memref memref, int64_t rank, int64_t type, int64_t interleave, int64_t swizzle,
                   int64_t fill, int64_t *box, int code, const char *why) {
  CHECK(mgpuTensorMapEncodeTiledMemref(rank, &memref, type, interleave, swizzle, 0, fill, box) == NULL, "%s",
        why);
  CHECK_ERROR(code, why);
}

static void test_refusals(char *memory) {
  int64_t box[] = {1, 4, 32}, odd_box[] = {1, 4, 31}, wide[] = {1, 300, 32}, large[] = {1, 4, 64},
          wrong[] = {-1, 4, 32};
  int64_t near[] = {100, 10, 1}, apart[] = {1024, 128, 2}, none[] = {4, 0, 64};
  struct memref good = make(memory, 3, sizes, strides);
  refuse(good, 3, F32, 0, 0, 0, odd_box, MGPU_ERROR_INVALID,
         "its box has rows of 124 bytes, and multiples of 16");
  refuse(good, 3, F32, 0, 0, 0, wide, MGPU_ERROR_INVALID, "its box is 300 wide in dimension 1");
  refuse(good, 3, F32, 0, 3, 0, large, MGPU_ERROR_INVALID,
         "rows of 256 bytes, and its swizzle takes at most 128");
  refuse(good, 3, F32, 0, 1, 0, box, MGPU_ERROR_INVALID,
         "rows of 128 bytes, and its swizzle takes at most 32");
  refuse(good, 3, F32, 2, 0, 0, box, MGPU_ERROR_INVALID, "needs a swizzle of 32 bytes");
  refuse(good, 3, U8, 0, 0, 1, box, MGPU_ERROR_INVALID, "only floats can be NaN");
  refuse(good, 3, F32, 0, 0, 0, wrong, MGPU_ERROR_INVALID, "box is -1 wide in dimension 0");
  refuse(good, 6, F32, 0, 0, 0, box, MGPU_ERROR_INVALID, "1 to 5 dimensions");
  refuse(good, 0, F32, 0, 0, 0, box, MGPU_ERROR_INVALID, "1 to 5 dimensions");
  refuse(good, 3, 13, 0, 0, 0, box, MGPU_ERROR_INVALID, "type 13");
  refuse(make(memory, 3, sizes, near), 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID,
         "its elements are 40 bytes apart in dimension 1, and multiples of 16");
  refuse(make(memory, 3, sizes, apart), 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID, "their distance is 2");
  refuse(make(memory, 3, none, strides), 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID,
         "its size is 0 in dimension 1");
  refuse(make(memory + 4, 3, sizes, strides), 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID,
         "is no multiple of 16");
  refuse(make(memory + 16, 3, sizes, strides), 3, F32, 2, 1, 0, box, MGPU_ERROR_INVALID,
         "is no multiple of 32");
  const int64_t far[] = {INT64_MAX, 128, 1};
  refuse(make(memory, 3, sizes, far), 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID,
         "stride is 9223372036854775807 in dimension 0");
  struct memref beyond = good;
  beyond.offset = INT64_MAX / 2;
  refuse(beyond, 3, F32, 0, 0, 0, box, MGPU_ERROR_INVALID, "offset is 4611686018427387903");
  refuse(good, 3, F32, 0, 0, 0, NULL, MGPU_ERROR_INVALID, "needs a memref and the sizes of a box");
  CHECK(mgpuTensorMapEncodeTiledMemref(3, NULL, F32, 0, 0, 0, 0, box) == NULL, "no memref");
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a memref and the sizes of a box");
  const uint64_t dims[] = {64, 8}, distances[] = {256};
  const uint32_t part[] = {16, 8}, ones[] = {1, 1};
  mgpuTensorMapEncodeTiled(NULL, F32, 2, memory, dims, distances, part, ones, 0, 0, 0, 0);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a place for its answer");
  struct tensor_map map[2];
  mgpuTensorMapEncodeTiled(map, F32, 2, memory, dims, NULL, part, ones, 0, 0, 0, 0);
  CHECK_ERROR(MGPU_ERROR_INVALID, "all four lists");
  mgpuTensorMapEncodeTiled(map, F32, 1, memory, dims, NULL, part, ones, 0, 0, 0, 0);
  CHECK_CLEAN(); /* which has no distances */
  refuse(make(memory, 2, sizes + 1, strides + 1), 2, F32, 1, 0, 0, box + 1, MGPU_ERROR_INVALID,
         "it has 2 dimensions, and an interleaved one has 3 to 5");
}

static void test_lives(char *memory) {
  int64_t before = mgpuCount(MGPU_COUNT_DESCRIPTORS);
  int live = cuda.live(MEMORY);
  struct memref memref = make(memory, 3, sizes, strides);
  const struct tensor_map *first = describe(&memref);
  CHECK(describe(&memref) == first && cuda.live(MEMORY) == live + 1, "one for equal contents");
  memref.offset = 4;
  CHECK(describe(&memref) != first && cuda.live(MEMORY) == live + 2, "another for others");
  mgpuSetDefaultDevice(1);
  memref.offset = 0;
  CHECK(describe(&memref) != first && cuda.live(MEMORY) == live + 3, "another on another device");
  mgpuSetDefaultDevice(0);
  CHECK(mgpuCount(MGPU_COUNT_DESCRIPTORS) == before + 3, "counted");
  /* Those of a tensor go with its memory, others stay. */
  for (int i = 0; i < 1000; ++i) {
    char *tensor = mgpuMemAlloc(65536, NULL, false), *other = mgpuMemAlloc(64, NULL, false);
    struct memref inside = make(tensor, 3, sizes, strides);
    const struct tensor_map *map = describe(&inside);
    CHECK(map && map->address == tensor, "a descriptor of its own");
    inside.offset = 32;
    CHECK(describe(&inside) != map, "and one of a part");
    mgpuMemFree(other, NULL);
    CHECK(mgpuCount(MGPU_COUNT_DESCRIPTORS) == before + 5, "not of other memory");
    mgpuMemFree(tensor, NULL);
    CHECK(mgpuCount(MGPU_COUNT_DESCRIPTORS) == before + 3, "gone");
  }
  CHECK_CLEAN();
  CHECK(cuda.live(MEMORY) == live + 3, "%d", cuda.live(MEMORY) - live);
}

static void *many(void *unused) {
  for (int i = 0; i < 100; ++i) {
    void *stream = mgpuStreamCreate();
    char *tensor = mgpuMemAlloc(65536, stream, false);
    struct memref memref = make(tensor, 3, sizes, strides);
    const struct tensor_map *map = describe(&memref);
    CHECK(map && map->address == tensor, "its own");
    mgpuMemFree(tensor, stream);
    mgpuStreamDestroy(stream);
  }
  CHECK_CLEAN();
  return unused;
}

void test_tensor(void) {
  cuda = standin_open("libcuda.so.1");
  CHECK(mgpuBackendUse("cuda") == 0, "cuda");
  char *memory = mgpuMemAlloc(65536, NULL, false);
  CHECK((uintptr_t)memory % 16 == 0, "aligned");
  char *aligned = memory + (uintptr_t)memory % 32;
  test_values(aligned);
  test_refusals(aligned);
  test_lives(aligned);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  mgpuMemFree(memory, NULL);
  CHECK(mgpuCount(MGPU_COUNT_DESCRIPTORS) == 0 && cuda.live(MEMORY) == 0, "none is left, on either device");
  int64_t box[] = {1, 4, 32};
  struct memref memref = make(aligned, 3, sizes, strides);
  CHECK(mgpuBackendUse("host") == 0, "host");
  CHECK(mgpuTensorMapEncodeTiledMemref(3, &memref, F32, 0, 3, 2, 1, box) == NULL, "the CPU has none");
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "The backend \"host\" has no tensor descriptors");
}
