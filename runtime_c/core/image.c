/* image.c: the bounds-checked reader of image containers, and the recognition of single images. */
#include "core/image.h"

#include <stdint.h>
#include <string.h>

/* LLVM's layouts, for the offsets below; the fields are read with memcpy because damaged offsets may be
 * unaligned. Header: magic[4], version u32, size u64, entry offset u64, entry size u64. Entry: image kind
 * u16, offload kind u16, flags u32, string offset u64, strings u64, image offset u64, image size u64. A
 * string entry: key offset u64, value offset u64. */
enum { HEADER_BYTES = 32, ENTRY_BYTES = 40, STRING_ENTRY_BYTES = 16, VERSION = 1 };
static const unsigned char magic[4] = {0x10, 0xFF, 0x10, 0xAD};

static uint16_t read16(const unsigned char *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint32_t read32(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint64_t read64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static bool inside(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

/* The string at `offset`, or NULL when it does not end inside the entry. */
static const char *string_at(const unsigned char *entry, uint64_t size, uint64_t offset) {
  if (offset >= size || !memchr(entry + offset, 0, (size_t)(size - offset)))
    return NULL;
  return (const char *)(entry + offset);
}

void mgpu_image_reader_init(struct mgpu_image_reader *reader, const void *begin, const void *end) {
  reader->begin = begin;
  reader->end = end;
  if (!begin || !end || reader->begin > reader->end)
    reader->begin = reader->end = NULL;
  reader->next = reader->begin;
}

bool mgpu_image_is_container(const void *data, size_t size) {
  return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

static int damaged(struct mgpu_image_reader *reader, const char **problem, const char *what) {
  reader->next = reader->end;
  *problem = what;
  return -1;
}

static void take_string(struct mgpu_image *image, const char *key, const char *value) {
  if (strcmp(key, "triple") == 0)
    image->triple = value;
  else if (strcmp(key, "arch") == 0)
    image->arch = value;
  else if (strcmp(key, "target") == 0)
    image->target = value;
  else if (strcmp(key, "module") == 0)
    image->module = value;
  else if (strcmp(key, "format") == 0)
    image->format = value;
  else if (strcmp(key, "kernels") == 0)
    image->kernels = value;
  else if (strcmp(key, "jit") == 0)
    image->jit = value;
}

/* Targets of other packages make images, too, and no backend has their names: the bytes say whose. */
static bool is_target_of_ours(const char *target) {
  for (int blob = MGPU_BLOB_TEXT; blob <= MGPU_BLOB_HOST_ELF; ++blob)
    if (strcmp(target, mgpu_blob_target((enum mgpu_blob)blob)) == 0)
      return true;
  return false;
}

int mgpu_image_next(struct mgpu_image_reader *reader, struct mgpu_image *image, const char **problem) {
  *problem = "";
  const unsigned char *entry = reader->next;
  uint64_t left = (uint64_t)(reader->end - reader->next);
  if (left == 0)
    return 0;
  if (left < HEADER_BYTES)
    return damaged(reader, problem, "it ends inside an entry's header");
  if (memcmp(entry, magic, sizeof magic) != 0)
    return damaged(reader, problem, "an entry does not start with the magic bytes 10 FF 10 AD");
  if (read32(entry + 4) != VERSION)
    return damaged(reader, problem, "an entry has another version than 1");
  uint64_t size = read64(entry + 8), description = read64(entry + 16), description_size = read64(entry + 24);
  if (size < HEADER_BYTES || size > left)
    return damaged(reader, problem, "an entry's size is past the end");
  if (description_size < ENTRY_BYTES || !inside(description, description_size, size))
    return damaged(reader, problem, "an entry's description is outside of it");

  const unsigned char *fields = entry + description;
  uint64_t strings = read64(fields + 8), count = read64(fields + 16);
  uint64_t data = read64(fields + 24), data_size = read64(fields + 32);
  if (!inside(data, data_size, size))
    return damaged(reader, problem, "an entry's image is outside of it");
  if (count > size / STRING_ENTRY_BYTES || !inside(strings, count * STRING_ENTRY_BYTES, size))
    return damaged(reader, problem, "an entry's string table is outside of it");

  *image = (struct mgpu_image){entry + data, (size_t)data_size, "", "", "", "", "", "", ""};
  for (uint64_t i = 0; i < count; ++i) {
    const unsigned char *pair = entry + strings + i * STRING_ENTRY_BYTES;
    const char *key = string_at(entry, size, read64(pair));
    const char *value = string_at(entry, size, read64(pair + 8));
    if (!key || !value)
      return damaged(reader, problem, "an entry's string is outside of it");
    take_string(image, key, value);
  }
  enum mgpu_blob blob = mgpu_image_blob(image->data, image->size);
  if (blob > MGPU_BLOB_TEXT && !is_target_of_ours(image->target)) /* text may be anyone's */
    image->target = mgpu_blob_target(blob);
  uint64_t step = size + (8 - size % 8) % 8;
  reader->next = step >= left ? reader->end : entry + step;
  return 1;
}

int mgpu_elf_machine(const void *data, size_t size) {
  const unsigned char *bytes = data;
  enum { ELF64_HEADER_BYTES = 64 };
  if (size < ELF64_HEADER_BYTES || memcmp(bytes, "\177ELF\2\1", 6) != 0)
    return -1;
  return read16(bytes + 18);
}

enum mgpu_blob mgpu_image_blob(const void *data, size_t size) {
  enum { EM_CUDA_ = 190, EM_AMDGPU_ = 224 };
  static const unsigned char fat[4] = {0x50, 0xED, 0x55, 0xBA}, fat_wrapper[4] = {0xB1, 0x43, 0x62, 0x46};
  static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__", packed_bundle[] = "CCOB";
  int machine = mgpu_elf_machine(data, size);
  if (machine == EM_CUDA_)
    return MGPU_BLOB_CUDA_ELF;
  if (machine == EM_AMDGPU_)
    return MGPU_BLOB_AMD_ELF;
  if (machine >= 0)
    return MGPU_BLOB_HOST_ELF;
  if (size >= 4 && (memcmp(data, fat, 4) == 0 || memcmp(data, fat_wrapper, 4) == 0))
    return MGPU_BLOB_CUDA_FAT;
  if ((size >= sizeof bundle - 1 && memcmp(data, bundle, sizeof bundle - 1) == 0) ||
      (size >= 4 && memcmp(data, packed_bundle, 4) == 0))
    return MGPU_BLOB_AMD_BUNDLE;
  const unsigned char *bytes = data;
  size_t looked_at = size < 64 ? size : 64;
  if (looked_at == 0)
    return MGPU_BLOB_UNKNOWN;
  for (size_t i = 0; i < looked_at; ++i) {
    if (bytes[i] == 0 && i > 0)
      break;
    if (bytes[i] < 9 || (bytes[i] > 13 && bytes[i] < 32) || bytes[i] > 126)
      return MGPU_BLOB_UNKNOWN;
  }
  return MGPU_BLOB_TEXT;
}

bool mgpu_image_loadable(const struct mgpu_image *image) {
  return strcmp(mgpu_blob_target(mgpu_image_blob(image->data, image->size)), image->target) == 0;
}

const char *mgpu_blob_target(enum mgpu_blob blob) {
  switch (blob) {
  case MGPU_BLOB_TEXT:
  case MGPU_BLOB_CUDA_ELF:
  case MGPU_BLOB_CUDA_FAT:
    return "nvvm";
  case MGPU_BLOB_AMD_ELF:
  case MGPU_BLOB_AMD_BUNDLE:
    return "rocdl";
  case MGPU_BLOB_HOST_ELF:
    return "host";
  case MGPU_BLOB_UNKNOWN:
    break;
  }
  return "";
}
