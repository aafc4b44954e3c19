/* library.c: finds and opens the libraries of a vendor that are not part of the driver. */
#include "core/error.h"
#include "sparse/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAGS = RTLD_NOW | RTLD_LOCAL, MOST_FOLDERS = 8 };

struct search {
  const struct mgpu_library *library;
  void *opened;
  const char *name;
  char problem[400]; /* of a file that is there and cannot be loaded */
};

/* Tries every name in a folder. True when one is open. */
static bool try_folder(struct search *search, const char *root, const char *folder) {
  for (const char *const *name = search->library->names; *name; ++name) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s/%s", root, folder, *name) >= (int)sizeof path ||
        access(path, F_OK))
      continue;
    search->opened = dlopen(path, FLAGS);
    search->name = *name;
    if (search->opened)
      return true;
    const char *problem = dlerror();
    struct mgpu_text text = {search->problem, sizeof search->problem, 0};
    mgpu_text_add(&text, "%s", problem ? problem : path);
  }
  return false;
}

static bool try_installation(struct search *search, const char *root) {
  return try_folder(search, root, "lib64") || try_folder(search, root, "lib");
}

/* Folders of Python packages, by what is loaded from them. */
struct folders {
  int count;
  char names[MOST_FOLDERS][PATH_MAX];
};

static int note_folder(struct dl_phdr_info *info, size_t size, void *pointer) {
  (void)size;
  static const char *const ends[] = {"/site-packages/", "/dist-packages/"};
  struct folders *folders = pointer;
  for (int i = 0; i < 2; ++i) {
    const char *at = info->dlpi_name ? strstr(info->dlpi_name, ends[i]) : NULL;
    size_t length = at ? (size_t)(at - info->dlpi_name) + strlen(ends[i]) - 1 : 0;
    if (!at || length >= PATH_MAX || folders->count == MOST_FOLDERS)
      continue;
    char *name = folders->names[folders->count];
    memcpy(name, info->dlpi_name, length);
    name[length] = 0;
    int same = 0;
    while (strcmp(folders->names[same], name) != 0)
      ++same;
    folders->count += same == folders->count;
  }
  return 0;
}

static bool try_packages(struct search *search) {
  struct folders *folders = calloc(1, sizeof *folders);
  bool found = false;
  if (folders)
    dl_iterate_phdr(note_folder, folders);
  for (int i = 0; folders && i < folders->count && !found; ++i)
    for (const char *const *package = search->library->packages; *package && !found; ++package)
      found = try_folder(search, folders->names[i], *package);
  free(folders);
  return found;
}

static bool try_loader(struct search *search) {
  for (const char *const *name = search->library->names; *name && !search->opened; ++name) {
    search->opened = dlopen(*name, FLAGS);
    search->name = *name;
  }
  return search->opened != NULL;
}

static bool find(struct search *search) {
  const struct mgpu_library *library = search->library;
  if (try_loader(search))
    return true;
  const char *root = getenv(library->variable);
  if (root && *root && try_installation(search, root))
    return true;
  for (const char *const *known = library->roots; *known && !(root && *root); ++known)
    if (try_installation(search, *known))
      return true;
  return try_packages(search);
}

int mgpu_library_open(const struct mgpu_library *library, void **opened, const char **name) {
  struct search search = {.library = library};
  if (find(&search)) {
    *opened = search.opened;
    *name = search.name;
    return 0;
  }
  if (*search.problem)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "%s is needed for this operation and cannot be loaded: %s.",
                     library->product, search.problem);
  char names[200];
  struct mgpu_text text = {names, sizeof names, 0};
  for (const char *const *each = library->names; *each; ++each)
    mgpu_text_add(&text, "%s%s", each == library->names ? "" : ", ", *each);
  const char *packages = *library->packages ? "beside the Python packages in use" : "where it is by default";
  return mgpu_fail(
      MGPU_ERROR_UNSUPPORTED,
      "%s is needed for this operation and was not found: no %s where the loader looks, in $%s or "
      "%s. %s.",
      library->product, names, library->variable, packages, library->advice);
}
