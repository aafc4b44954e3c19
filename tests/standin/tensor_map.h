/* tensor_map.h: a tensor's descriptor of the stand-in CUDA driver. */
#pragma once

/* What stands in the 128 bytes of a descriptor, dimensions from the innermost one. */
struct tensor_map {
  void *address;
  unsigned long long strides[5];
  unsigned sizes[5];
  unsigned short box[5];
  unsigned char rank, steps[5], codes[5];
};
