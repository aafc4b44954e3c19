/* cpu.c: which CPU this is and which code it runs. Reads cpuid itself: the compiler's builtins for it
 * would need the compiler's support library wherever the runtime is linked in. */
#include "host/host.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { EM_HERE = 62 };

struct registers {
  unsigned a, b, c, d;
};

static struct registers leaf(unsigned number) {
  struct registers r = {0, 0, 0, 0};
  __get_cpuid_count(number, 0, &r.a, &r.b, &r.c, &r.d);
  return r;
}

static bool all(unsigned value, unsigned bits) { return (value & bits) == bits; }

/* The microarchitecture level of the x86-64 psABI: 1 to 4. */
static int level(void) {
  struct registers one = leaf(1), seven = leaf(7), extended = leaf(0x80000001u);
  /* CX16, POPCNT, SSE3, SSE4.1, SSE4.2, SSSE3, LAHF */
  bool v2 =
      all(one.c, 1u << 13 | 1u << 23 | 1u << 0 | 1u << 19 | 1u << 20 | 1u << 9) && all(extended.c, 1u << 0);
  if (!v2)
    return 1;
  unsigned saved_low = 0, saved_high = 0;
  if (one.c & 1u << 27) /* OSXSAVE: the registers that the system saves */
    __asm__ volatile("xgetbv" : "=a"(saved_low), "=d"(saved_high) : "c"(0));
  /* AVX, F16C, FMA, MOVBE; AVX2, BMI1, BMI2; LZCNT */
  bool v3 = all(saved_low, 6u) && all(one.c, 1u << 28 | 1u << 29 | 1u << 12 | 1u << 22) &&
            all(seven.b, 1u << 5 | 1u << 3 | 1u << 8) && all(extended.c, 1u << 5);
  if (!v3)
    return 2;
  /* AVX-512 F, BW, CD, DQ, VL */
  bool v4 = all(saved_low, 0xE6u) && all(seven.b, 1u << 16 | 1u << 30 | 1u << 28 | 1u << 17 | 1u << 31);
  return v4 ? 4 : 3;
}

const char *mgpu_host_chip(void) {
  static const char *const names[] = {"x86-64", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return names[level()];
}

void mgpu_host_cpu_name(char *name, size_t size) {
  char brand[49] = "";
  if (leaf(0x80000000u).a >= 0x80000004u)
    for (unsigned i = 0; i < 3; ++i) {
      struct registers r = leaf(0x80000002u + i);
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

/* A level must be reached. Another name is a CPU's: best of all, if this CPU has at least level 3, or level 4
 * for the families that have AVX-512. */
int mgpu_host_arch_rank(const char *arch) {
  static const char wide[] =
      " skylake-avx512 cascadelake cooperlake cannonlake icelake-client icelake-server "
      "tigerlake rocketlake sapphirerapids emeraldrapids graniterapids graniterapids-d "
      "diamondrapids znver4 znver5 znver6 ";
  int here = level();
  if (!*arch || strcmp(arch, "x86-64") == 0)
    return 1;
  if (strncmp(arch, "x86-64-v", 8) == 0) {
    int wanted = arch[8] - '0';
    return arch[8] && !arch[9] && wanted >= 2 && wanted <= here ? wanted : 0;
  }
  char word[80];
  snprintf(word, sizeof word, " %s ", arch);
  return here >= (strstr(wide, word) ? 4 : 3) ? 5 : 0;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

enum { EM_HERE = 183 };

/* 1: the baseline, armv8-a; 2: has the atomics of armv8.1-a; 3: has SVE, which armv9-a demands. */
static int level(void) {
  unsigned long features = getauxval(AT_HWCAP);
  return features & 1ul << 22 ? 3 : features & 1ul << 8 ? 2 : 1;
}

const char *mgpu_host_chip(void) {
  static const char *const names[] = {"aarch64", "aarch64", "armv8.1-a", "armv9-a"};
  return names[level()];
}

void mgpu_host_cpu_name(char *name, size_t size) { snprintf(name, size, "AArch64 CPU"); }

/* A level must be reached. Another name is a CPU's: best of all, if this CPU has what LLVM takes that one to
 * have. */
int mgpu_host_arch_rank(const char *arch) {
  static const char old[] = " cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 cortex-a34 ";
  static const char vector[] = " a64fx cortex-a510 cortex-a520 cortex-a520ae cortex-a710 cortex-a715 "
                               "cortex-a720 cortex-a720ae cortex-a725 "
                               "cortex-x2 cortex-x3 cortex-x4 cortex-x925 fujitsu-monaka gb10 grace "
                               "neoverse-512tvb neoverse-n2 neoverse-n3 "
                               "neoverse-v1 neoverse-v2 neoverse-v3 neoverse-v3ae olympus ";
  int here = level();
  if (!*arch || strcmp(arch, "aarch64") == 0 || strcmp(arch, "generic") == 0)
    return 1;
  if (strncmp(arch, "armv", 4) == 0) {
    int wanted = strcmp(arch, "armv9-a") == 0 ? 3 : 2;
    return here >= wanted ? wanted : 0;
  }
  char word[80];
  snprintf(word, sizeof word, " %s ", arch);
  return here >= (strstr(vector, word) ? 3 : strstr(old, word) ? 1 : 2) ? 4 : 0;
}

#else
enum { EM_HERE = -2 };

const char *mgpu_host_chip(void) { return "unknown"; }

void mgpu_host_cpu_name(char *name, size_t size) { snprintf(name, size, "CPU"); }

int mgpu_host_arch_rank(const char *arch) {
  (void)arch;
  return 0;
}
#endif

int mgpu_host_elf_machine(void) { return EM_HERE; }
