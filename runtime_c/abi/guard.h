/* guard.h: whose guard (abi/guard.c) something is made under. */
#ifndef MGPU_INTERNAL_GUARD_H
#define MGPU_INTERNAL_GUARD_H

#include <stdint.h>

/* A number of the calling thread's innermost guard that no other guard ever has; 0 without one. */
uint64_t mgpu_guard_number(void);

#endif
