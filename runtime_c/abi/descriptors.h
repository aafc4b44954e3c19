/* descriptors.h: the end of descriptors of tiled tensors. Any thread. */
#ifndef MGPU_INTERNAL_DESCRIPTORS_H
#define MGPU_INTERNAL_DESCRIPTORS_H

#include "abi/stream.h"

#include <stddef.h>

/* Frees the descriptors of tensors in memory that is being freed on that stream, in its order. */
void mgpu_descriptors_drop(const struct mgpu_place *place, const void *memory, size_t size);

/* How many there are, on all devices. */
size_t mgpu_descriptors_count(void);

#endif
