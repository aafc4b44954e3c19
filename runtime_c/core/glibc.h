/* glibc.h: functions by the names that they have had in every glibc, so that libraries which are built on a
 * new system load on an old one. Included before each source of the runtime (CMakeLists.txt).
 *
 * glibc 2.34 moved libpthread and libdl into libc and gave what was there a second version; glibc 2.32 did so
 * with two others. What is linked asks for the newest otherwise. Where these are libraries of their own,
 * Python has loaded them. */
#ifndef MGPU_GLIBC_H
#define MGPU_GLIBC_H

#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define MGPU_FIRST "GLIBC_2.2.5"
#define MGPU_SINCE(version) "GLIBC_" version
#elif defined(__GLIBC__) && defined(__aarch64__)
#define MGPU_FIRST "GLIBC_2.17"
#define MGPU_SINCE(version) MGPU_FIRST
#endif

#ifdef MGPU_FIRST
#define MGPU_VERSION(function, version) __asm__(".symver " #function ", " #function "@" version)
MGPU_VERSION(dlclose, MGPU_FIRST);
MGPU_VERSION(dlerror, MGPU_FIRST);
MGPU_VERSION(dlopen, MGPU_FIRST);
MGPU_VERSION(dlsym, MGPU_FIRST);
MGPU_VERSION(pthread_attr_getstack, MGPU_FIRST);
MGPU_VERSION(pthread_condattr_setclock, MGPU_SINCE("2.3.3"));
MGPU_VERSION(pthread_create, MGPU_FIRST);
MGPU_VERSION(pthread_getattr_np, MGPU_FIRST);
MGPU_VERSION(pthread_getname_np, MGPU_SINCE("2.12"));
MGPU_VERSION(pthread_getspecific, MGPU_FIRST);
MGPU_VERSION(pthread_key_create, MGPU_FIRST);
MGPU_VERSION(pthread_key_delete, MGPU_FIRST);
MGPU_VERSION(pthread_once, MGPU_FIRST);
MGPU_VERSION(pthread_setspecific, MGPU_FIRST);
MGPU_VERSION(pthread_sigmask, MGPU_FIRST);
#endif

#endif
