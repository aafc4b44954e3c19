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

/* Through memory alone. The descriptor stays open: a closed one's number would come back, and dlopen takes an
 * equal path for the library that it has already. */
static void *load_from_memory(const void *data, size_t size, int *descriptor) {
  char path[48];
  *descriptor = memfd_create("offload-kernels", MFD_CLOEXEC);
  if (*descriptor < 0)
    return NULL;
  snprintf(path, sizeof path, "/proc/self/fd/%d", *descriptor);
  void *library = write_all(*descriptor, data, size) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    close(*descriptor);
    *descriptor = -1;
  }
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

int mgpu_host_image_load(const void *data, size_t size, void **library, int *descriptor) {
  *descriptor = -1;
  const char *problem = problem_of(data, size);
  if (problem)
    return mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host image cannot be loaded: %s.", problem);
  *library = load_from_memory(data, size, descriptor);
  if (!*library)
    *library = load_from_file(data, size);
  if (*library)
    return 0;
  const char *reason = dlerror();
  return mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host image cannot be loaded: %s.",
                   reason ? reason : "neither memory nor a temporary folder can hold it");
}

void mgpu_host_image_unload(void *library, int descriptor) {
  dlclose(library);
  if (descriptor >= 0)
    close(descriptor);
}
