/* emulation.h: how an emulator of the devices takes part in the stand-in drivers. Without one, real images
 * are not looked at. */

/* What an emulator does. It is called in the thread of the call, and with what that call was given; codes are
 * those of the driver's API. */
struct emulator {
  const char *chip; /* as the driver tells it, "sm_90" of CUDA's; NULL: there is no device */
  int lanes;        /* of a wave or warp */
  int (*load)(const void *module, const void *image); /* 0, or the code of a failure */
  void (*unload)(const void *module);
  int (*has)(const void *module, const char *kernel);    /* is there a kernel of that name? */
  int (*shared)(const void *module, const char *kernel); /* bytes of workgroup memory of its own */
  int (*launch)(const void *module, const char *kernel, const unsigned grid[3], const unsigned block[3],
                const unsigned cluster[3], unsigned smem, void **params); /* 0, or the code of a failure */
  void (*memory)(const void *begin, size_t size); /* memory that kernels may use; size 0: no longer */
};

static const struct emulator *emulator;
static bool emulated;

/* From now on the emulator runs launches; NULL: nobody does, and there is no device, so that nobody takes
 * this library for a driver. It must stay valid until then; without a chip it is still told what programs
 * free. */
EXPORT void standin_emulate(const struct emulator *given) {
  emulator = given;
  emulated = true;
}

static const char *emulated_chip(void) { return emulator ? emulator->chip : NULL; }

static int devices_present(void) { return emulated && !emulated_chip() ? 0 : devices(); }

/* A kernel of one module; like other functions it lives for ever. */
struct emulated_function {
  struct object object;
  const void *module;
};

/* 0, or 1 when there is none of that name. */
static int emulated_function(const void *module, const char *name, int device, void **function) {
  if (!emulator->has(module, name))
    return 1;
  struct emulated_function *made_ = calloc(1, sizeof *made_);
  made_->object.device = device;
  snprintf(made_->object.name, sizeof made_->object.name, "%s", name);
  made_->module = module;
  *function = made_;
  return 0;
}

static int emulated_launch(const void *function, const unsigned grid[3], const unsigned block[3],
                           const unsigned cluster[3], unsigned smem, void **params) {
  const struct emulated_function *kernel = function;
  return emulator->launch(kernel->module, kernel->object.name, grid, block, cluster, smem, params);
}

static void *emulated_memory(void *begin, size_t size) {
  if (emulator && begin)
    emulator->memory(begin, size);
  return begin;
}
