/* caller.c: calls one function of a library on another architecture, where no Python is.
 *
 * Usage: caller LIBRARY FUNCTION [f32:VALUE | f32[]:VALUE,VALUE,...]...
 * An array is a memref of one dimension; after the call each is printed on a line of its own. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 }; /* arguments of each kind, which are what registers take */

struct memref {
  float *allocated, *aligned;
  int64_t offset, size, stride;
};

int main(int count, char **arguments) {
  void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "caller: %s\n", count > 2 ? dlerror() : "LIBRARY FUNCTION ARGUMENTS...");
    return 2;
  }
  /* AAPCS64 numbers the registers for pointers and those for floats each on their own. */
  void (*function)(void *, void *, void *, void *, float, float);
  *(void **)&function = dlsym(library, arguments[2]);
  void *pointers[MOST] = {0};
  float floats[MOST] = {0};
  struct memref arrays[MOST];
  int array_count = 0, float_count = 0;
  for (int i = 3; i < count && array_count < MOST && float_count < MOST; ++i) {
    char *text = strchr(arguments[i], ':') + 1;
    if (strncmp(arguments[i], "f32:", 4) == 0) {
      floats[float_count++] = strtof(text, NULL);
      continue;
    }
    struct memref *array = &arrays[array_count];
    *array = (struct memref){.allocated = malloc(strlen(text) * sizeof(float)), .stride = 1};
    array->aligned = array->allocated;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
      array->aligned[array->size++] = strtof(word, NULL);
    pointers[array_count++] = array;
  }
  function(pointers[0], pointers[1], pointers[2], pointers[3], floats[0], floats[1]);
  for (int i = 0; i < array_count; ++i) {
    for (int64_t k = 0; k < arrays[i].size; ++k)
      printf("%g ", arrays[i].aligned[k]);
    printf("\n");
    free(arrays[i].allocated);
  }
  return 0;
}
