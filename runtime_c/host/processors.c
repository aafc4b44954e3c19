/* processors.c: which code this CPU runs: that for a level of its architecture, or for a processor by its
 * name in LLVM, all of whose features it has, and those that the code asks for besides (x86-64:+avx2). */
#include "host/host.h"

#include <string.h>

struct processor {
  const char *name;
  uint64_t features;
};

#define FEATURE(...)
#define PROCESSOR(name, bits) {name, bits},
#if defined(__x86_64__)
enum { EM_HERE = 62 };
static const char *const levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
static const struct processor processors[] = {
#include "host/processors_x86_64.def"
};
#elif defined(__aarch64__)
enum { EM_HERE = 183 };
static const char *const levels[] = {"aarch64", "armv8.1-a", "armv9-a"};
static const struct processor processors[] = {
    {"aarch64", 0},
#include "host/processors_aarch64.def"
};
#else
enum { EM_HERE = -2 };
static const char *const levels[] = {"unknown"};
static const struct processor processors[] = {{"unknown", 0}};
#endif
#undef FEATURE
#undef PROCESSOR
#define FEATURE(name, ...) name,
#define PROCESSOR(...)
static const char *const feature_names[] = {
#if defined(__x86_64__)
#include "host/processors_x86_64.def"
#elif defined(__aarch64__)
#include "host/processors_aarch64.def"
#else
    "",
#endif
};
enum { FEATURES = sizeof feature_names / sizeof *feature_names };
enum { LEVELS = sizeof levels / sizeof *levels, PROCESSORS = sizeof processors / sizeof *processors };

static bool is_word(const char *name, const char *word, size_t length) {
  return strncmp(name, word, length) == 0 && !name[length];
}

static const struct processor *find(const char *name, size_t length) {
  for (size_t i = 0; i < PROCESSORS; ++i)
    if (is_word(processors[i].name, name, length))
      return &processors[i];
  return NULL;
}

/* The features in words such as ":+avx2:+fma". What the table lacks no code for vectors needs. */
static uint64_t asked_besides(const char *words) {
  uint64_t features = 0;
  while (*words) {
    size_t length = strcspn(++words, ":");
    for (int i = 0; *words == '+' && i < FEATURES; ++i)
      if (is_word(feature_names[i], words + 1, length - 1))
        features |= (uint64_t)1 << i;
    words += length;
  }
  return features;
}

/* Virtual machines take some microseconds to answer for each leaf of cpuid. */
static uint64_t features_here(void) {
  static const uint64_t asked = (uint64_t)1 << 63;
  static uint64_t known; /* atomic; 0: not asked yet */
  uint64_t features = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!features) {
    features = mgpu_host_features() | asked;
    __atomic_store_n(&known, features, __ATOMIC_RELAXED);
  }
  return features & ~asked;
}

/* The highest level whose features are all among these: 0 is the lowest, which everyone has. */
static int level_of(uint64_t features) {
  int level = 0;
  while (level + 1 < LEVELS) {
    const char *next = levels[level + 1];
    uint64_t wanted = find(next, strlen(next))->features;
    if ((features & wanted) != wanted)
      break;
    ++level;
  }
  return level;
}

static bool is_level(const char *name) {
  for (int i = 0; i < LEVELS; ++i)
    if (strcmp(levels[i], name) == 0)
      return true;
  return false;
}

const char *mgpu_host_chip(void) { return levels[level_of(features_here())]; }

/* A processor's own code comes before that for the level that it has, and after that for a higher one. */
int mgpu_host_arch_rank(const char *arch) {
  if (!*arch)
    arch = levels[0];
  size_t length = strcspn(arch, ":");
  const struct processor *processor = find(arch, length);
  if (!processor)
    return 0;
  uint64_t features = processor->features | asked_besides(arch + length);
  if (features & ~features_here())
    return 0;
  return 1 + 2 * level_of(features) + !(is_level(processor->name) && features == processor->features);
}

int mgpu_host_elf_machine(void) { return EM_HERE; }
