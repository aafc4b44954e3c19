/* failed.h: whether a launch or a copy of the calling thread failed: what it would print then is not its
 * result, and may be memory that there is none of. */
#pragma once

#include <stdbool.h>

/* Of the mgpu runtime, where that is linked in; a libmgpu.so does not tell. */
int mgpu_pending(void) __attribute__((weak));

static inline bool has_failed(void) { return mgpu_pending && mgpu_pending() != 0; }
