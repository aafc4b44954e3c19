/* check.h: assertions with messages, and a writer of image containers. */
#ifndef MGPU_TEST_CHECK_H
#define MGPU_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mgpu.h"

#define CHECK(condition, ...)                                                                                \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: CHECK(%s) failed: ", __FILE__, __LINE__, #condition);                          \
      fprintf(stderr, __VA_ARGS__);                                                                          \
      fprintf(stderr, "\n  kept error: %d %s\n", mgpuGetLastError(), mgpuGetLastErrorMessage());             \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

#define CHECK_TEXT(text, part) CHECK(strstr(text, part) != NULL, "\"%s\" is not in \"%s\"", part, text)

/* No error is kept. */
#define CHECK_CLEAN() CHECK(mgpuGetLastError() == MGPU_SUCCESS, "an error was kept")

/* The error of that code is kept, with a sentence that has `part`. */
#define CHECK_ERROR(code, part)                                                                              \
  do {                                                                                                       \
    int found_ = mgpuGetLastError();                                                                         \
    CHECK(found_ == (code), "expected error %d, found %d: %s", code, found_, mgpuGetLastErrorMessage());     \
    CHECK_TEXT(mgpuGetLastErrorMessage(), part);                                                             \
    size_t length_ = strlen(mgpuGetLastErrorMessage());                                                      \
    CHECK(length_ && mgpuGetLastErrorMessage()[length_ - 1] == '.', "no sentence: %s",                       \
          mgpuGetLastErrorMessage());                                                                        \
  } while (0)

struct container {
  unsigned char *data; /* malloc'ed */
  size_t size;
};

/* Appends an entry; strings are key, value pairs ending with NULL. */
void container_add(struct container *container, const void *image, size_t size, const char *const *strings);

/* The usual keys. */
void container_add_image(struct container *container, const char *target, const char *arch,
                         const char *format, const char *module, const void *image, size_t size);

/* A 64-byte ELF header for that machine, followed by a tag; returns its size. */
size_t fake_elf(unsigned char *to, int machine, const char *tag);

void test_image(void);
void test_error(void);
void test_host(const char *image_path, const char *artifact_path);
void test_schedule(const char *image_path);
void test_schedule_environment(int code);
void test_cuda(void);
void test_hip(void);
void test_capture(const char *backend);
void test_tensor(void);
void test_sparse(void);
void test_cuda_sparse(void);
void test_hip_sparse(void);
void test_old_sparse(void);
void test_unknown_order(void);
void test_late_driver(const char *backend);
void test_no_sparse(const char *backend, int type, const char *part);

/* 32 threads, each with so many random operations. */
void hammer(const char *backend, const char *image_path, long rounds_each);

/* So many launches, and a tenth as many loads of a module and openings of a library with the runtime inside.
 */
void soak(const char *backend, const char *image_path, const char *artifact_path, long launches);

/* Parts of the host backend, called directly. */
void check_host_memory(void);
void check_host_pool(void);

/* Failed assertions on the backend in use. */
void check_guard(void);
/* With the driver in use, and a kernel of its device. */
void check_fork(mgpuKernelSlot *kernel);

/* Copies and fills of arrays of every layout on the backend in use. */
void check_strided(void);
void check_streams(mgpuKernelSlot *saxpy, mgpuKernelSlot *slow);

/* The size of the process's address space. */
size_t virtual_bytes(void);

#endif
