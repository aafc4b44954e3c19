/* layout.h: where gcnArchName stands in the two layouts of hipDeviceProp_t. Apart from hip/driver.h
 * because checks/hip_abi_check.c includes it next to AMD's header. */
#ifndef MGPU_HIP_LAYOUT_H
#define MGPU_HIP_LAYOUT_H

enum {
  HIP_PROPERTIES_OLD_SIZE = 792, /* hipGetDeviceProperties before ROCm 6 */
  HIP_PROPERTIES_OLD_ARCH = 396,
  HIP_PROPERTIES_R0600_SIZE = 1472, /* hipGetDevicePropertiesR0600 */
  HIP_PROPERTIES_R0600_ARCH = 1160,
  HIP_PROPERTIES_ARCH_BYTES = 256,
  HIP_PROPERTIES_ROOM = 8192, /* what we hand over, with room for fields to come */
};

#endif
