/* transfer.h: the host backend's memory slots (core/backend.h), and how they fill. */
#ifndef MGPU_INTERNAL_HOST_TRANSFER_H
#define MGPU_INTERNAL_HOST_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* host/fill.c: repeats a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` need be no multiple of it. */
void mgpu_host_fill_bytes(unsigned char *to, const void *pattern, size_t width, size_t bytes);

/* host/transfer.c */
int mgpu_host_alloc(int device, size_t size, void *stream, bool shared, void **memory);
int mgpu_host_free(int device, void *memory, void *stream, bool shared);
int mgpu_host_memcpy(int device, void *to, const void *from, size_t size, void *stream);
int mgpu_host_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                       size_t width, size_t height, void *stream);
int mgpu_host_memset(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream);

#endif
