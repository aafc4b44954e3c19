/* cpu.c: which CPU this is. Reads cpuid itself: the compiler's builtins for it would need the compiler's
 * support library wherever the runtime is linked in. */
#include "host/host.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

struct registers {
  unsigned a, b, c, d;
};

static struct registers leaf(unsigned number, unsigned part) {
  struct registers r = {0, 0, 0, 0};
  __get_cpuid_count(number, part, &r.a, &r.b, &r.c, &r.d);
  return r;
}

/* The registers that a feature needs and that the system has to save. */
enum { NONE = 0, AVX = 0x6, AVX512 = 0xE6, APX = 1 << 19 };

uint64_t mgpu_host_features(void) {
  struct registers leaf1 = leaf(1, 0), leaf7 = leaf(7, 0), leaf7_1 = leaf(7, 1),
                   extended = leaf(0x80000001u, 0);
  unsigned saved = 0, high = 0, number = 0;
  uint64_t features = 0;
  if (leaf1.c & 1u << 27) /* OSXSAVE */
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
#define FEATURE(name, word, bit, registers)                                                                  \
  if ((word) >> (bit) & 1 && (saved & (unsigned)(registers)) == (unsigned)(registers))                       \
    features |= (uint64_t)1 << number;                                                                       \
  ++number;
#define PROCESSOR(name, bits)
#include "host/processors_x86_64.def"
  return features;
}

void mgpu_host_cpu_name(char *name, size_t size) {
  char brand[49] = "";
  if (leaf(0x80000000u, 0).a >= 0x80000004u)
    for (unsigned i = 0; i < 3; ++i) {
      struct registers r = leaf(0x80000002u + i, 0);
      memcpy(brand + 16 * i, &r, 16);
    }
  const char *text = brand + strspn(brand, " ");
  size_t length = strlen(text);
  while (length && text[length - 1] == ' ')
    --length;
  if (length)
    snprintf(name, size, "%.*s", (int)length, text);
  else
    snprintf(name, size, "x86-64 CPU");
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

uint64_t mgpu_host_features(void) {
  uint64_t told[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)}, features = 0;
  unsigned number = 0;
#define FEATURE(name, which, bit) features |= (told[(which) - 1] >> (bit) & 1) << number++;
#define PROCESSOR(name, bits)
#include "host/processors_aarch64.def"
  return features;
}

void mgpu_host_cpu_name(char *name, size_t size) { snprintf(name, size, "AArch64 CPU"); }

#else
uint64_t mgpu_host_features(void) { return 0; }

void mgpu_host_cpu_name(char *name, size_t size) { snprintf(name, size, "CPU"); }
#endif
