/* hip_emulation.h: how an emulator of the device takes part in the stand-in HIP library. Without one, real
 * code objects are not looked at. */

/* What an emulator does. It is called in the thread of the call, and with what that call was given. */
struct emulator {
  const char *chip;                                   /* as in gcnArchName */
  int lanes;                                          /* of a wave */
  int (*load)(const void *module, const void *image); /* 0, or HIP's code of a failure */
  void (*unload)(const void *module);
  int (*has)(const void *module, const char *kernel); /* is there a kernel of that name? */
  int (*launch)(const void *module, const char *kernel, const unsigned grid[3], const unsigned block[3],
                unsigned smem, void **params);    /* 0, or HIP's code of a failure */
  void (*memory)(const void *begin, size_t size); /* memory that kernels may use; size 0: no longer */
};

static const struct emulator *emulator;
static bool
    emulated; /* once an emulator is gone, there is no device, so that nobody takes this library for one */

/* From now on the emulator runs launches; NULL: nobody does. It must stay valid until then. */
EXPORT void standin_emulate(const struct emulator *given) {
  emulator = given;
  emulated = true;
}

static int devices_present(void) { return emulated && !emulator ? 0 : devices(); }

/* A kernel of one module; like other functions it lives for ever. */
struct emulated_function {
  struct object object;
  const void *module;
};

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

static void *emulated_memory(void *begin, size_t size) {
  if (emulator && begin)
    emulator->memory(begin, size);
  return begin;
}
