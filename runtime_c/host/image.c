/* image.c: loads a shared object from memory. */
#include "host/host.h"

#include "core/error.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The loader maps what the headers say; a file that is shorter would kill the process. NULL when it is fit to
 * load, else what is wrong. */
static const char *problem_of(const void *data, size_t size) {
  Elf64_Ehdr header;
  if (mgpu_elf_machine(data, size) < 0)
    return "it is not a 64-bit little-endian ELF file";
  memcpy(&header, data, sizeof header);
  if (header.e_machine != mgpu_host_elf_machine())
    return "it is for another kind of CPU";
  if (header.e_type != ET_DYN)
    return "it is not a shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > size ||
      header.e_phnum > (size - header.e_phoff) / sizeof(Elf64_Phdr) || header.e_phnum == 0)
    return "its program headers are outside of it";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    memcpy(&part, (const char *)data + header.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type != PT_GNU_STACK && part.p_type != PT_NULL &&
        (part.p_offset > size || part.p_filesz > size - part.p_offset))
      return "a segment is outside of it";
  }
  return NULL;
}

static bool write_all(int descriptor, const char *data, size_t size) {
  while (size) {
    ssize_t written = write(descriptor, data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written;
    size -= (size_t)written;
  }
  return true;
}

enum { NUMBER_BITS = 64 };

/* The path of an open file in /proc, spelled so that no other file that is loaded has had the same: dlopen
 * takes an equal path for the library that it has already, and descriptors' numbers come back. The bits of
 * the inode's number are separators, "/." or "//"; two files that are loaded never share an inode. */
static bool path_of(int descriptor, char *path, size_t size) {
  struct statx status; /* fstat is a function of glibc 2.33 and later; see core/glibc.h */
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &status))
    return false;
  char spelled[2 * NUMBER_BITS + 1];
  for (unsigned bit = 0; bit < NUMBER_BITS; ++bit)
    memcpy(spelled + (size_t)2 * bit, status.stx_ino >> bit & 1 ? "/." : "//", 2);
  spelled[2 * NUMBER_BITS] = '\0';
  int length = snprintf(path, size, "/proc/self/fd%s/%d", spelled, descriptor);
  return length > 0 && (size_t)length < size;
}

/* Through memory alone. No descriptor stays open: a process may load more images than it may have open files.
 */
static void *load_from_memory(const void *data, size_t size) {
  char path[48 + 2 * NUMBER_BITS];
  int descriptor = memfd_create("offload-kernels", MFD_CLOEXEC);
  if (descriptor < 0)
    return NULL;
  bool written = write_all(descriptor, data, size) && path_of(descriptor, path, sizeof path);
  void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  close(descriptor);
  return library;
}

/* Through a file that is gone once it is loaded. */
static void *load_from_file(const void *data, size_t size) {
  char path[512];
  const char *folder = getenv("TMPDIR");
  int length = snprintf(path, sizeof path, "%s/offload-kernels-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = length > 0 && (size_t)length < sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
  if (descriptor < 0)
    return NULL;
  bool written = write_all(descriptor, data, size);
  close(descriptor);
  void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  return library;
}

int mgpu_host_image_load(const void *data, size_t size, void **library) {
  const char *problem = problem_of(data, size);
  if (problem)
    return mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host image cannot be loaded: %s.", problem);
  dlerror(); /* what it has to say of other libraries, of a driver that is not there, say */
  *library = load_from_memory(data, size);
  if (!*library)
    *library = load_from_file(data, size);
  if (*library)
    return 0;
  const char *why = strerror(errno), *reason = dlerror();
  if (reason)
    return mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host image cannot be loaded: %s.", reason);
  return mgpu_fail(MGPU_ERROR_BAD_IMAGE,
                   "The host image cannot be loaded: neither memory nor a temporary folder can hold it: %s.",
                   why);
}
