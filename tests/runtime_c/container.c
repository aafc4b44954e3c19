/* container.c: writes image containers for tests. */
#include "check.h"

static void put64(unsigned char *at, uint64_t value) { memcpy(at, &value, 8); }

void container_add(struct container *container, const void *image, size_t size, const char *const *strings) {
  size_t pairs = 0, text = 0;
  for (; strings[2 * pairs]; ++pairs)
    text += strlen(strings[2 * pairs]) + strlen(strings[2 * pairs + 1]) + 2;
  size_t table = 32 + 40, names = table + 16 * pairs, data = (names + text + 7) / 8 * 8,
         end = (data + size + 7) / 8 * 8;
  container->data = realloc(container->data, container->size + end);
  unsigned char *entry = container->data + container->size;
  memset(entry, 0, end);
  memcpy(entry, "\x10\xFF\x10\xAD\x01\0\0\0", 8);
  put64(entry + 8, end);
  put64(entry + 16, 32);
  put64(entry + 24, 40);
  put64(entry + 40, table);
  put64(entry + 48, pairs);
  put64(entry + 56, data);
  put64(entry + 64, size);
  for (size_t i = 0; i < 2 * pairs; ++i) {
    put64(entry + table + 8 * i, names);
    strcpy((char *)entry + names, strings[i]);
    names += strlen(strings[i]) + 1;
  }
  if (size)
    memcpy(entry + data, image, size);
  container->size += end;
}

void container_add_image(struct container *container, const char *target, const char *arch,
                         const char *format, const char *module, const void *image, size_t size) {
  const char *strings[] = {"triple", "any",  "arch",   arch,   "target", target,
                           "format", format, "module", module, NULL};
  container_add(container, image, size, strings);
}

size_t fake_elf(unsigned char *to, int machine, const char *tag) {
  memset(to, 0, 64);
  memcpy(to, "\177ELF\2\1\1", 7);
  to[16] = 3;
  to[18] = (unsigned char)machine;
  strcpy((char *)to + 64, tag);
  return 64 + strlen(tag) + 1;
}
