/* standin.h: what the stand-in drivers share: a log of calls, counts of live objects, objects with a number.
 *
 * Environment: STANDIN_DEVICES, how many devices (2 when unset); with 0 the driver answers "no device".
 * STANDIN_IMAGE_FILE and STANDIN_IMAGE_BYTES: a file to write that many bytes of each loaded image to;
 * STANDIN_PARAMETERS: the sizes of a kernel's parameters in bytes ("8 8 4"), whose values each launch then
 * logs; STANDIN_DESCRIPTOR: which parameter is a tensor's descriptor, which each launch then logs;
 * STANDIN_FORKS: CUDA's forks while it is started.
 * Exported for tests by both libraries: standin_log, standin_clear, standin_live, standin_fail,
 * standin_count, standin_calls, standin_kernels, standin_capture. */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { STREAMS, EVENTS, MEMORY, MODULES, MARKS, KINDS }; /* marks: events with times; not in the log */

struct object {
  int number;
  int device;
  char name[512]; /* mangled ones are long */
  /* Kernels: */
  bool wide;   /* clusters larger than the portable size are allowed */
  int dynamic; /* atomic: the bytes of dynamic memory that are allowed; 0: nobody has said */
  /* Events: */
  bool timed;
  unsigned long order; /* among all records; 0: never recorded */
  struct timespec at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 16];
static size_t used;
static int
    filled; /* atomic: the log takes no more, and costs no lock, which might hide a race from a sanitizer */
static int live[KINDS], made[KINDS];
static unsigned long recorded, reached; /* records so far, and how many of them by the last wait */
/* Graphs: the stream that is captured, how many launches it has taken, and each thread's mode. Atomic. */
static const void *captured_stream; /* atomic */
static int captured_launches;
static _Thread_local int capture_mode; /* 0: global */
static int failing;                    /* atomic: what calls that touch a device answer; 0: what is true */

static int devices(void) {
  const char *value = getenv("STANDIN_DEVICES");
  return value ? atoi(value) : 2;
}

/* As CUDA's driver does where its kernel module is not there, to run what loads it. */
static inline void fork_if_asked(void) {
  if (!getenv("STANDIN_FORKS"))
    return;
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
  if (__atomic_load_n(&filled, __ATOMIC_RELAXED))
    return;
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&lock);
  if (used < sizeof text - 256) {
    used += (size_t)vsnprintf(text + used, 255, format, arguments);
    text[used++] = '\n';
    text[used] = 0;
  } else {
    __atomic_store_n(&filled, 1, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&lock);
  va_end(arguments);
}

static void count(int kind, int change) {
  pthread_mutex_lock(&lock);
  live[kind] += change;
  pthread_mutex_unlock(&lock);
}

/* Registered memory of the program. */
static struct {
  const char *begin;
  size_t size;
  int device;
} ranges[64];

static void register_range(const void *memory, size_t size, int device) {
  int i = 0;
  pthread_mutex_lock(&lock);
  while (i < 63 && ranges[i].size)
    ++i;
  ranges[i].begin = memory;
  ranges[i].size = size;
  ranges[i].device = device;
  pthread_mutex_unlock(&lock);
}

/* False when it was not registered for that device. */
static bool unregister_range(const void *memory, int device) {
  bool done = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64 && !done; ++i) {
    done = ranges[i].size && ranges[i].begin == memory && ranges[i].device == device;
    if (done)
      ranges[i].size = 0;
  }
  pthread_mutex_unlock(&lock);
  return done;
}

static bool is_registered(const void *memory) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 64; ++i)
    found = found || (ranges[i].size && (uintptr_t)memory - (uintptr_t)ranges[i].begin < ranges[i].size);
  pthread_mutex_unlock(&lock);
  return found;
}

static void *make(int kind, int device) {
  struct object *object = calloc(1, sizeof *object);
  pthread_mutex_lock(&lock);
  ++live[kind];
  object->number = ++made[kind];
  object->device = device;
  pthread_mutex_unlock(&lock);
  return object;
}

/* An event that comes now; but that it has come is told after the next wait for anything. */
static void record(void *event) {
  struct object *object = event;
  pthread_mutex_lock(&lock);
  object->order = ++recorded;
  clock_gettime(CLOCK_MONOTONIC, &object->at);
  pthread_mutex_unlock(&lock);
}

/* Begins or ends (NULL) the capture of a stream; returns how many launches the last one has taken. */
EXPORT int standin_capture(const void *stream) {
  int taken = __atomic_exchange_n(&captured_launches, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&captured_stream, stream, __ATOMIC_SEQ_CST);
  return taken;
}

static bool capturing(const void *stream) {
  return stream && __atomic_load_n(&captured_stream, __ATOMIC_SEQ_CST) == stream;
}

static bool taken_by_graph(const void *stream) {
  if (!capturing(stream))
    return false;
  __atomic_fetch_add(&captured_launches, 1, __ATOMIC_RELAXED);
  return true;
}

/* Where a thread that has not relaxed calls something that may wait or allocate while a graph is captured,
 * the capture fails. */
static bool unsafe(const char *call) {
  if (!__atomic_load_n(&captured_stream, __ATOMIC_SEQ_CST) || capture_mode == 2)
    return false;
  fprintf(stderr, "%s during a capture\n", call);
  return true;
}
enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_ISOLATION = 905 };
#define NOT_IN_CAPTURE                                                                                       \
  if (unsafe(__func__))                                                                                      \
  return CAPTURE_UNSUPPORTED

/* What a record on a captured stream answers: nobody outside may wait for it. One with a time has no use in a
 * graph, and is never passed. */
static int isolated(const struct object *event) {
  if (event->timed)
    fprintf(stderr, "an event with a time goes into a graph\n");
  return CAPTURE_ISOLATION;
}

static void waited(void) {
  pthread_mutex_lock(&lock);
  reached = recorded;
  pthread_mutex_unlock(&lock);
}

/* 0, 400 for an event without times or never recorded, 600 for one that has not come: codes of both vendors.
 */
static int elapsed(float *milliseconds, const void *first, const void *second) {
  const struct object *from = first, *to = second;
  pthread_mutex_lock(&lock);
  int result = !from->timed || !to->timed || !from->order || !to->order ? 400
               : from->order > reached || to->order > reached           ? 600
                                                                        : 0;
  double seconds = (double)(to->at.tv_sec - from->at.tv_sec);
  *milliseconds = (float)(1e3 * seconds + 1e-6 * (double)(to->at.tv_nsec - from->at.tv_nsec));
  pthread_mutex_unlock(&lock);
  return result;
}

static void destroy(int kind, void *object) {
  count(kind, -1);
  free(object);
}

/* The function of that name on a device; functions live for ever, like static data. */
static struct object *function_of(const char *name, int device) {
  static struct object functions[256];
  struct object *found = functions, *end = functions + sizeof functions / sizeof *functions;
  pthread_mutex_lock(&lock);
  while (found < end && *found->name &&
         (found->device != device || strncmp(found->name, name, sizeof found->name - 1)))
    ++found;
  if (found == end)
    abort(); /* more than any test has */
  if (!*found->name) {
    found->device = device;
    snprintf(found->name, sizeof found->name, "%s", name);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Memory keeps a header so that the wrong way of freeing is noticed. As the drivers' it begins at multiples
 * of 256 bytes. */
struct header {
  size_t way;
  char padding[248];
};

static void *memory_make(size_t size, size_t way) {
  struct header *header =
      size > (1ull << 40) ? NULL : aligned_alloc(sizeof *header, sizeof *header + (size + 255) / 256 * 256);
  if (!header)
    return NULL;
  header->way = way;
  memset(header + 1, 0xA5, size < 4096 ? size : 4096); /* it is new to nobody but its owner */
  count(MEMORY, 1);
  return header + 1;
}

/* 0, or 1 when the memory was made another way. */
static int memory_free(void *memory, size_t way) {
  struct header *header = (struct header *)memory - 1;
  if (header->way != way)
    return 1;
  count(MEMORY, -1);
  free(header);
  return 0;
}

/* The words behind the 64 bytes of an ELF header, or the text itself. */
static const char *tag(const char *image) { return memcmp(image, "\177ELF", 4) == 0 ? image + 64 : image; }

/* Adds the image to the file that the environment names. */
static void keep_image(const void *image) {
  const char *path = getenv("STANDIN_IMAGE_FILE"), *size = getenv("STANDIN_IMAGE_BYTES");
  FILE *file = path && size ? fopen(path, "ab") : NULL;
  if (!file)
    return;
  fwrite(image, 1, strtoul(size, NULL, 10), file);
  fclose(file);
}

/* Logs the parameters of a launch, in hexadecimal, where the environment tells their sizes. */
static void note_parameters(void **params) {
  const char *sizes = getenv("STANDIN_PARAMETERS");
  for (int i = 0; sizes && *sizes; ++i) {
    char *end;
    size_t size = strtoul(sizes, &end, 10);
    unsigned long long value = 0;
    memcpy(&value, params[i], size <= sizeof value ? size : sizeof value);
    note("parameter %d %llx", i, value);
    sizes = end + strspn(end, " ");
  }
}

static int number(const void *object) { return object ? ((const struct object *)object)->number : 0; }

EXPORT const char *standin_log(void) { return text; }

EXPORT void standin_clear(void) {
  pthread_mutex_lock(&lock);
  used = 0;
  text[0] = 0;
  __atomic_store_n(&filled, 0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
}

/* From now on every call that touches a device, and the one that starts the driver, answers `code`; 0 ends
 * that. */
EXPORT void standin_fail(int code) { __atomic_store_n(&failing, code, __ATOMIC_RELAXED); }

/* Counting of calls, which is off at first, for the same reason. */
enum { FUNCTIONS = 128 };
static struct {
  const char *name;
  int calls;
} called[FUNCTIONS]; /* in the order of their first calls */
static int counting; /* atomic */
static char fail_name[64];
static int fail_turn, fail_code;

/* Counts a call; the code that it is to answer, or 0. */
static int turn(const char *name) {
  if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
    return 0;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (called[i].name && strcmp(called[i].name, name) != 0)
    ++i;
  called[i].name = name;
  int calls = ++called[i].calls;
  bool fails = (calls == fail_turn || (fail_turn < 0 && calls >= -fail_turn)) && strcmp(name, fail_name) == 0;
  int code = fails ? fail_code : 0;
  pthread_mutex_unlock(&lock);
  return code;
}

/* The first line of every function of a driver that answers a code. */
#define TURN                                                                                                 \
  do {                                                                                                       \
    int code_ = turn(__func__);                                                                              \
    if (code_)                                                                                               \
      return code_;                                                                                          \
  } while (0)

/* Counts calls from now on, from 0. The call `number` (from 1) of the function `name` does nothing and
 * answers `code`; below 0: all calls from that one on; NULL: none does. */
EXPORT void standin_count(const char *name, int number_, int code) {
  pthread_mutex_lock(&lock);
  memset(called, 0, sizeof called);
  snprintf(fail_name, sizeof fail_name, "%s", name ? name : "");
  fail_turn = number_;
  fail_code = code;
  pthread_mutex_unlock(&lock);
  __atomic_store_n(&counting, 1, __ATOMIC_RELEASE);
}

/* How often a function has been called; by number, in the order of first calls. NULL: that is all. */
EXPORT const char *standin_calls(int index, int *calls) {
  pthread_mutex_lock(&lock);
  const char *name = index < FUNCTIONS ? called[index].name : NULL;
  *calls = name ? called[index].calls : 0;
  pthread_mutex_unlock(&lock);
  return name;
}

/* What launches do. */
typedef void standin_kernel(const char *name, const unsigned grid[3], const unsigned block[3], unsigned smem,
                            void **params);
static standin_kernel *kernels; /* atomic */

/* From now on each launch calls `run`, which is the kernel; at first launches do nothing. */
EXPORT void standin_kernels(standin_kernel *run) { __atomic_store_n(&kernels, run, __ATOMIC_RELEASE); }

static void run_kernel(const char *name, const unsigned grid[3], const unsigned block[3], unsigned smem,
                       void **params) {
  standin_kernel *run = __atomic_load_n(&kernels, __ATOMIC_ACQUIRE);
  if (run)
    run(name, grid, block, smem, params);
}

/* Ends the calling function where it is to fail, and with `code` unless `fine`. */
#define NEED(fine, code)                                                                                     \
  do {                                                                                                       \
    int told_ = __atomic_load_n(&failing, __ATOMIC_RELAXED);                                                 \
    if (told_ || !(fine))                                                                                    \
      return told_ ? told_ : (code);                                                                         \
  } while (0)

EXPORT int standin_live(int kind) {
  pthread_mutex_lock(&lock);
  int value = live[kind];
  pthread_mutex_unlock(&lock);
  return value;
}
