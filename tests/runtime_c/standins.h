/* standins.h: the exported helpers of a loaded stand-in driver. */
#ifndef MGPU_TEST_STANDINS_H
#define MGPU_TEST_STANDINS_H

#include "check.h"

#include <dlfcn.h>

enum { STREAMS, EVENTS, MEMORY, MODULES, MARKS };

struct standin {
  void *library;
  const char *(*log)(void);
  void (*clear)(void);
  int (*live)(int kind);
  void (*fail)(int code);
};

static inline struct standin standin_open(const char *name) {
  struct standin standin = {.library = dlopen(name, RTLD_NOW)};
  CHECK(standin.library, "%s", dlerror());
  *(void **)&standin.log = dlsym(standin.library, "standin_log");
  *(void **)&standin.clear = dlsym(standin.library, "standin_clear");
  *(void **)&standin.live = dlsym(standin.library, "standin_live");
  *(void **)&standin.fail = dlsym(standin.library, "standin_fail");
  CHECK(standin.log && standin.clear && standin.live && standin.fail,
        "%s is not the stand-in; check LD_LIBRARY_PATH", name);
  return standin;
}

#endif
