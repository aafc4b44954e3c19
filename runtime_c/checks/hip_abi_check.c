/* hip_abi_check.c: compile-only; asserts that hip/driver.def agrees with AMD's hip_runtime_api.h. Build with
 * cc -std=c11 -fsyntax-only -D__HIP_PLATFORM_AMD__ -I.. hip_abi_check.c */
#include <hip/hip_runtime_api.h>
#include <stddef.h>

#include "hip/layout.h"

#define HIP_FUNCTION(result, name, params)                                                                   \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) params), #name);
#define HIP_OPTIONAL(result, name, params) HIP_FUNCTION(result, name, params)
#define HIP_CONSTANT(name, value) _Static_assert((int)name == value, #name);
#include "hip/driver.def"

_Static_assert(sizeof(hipError_t) == sizeof(int) && sizeof(hipDeviceAttribute_t) == sizeof(int),
               "enums are ints");
_Static_assert(sizeof(hipMemcpyKind) == sizeof(int) && sizeof(hipDevice_t) == sizeof(int), "enums are ints");
_Static_assert(sizeof(hipDeviceptr_t) == sizeof(void *), "");
#if HIP_VERSION_MAJOR >= 6
_Static_assert(sizeof(hipDeviceProp_t) == HIP_PROPERTIES_R0600_SIZE, "hipDeviceProp_t R0600");
_Static_assert(offsetof(hipDeviceProp_t, gcnArchName) == HIP_PROPERTIES_R0600_ARCH, "gcnArchName R0600");
#else
_Static_assert(sizeof(hipDeviceProp_t) == HIP_PROPERTIES_OLD_SIZE, "hipDeviceProp_t");
_Static_assert(offsetof(hipDeviceProp_t, gcnArchName) == HIP_PROPERTIES_OLD_ARCH, "gcnArchName");
#endif
_Static_assert(sizeof(hipDeviceProp_t) <= HIP_PROPERTIES_ROOM, "room for hipDeviceProp_t");
