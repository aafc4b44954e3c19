/* numerals.h: strtoull and strtol by the names that they have had in every glibc.
 *
 * Since 2.38 its header gives them others, for numerals such as 0b1, and what is built so loads on no older
 * system (core/glibc.h has what changed its version alone). */
#ifndef MGPU_INTERNAL_NUMERALS_H
#define MGPU_INTERNAL_NUMERALS_H

#include <stdlib.h>

#ifdef __GLIBC__
extern unsigned long long mgpu_strtoull(const char *text, char **end, int base) __asm__("strtoull");
extern long mgpu_strtol(const char *text, char **end, int base) __asm__("strtol");
#else
#define mgpu_strtoull strtoull
#define mgpu_strtol strtol
#endif

#endif
