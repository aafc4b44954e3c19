/* trace.c: collects the lines of a trace, names its lanes, and writes them now and then and at exit.
 *
 * In the terms of the format, every device is a "process" and each of its streams a "thread" of it. A
 * device's number there is made of this process's, and a stream's of its address, so that the artifacts of a
 * process, which know nothing of each other, agree on them. */
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 256, ENOUGH = 1 << 16, LINE_BYTES = 4096, TEXT_BYTES = 200 };
#define ENDS_EARLY "The trace in \"%.300s\" ends early; the file cannot be written: %s."
static const uint64_t LONG_ENOUGH = 1000000000; /* ns that lines wait to be written */

struct lane {
  uint32_t process, thread; /* the format's words */
};

struct seen {
  struct seen *next;
  struct lane lane;
};

bool mgpu_trace_on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines;
static size_t used, room;
static uint64_t written_at;
static struct seen *lanes[BUCKETS];
static bool stopped, forked, watches_exit;
static int late;          /* the errno that stopped it, not told yet */
static char problem[512]; /* why the file could not be begun */
static int untold;        /* atomic: nobody has been told that */

static void take(void) { pthread_mutex_lock(&lock); }

static void let_go(void) { pthread_mutex_unlock(&lock); }

void mgpu_trace_lock(void) {
  mgpu_trace_device_lock();
  take();
}

void mgpu_trace_unlock(void) {
  let_go();
  mgpu_trace_device_unlock();
}

uint64_t mgpu_trace_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void mgpu_trace_start(void) {
  const char *setting = getenv("OFFLOAD_TRACE");
  if (!setting || !*setting)
    return;
  int code = mgpu_trace_file_begin(setting);
  if (code) {
    snprintf(
        problem, sizeof problem,
        "The environment variable OFFLOAD_TRACE asks for a trace in \"%.300s\", which cannot be written: %s.",
        mgpu_trace_file_path(), mgpu_trace_file_words(code));
    __atomic_store_n(&untold, 1, __ATOMIC_RELEASE);
    return;
  }
  written_at = mgpu_trace_now();
  forked = mgpu_trace_file_forked(); /* before this, which is when the fork is watched from */
  mgpu_trace_on = true;
  mgpu_trace_wrap();
}

int mgpu_trace_problem(void) {
  if (!__atomic_load_n(&untold, __ATOMIC_ACQUIRE) || !__atomic_exchange_n(&untold, 0, __ATOMIC_ACQ_REL))
    return 0;
  return mgpu_fail(MGPU_ERROR_INVALID, "%s", problem);
}

/* The bytes of the UTF-8 character that begins there, if it has more than one; else 0. JSON is UTF-8, and
 * names are whatever a program calls them. */
static int character_bytes(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  int bytes = at[0] >= 0xC2 && at[0] < 0xE0   ? 2
              : (at[0] & 0xF0) == 0xE0        ? 3
              : at[0] >= 0xF0 && at[0] < 0xF5 ? 4
                                              : 0;
  for (int i = 1; i < bytes; ++i)
    if ((at[i] & 0xC0) != 0x80)
      return 0;
  bool too_long = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xF0 && at[1] < 0x90);
  bool no_character = (at[0] == 0xED && at[1] > 0x9F) || (at[0] == 0xF4 && at[1] > 0x8F);
  return too_long || no_character ? 0 : bytes;
}

void mgpu_trace_quote(struct mgpu_text *to, const char *text) {
  mgpu_text_add(to, "\"");
  for (size_t i = 0; text[i] && i < TEXT_BYTES; ++i) {
    unsigned char c = (unsigned char)text[i];
    int bytes = character_bytes(text + i);
    if (bytes) {
      mgpu_text_add(to, "%.*s", bytes, text + i);
      i += (size_t)bytes - 1;
    } else if (c == '"' || c == '\\')
      mgpu_text_add(to, "\\%c", c);
    else if (c < 0x20 || c > 0x7E)
      mgpu_text_add(to, "\\u%04x", c);
    else
      mgpu_text_add(to, "%c", c);
  }
  mgpu_text_add(to, "\"");
}

/* The functions from here on are called with the lock held. */

static void write_lines(void) {
  int code = used ? mgpu_trace_file_append(lines, used) : 0;
  used = 0;
  written_at = mgpu_trace_now();
  stopped = stopped || code != 0;
  late = code ? code : late;
}

static void append(const struct mgpu_text *line) {
  if (stopped)
    return;
  if (used + line->used > room) {
    size_t wanted = 2 * (used + line->used) + ENOUGH;
    char *grown = realloc(lines, wanted);
    if (!grown) {
      stopped = true;
      late = ENOMEM;
      return;
    }
    lines = grown;
    room = wanted;
  }
  memcpy(lines + used, line->data, line->used);
  used += line->used;
}

/* False the second time. */
static bool is_new(struct lane lane) {
  struct seen **bucket = &lanes[(lane.process * 31 + lane.thread * 0x9E3779B9u) >> 24];
  for (struct seen *at = *bucket; at; at = at->next)
    if (at->lane.process == lane.process && at->lane.thread == lane.thread)
      return false;
  struct seen *made = malloc(sizeof *made);
  if (made) {
    *made = (struct seen){*bucket, lane};
    *bucket = made;
  }
  return true;
}

/* `what` is process_name or thread_name. */
static void name_lane(const char *what, struct lane lane, const char *name) {
  char buffer[LINE_BYTES];
  struct mgpu_text line = {buffer, sizeof buffer, 0};
  mgpu_text_add(&line, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what,
                lane.process, lane.thread);
  mgpu_trace_quote(&line, name);
  mgpu_text_add(&line, "}}");
  append(&line);
}

static void name_process(uint32_t process) {
  char name[64] = "";
  FILE *file = fopen("/proc/self/comm", "re");
  if (file) {
    if (fgets(name, sizeof name - 16, file))
      name[strcspn(name, "\n")] = 0;
    fclose(file);
  }
  char whole[96];
  snprintf(whole, sizeof whole, "%s (%u)", *name ? name : "process", process);
  name_lane("process_name", (struct lane){process, 0}, whole);
}

static void add_line(struct lane lane, const struct mgpu_trace_event *event, uint64_t begin, uint64_t end) {
  char buffer[LINE_BYTES];
  struct mgpu_text line = {buffer, sizeof buffer, 0};
  uint64_t length = end > begin ? end - begin : 0;
  mgpu_text_add(&line, ",\n{\"ph\":\"X\",\"name\":");
  mgpu_trace_quote(&line, event->name);
  mgpu_text_add(&line,
                ",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%llu.%03u,\"dur\":%llu.%03u,\"args\":{%s}}",
                event->category, lane.process, lane.thread, (unsigned long long)(begin / 1000),
                (unsigned)(begin % 1000), (unsigned long long)(length / 1000), (unsigned)(length % 1000),
                event->detail);
  append(&line);
}

static void at_exit(void *unused) {
  (void)unused;
  mgpu_trace_collect(-1, 0);
  take();
  write_lines();
  int code = late;
  late = 0;
  let_go();
  if (code) /* no call is left that could fail */
    fprintf(stderr, "offload: " ENDS_EARLY "\n", mgpu_trace_file_path(), mgpu_trace_file_words(code));
}

/* The C library's own atexit stands in an archive of its development package, which artifacts do not link;
 * this is what it calls. Registered after the driver has started, and so run before the driver's end. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

/* The functions from here on take the lock. */

static struct lane own_lane(void) { return (struct lane){(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid)}; }

void mgpu_trace_name_thread(bool worker) {
  struct lane lane = own_lane();
  char name[32] = "";
  take();
  if (is_new((struct lane){lane.process, 0}))
    name_process(lane.process);
  if (is_new(lane)) {
    pthread_getname_np(pthread_self(), name, sizeof name);
    name_lane("thread_name", lane,
              worker                        ? "offload worker"
              : lane.thread == lane.process ? "main thread"
                                            : name);
  }
  let_go();
}

void mgpu_trace_add(const struct mgpu_trace_event *event, uint64_t begin, uint64_t end, bool writes) {
  int code = 0;
  take();
  if (!watches_exit) {
    watches_exit = true;
    __cxa_atexit(at_exit, NULL, &lock);
  }
  add_line(own_lane(), event, begin, end);
  if (writes) {
    /* A child of fork often ends without running exit handlers. */
    if (forked || used >= ENOUGH || end > written_at + LONG_ENOUGH)
      write_lines();
    code = late;
    late = 0;
  }
  let_go();
  if (code)
    mgpu_fail(MGPU_ERROR_INVALID, ENDS_EARLY, mgpu_trace_file_path(), mgpu_trace_file_words(code));
}

void mgpu_trace_add_device(int backend, int device, const void *stream, const struct mgpu_trace_event *event,
                           uint64_t begin, uint64_t end) {
  enum { PROCESS_BITS = 22, DEVICE_BITS = 6, BACKEND_BITS = 2, ABOVE_PROCESSES = 1 << 30 };
  _Static_assert(MGPU_MAX_DEVICES <= 1 << DEVICE_BITS && (int)MGPU_BACKENDS <= 1 << BACKEND_BITS, "bits");
  uint32_t process = ((uint32_t)getpid() & ((1u << PROCESS_BITS) - 1)) << BACKEND_BITS | (uint32_t)backend;
  /* Addresses are far apart; the default streams are small numbers, NULL, 1 and 2, as no address is. */
  uintptr_t number = (uintptr_t)stream, id = number < 16 ? number : number >> 4;
  struct lane lane = {(process << DEVICE_BITS | (uint32_t)device) | (uint32_t)ABOVE_PROCESSES,
                      (uint32_t)id & 0x7FFFFFFF};
  mgpuDeviceInfo info;
  char name[256];
  take();
  if (is_new((struct lane){lane.process, UINT32_MAX}) &&
      mgpu_backends[backend]->device_info(device, &info) == 0) {
    snprintf(name, sizeof name, "%s:%d %s (%s)", info.backend, device, info.name, info.chip);
    name_lane("process_name", (struct lane){lane.process, 0}, name);
  }
  if (is_new(lane)) {
    snprintf(name, sizeof name, "stream %p", stream);
    name_lane("thread_name", lane, name);
  }
  add_line(lane, event, begin, end);
  let_go();
}

void mgpu_trace_in_child(void) {
  used = 0; /* the parent writes those */
  forked = true;
  for (int i = 0; i < BUCKETS; ++i) {
    for (struct seen *at = lanes[i], *next; at; at = next) {
      next = at->next;
      free(at);
    }
    lanes[i] = NULL;
  }
  mgpu_trace_device_in_child();
  late = mgpu_trace_on && !stopped ? mgpu_trace_file_fork() : late;
  stopped = stopped || late;
}
