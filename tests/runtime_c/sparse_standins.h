/* sparse_standins.h: the exported helpers of a loaded stand-in of a sparse library. */
#ifndef MGPU_TEST_SPARSE_STANDINS_H
#define MGPU_TEST_SPARSE_STANDINS_H

#include "standins.h"

enum { LIBRARY_HANDLES, LIBRARY_DESCRIPTORS };
enum { NOT_SUPPORTED = 10 };

struct library {
  struct standin log;
  void (*fail)(const char *name, int status, int from);
};

static inline struct library library_open(const char *name) {
  struct library library = {.log = {.library = dlopen(name, RTLD_NOW)}};
  void *opened = library.log.library;
  CHECK(opened, "%s", dlerror());
  *(void **)&library.log.log = dlsym(opened, "standin_log");
  *(void **)&library.log.clear = dlsym(opened, "standin_clear");
  *(void **)&library.log.live = dlsym(opened, "standin_live");
  *(void **)&library.fail = dlsym(opened, "standin_fail_call");
  CHECK(library.fail, "%s is a stand-in of a sparse library", name);
  return library;
}

/* test_gpu_sparse_2to4.c: the tests of 2:4 matrices on the backend in use. */
void test_2to4(struct standin *driver);
/* One product of them; an error ends it early. */
void multiply_2to4(int prune);

#endif
