/* schedule.c: queues of the host's streams whose work runs as late as it may, in an order drawn by
 * chance.
 *
 * A stream is a queue. Its operations run one after another; one that waits for an event is passed when the
 * stream of that event has come to where the event was recorded. There is no thread here: whoever waits marks
 * what it needs (in each stream a first part of the queue) and runs marked operations until its own are done;
 * several may do so at once. An operation runs without the lock held. */
#include "host/schedule.h"

#include "core/numerals.h"
#include "core/thread.h"
#include "host/turns.h"
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };

/* What drivers' handles point to, found by address: a handle of another's making must not be read. */
struct object {
  struct object *next;
  const void *key;
};

struct stream {
  struct object object; /* first */
  struct operation *first, *last;
  struct operation *unmarked;        /* the first that nobody needs yet */
  uint64_t put, done, needed;        /* numbers of operations: the last put, run and needed */
  struct stream *previous, *further; /* in the list of those with operations */
  struct stream *due;                /* the next that is to be marked, while something is */
  unsigned users;                    /* events, operations and threads that point here */
  bool running, destroyed, is_due;
};

struct operation {
  struct operation *next;
  uint64_t number;
  mgpu_host_action *action; /* NULL: waits for operation `target` of `waited` */
  struct stream *waited;
  uint64_t target;
  struct mgpu_trace_work *traced; /* or NULL */
  alignas(64) unsigned char data[];
};

struct event {
  struct object object; /* first */
  struct stream *stream;
  uint64_t number; /* of its last operation when the event was recorded */
};

/* NULL when out of memory. Needs no lock. */
static struct operation *make_operation(size_t size) {
  void *made = NULL;
  if (posix_memalign(&made, alignof(struct operation), sizeof(struct operation) + size))
    return NULL;
  return memset(made, 0, sizeof(struct operation));
}

int mgpu_host_schedule_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static struct object *streams[BUCKETS], *events[BUCKETS];
static struct stream *busy; /* streams with operations */
static uint64_t queued, chance, eagerness;
static bool environment_read;
static int failure; /* the first since somebody waited */
static char failure_text[256];

void mgpu_host_schedule_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_host_schedule_unlock(void) { pthread_mutex_unlock(&lock); }

/* 0, or the code of a failure, and why. What the work calls back is inside of that turn. Called without the
 * lock. */
static int run(struct operation *operation, const struct mgpu_host_turn *turn, struct mgpu_text *why) {
  struct mgpu_thread *thread = mgpu_thread();
  const void *outer = thread->turn;
  uint64_t begin = operation->traced ? mgpu_trace_now() : 0;
  if (turn->stream)
    thread->turn = turn;
  int code = operation->action(operation->data, why);
  thread->turn = outer;
  if (operation->traced)
    mgpu_trace_host_ran(operation->traced, begin);
  return code;
}

/* The functions from here on are called with the lock held. */

/* splitmix64 */
static uint64_t draw(uint64_t below) {
  uint64_t z = chance += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) % below;
}

static struct object **bucket(struct object **table, const void *key) {
  return &table[((uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u) >> 56];
}

static void add(struct object **table, struct object *object, const void *key) {
  struct object **place = bucket(table, key);
  object->key = key;
  object->next = *place;
  *place = object;
}

static struct object **find(struct object **table, const void *key) {
  struct object **place = bucket(table, key);
  while (*place && (*place)->key != key)
    place = &(*place)->next;
  return place;
}

/* A stream of another's making gets a queue when it is first met. NULL when out of memory. */
static struct stream *stream_of(const void *key) {
  struct object *found = *find(streams, key);
  if (!found) {
    found = calloc(1, sizeof(struct stream));
    if (found)
      add(streams, found, key);
  }
  return (struct stream *)found;
}

static void free_if_unused(struct stream *stream) {
  if (stream->destroyed && !stream->first && !stream->users)
    free(stream);
}

static void leave(struct stream *stream) {
  --stream->users;
  free_if_unused(stream);
}

static void append(struct stream *stream, struct operation *operation) {
  operation->next = NULL;
  operation->number = ++stream->put;
  if (stream->first) {
    stream->last->next = operation;
  } else {
    stream->first = operation;
    stream->previous = NULL;
    stream->further = busy;
    if (busy)
      busy->previous = stream;
    busy = stream;
  }
  stream->last = operation;
  if (!stream->unmarked)
    stream->unmarked = operation;
  ++queued;
}

/* Takes the first operation, which has run, off its stream. */
static void finish(struct stream *stream) {
  struct operation *operation = stream->first;
  ++stream->users; /* it may be what the operation waited for */
  stream->first = operation->next;
  stream->done = operation->number;
  if (!stream->first) {
    *(stream->previous ? &stream->previous->further : &busy) = stream->further;
    if (stream->further)
      stream->further->previous = stream->previous;
  }
  if (operation->waited)
    leave(operation->waited);
  free(operation);
  --queued;
  leave(stream);
  pthread_cond_broadcast(&progress);
}

/* Operations up to `number` are needed: puts the stream on a list if some of them are not marked yet. */
static void mark_later(struct stream *stream, uint64_t number, struct stream **list) {
  if (number > stream->needed)
    stream->needed = number;
  if (stream->is_due || !stream->unmarked || stream->unmarked->number > stream->needed)
    return;
  stream->is_due = true;
  stream->due = *list;
  *list = stream;
}

/* Marks the stream's operations up to `number`, and all that they wait for. Streams may wait for each other
 * in turn as often as the program likes, so it is a list that remembers them and not the stack. */
static void need(struct stream *stream, uint64_t number) {
  struct stream *list = NULL;
  mark_later(stream, number, &list);
  while (list) {
    struct stream *next = list;
    list = next->due;
    next->is_due = false;
    while (next->unmarked && next->unmarked->number <= next->needed) {
      struct operation *operation = next->unmarked;
      next->unmarked = operation->next;
      if (operation->waited)
        mark_later(operation->waited, operation->target, &list);
    }
  }
}

static void need_all(void) {
  for (struct stream *stream = busy; stream; stream = stream->further)
    need(stream, stream->put);
}

/* More runs than anybody needs, so that what nobody waits for can also come early. How often depends on the
 * seed: a fault may show only where nearly all work is late, or only where it is not. */
static void need_more(void) {
  if (draw(4) >= eagerness)
    return;
  if (draw(2)) {
    need_all();
    return;
  }
  uint64_t count = 0;
  for (struct stream *stream = busy; stream; stream = stream->further)
    ++count;
  struct stream *stream = busy;
  for (uint64_t skip = draw(count); skip; --skip)
    stream = stream->further;
  need(stream, stream->done + 1 + draw(stream->put - stream->done));
}

static void keep(int code, const char *why) {
  if (failure)
    return;
  failure = code;
  struct mgpu_text text = {failure_text, sizeof failure_text, 0};
  mgpu_text_add(&text, "%s", why);
}

/* Runs one operation that is marked and ready. False when there is none: others run those that there are. */
static bool step(void) {
  struct stream *chosen = NULL;
  uint64_t ready = 0;
  for (struct stream *stream = busy; stream; stream = stream->further) {
    const struct operation *first = stream->first;
    if (!stream->running && first->number <= stream->needed &&
        (!first->waited || first->waited->done >= first->target) && draw(++ready) == 0)
      chosen = stream;
  }
  if (!chosen)
    return false;
  if (chosen->first->action) {
    struct operation *operation = chosen->first;
    char buffer[sizeof failure_text] = "";
    struct mgpu_text why = {buffer, sizeof buffer, 0};
    struct mgpu_host_turn turn = {
        .stream = chosen->object.key, .owner = pthread_self(), .outer = mgpu_thread()->turn};
    chosen->running = true;
    pthread_mutex_unlock(&lock);
    int code = run(operation, &turn, &why);
    pthread_mutex_lock(&lock);
    chosen->running = false;
    if (code)
      keep(code, buffer);
  }
  finish(chosen);
  return true;
}

/* Whether nothing runs but the launches whose blocks have called back to here: these wait for themselves. */
static bool is_stuck(void) {
  if (!mgpu_thread()->turn)
    return false;
  for (struct stream *stream = busy; stream; stream = stream->further)
    if (stream->running && !mgpu_host_turn_inside(stream->object.key))
      return false;
  return true;
}

/* False when no operation is left that could run, now or later. */
static bool step_or_wait(void) {
  if (step())
    return true;
  if (is_stuck())
    return false;
  pthread_cond_wait(&progress, &lock);
  return true;
}

static void run_until(struct stream *stream, uint64_t number) {
  ++stream->users;
  need(stream, number);
  if (stream->done < number)
    need_more();
  while (stream->done < number)
    if (!step_or_wait()) {
      keep(MGPU_ERROR_INVALID,
           "A block of a kernel calls back and waits for work that comes after the kernel.");
      break;
    }
  leave(stream);
}

/* Whether what is put there now, or waits there, is a part of a launch whose block has called back: on the
 * launch's stream, and on the thread's where that waits for the launch, as it was the thread's before a block
 * ran on it. */
static bool is_called_back(const void *pointer) {
  struct stream *stream = (struct stream *)*find(streams, pointer);
  if (mgpu_host_turn_inside(pointer))
    return true;
  if (!stream || !stream->first || !mgpu_thread()->turn || !mgpu_thread_has(pointer))
    return false;
  uint64_t number = stream->put;
  ++stream->users;
  need(stream, number);
  while (stream->done < number && step_or_wait())
    ;
  bool waits = stream->done < number;
  leave(stream);
  return waits;
}

/* False when some is left, which comes after a kernel whose block has called back. */
static bool run_all(void) {
  while (busy) {
    need_all();
    if (!step_or_wait())
      return false;
  }
  return true;
}

static bool switch_to(uint64_t seed) {
  if (!run_all())
    return false;
  mgpu_host_quarantine_end();
  environment_read = true;
  chance = seed;
  eagerness = draw(4);
  __atomic_store_n(&mgpu_host_schedule_state, seed != 0, __ATOMIC_RELEASE);
  return true;
}

/* OFFLOAD_HOST_SCHEDULE, when the first stream or event is made; 0, or an error code. */
static int read_environment(void) {
  const char *text = environment_read ? NULL : getenv("OFFLOAD_HOST_SCHEDULE");
  char *end = NULL;
  errno = 0;
  unsigned long long seed = text ? mgpu_strtoull(text, &end, 10) : 0;
  if (text && *text && (*end || *text < '0' || *text > '9' || errno == ERANGE))
    return MGPU_ERROR_INVALID;
  if (!environment_read)
    switch_to(seed);
  return 0;
}

/* The functions from here on take the lock. */

static int create(struct object **table, size_t size, void **out) {
  struct object *object = calloc(1, size);
  if (!object)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a stream or event.");
  pthread_mutex_lock(&lock);
  int wrong = read_environment();
  if (!wrong)
    add(table, object, object);
  pthread_mutex_unlock(&lock);
  if (wrong) {
    free(object);
    return mgpu_fail(
        wrong,
        "The environment variable OFFLOAD_HOST_SCHEDULE is \"%s\"; it must be a number of at most 64 bits.",
        getenv("OFFLOAD_HOST_SCHEDULE"));
  }
  *out = object;
  return 0;
}

/* Lets go of the lock; hands on what failed since somebody waited. */
static int unlock_after_wait(void) {
  int code = failure;
  char text[sizeof failure_text];
  if (code) {
    memcpy(text, failure_text, sizeof text);
    failure = 0;
  }
  pthread_mutex_unlock(&lock);
  return code ? mgpu_fail(code, "%s", text) : 0;
}

int mgpu_host_stream_create(int device, void **stream) {
  (void)device;
  return create(streams, sizeof(struct stream), stream);
}

/* Work that is still on the stream keeps it alive until somebody needs that work. */
int mgpu_host_stream_destroy(int device, void *pointer) {
  (void)device;
  pthread_mutex_lock(&lock);
  struct object **place = find(streams, pointer);
  struct stream *stream = (struct stream *)*place;
  if (stream) {
    *place = stream->object.next;
    stream->destroyed = true;
    free_if_unused(stream);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

int mgpu_host_stream_sync(int device, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on()) {
    mgpu_host_turn_wait(pointer);
    return 0;
  }
  pthread_mutex_lock(&lock);
  bool called_back = is_called_back(pointer);
  struct stream *stream = (struct stream *)*find(streams, pointer);
  if (stream && !called_back) /* else all before the launch has run */
    run_until(stream, stream->put);
  return unlock_after_wait();
}

int mgpu_host_event_create(int device, void **event) {
  (void)device;
  return create(events, sizeof(struct event), event);
}

int mgpu_host_event_destroy(int device, void *pointer) {
  (void)device;
  pthread_mutex_lock(&lock);
  struct object **place = find(events, pointer);
  struct event *event = (struct event *)*place;
  if (event) {
    *place = event->object.next;
    if (event->stream)
      leave(event->stream);
    free(event);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

int mgpu_host_event_record(int device, void *pointer, void *on) {
  (void)device;
  if (!mgpu_host_schedule_on()) {
    mgpu_host_turn_wait(on); /* then all that the event stands for is done */
    return 0;
  }
  pthread_mutex_lock(&lock);
  bool called_back = is_called_back(on);
  struct event *event = (struct event *)*find(events, pointer);
  struct stream *stream = event ? stream_of(on) : NULL;
  if (stream) {
    ++stream->users;
    if (event->stream)
      leave(event->stream);
    event->stream = stream;
    event->number = called_back ? stream->done : stream->put;
  }
  pthread_mutex_unlock(&lock);
  if (event && !stream)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a stream.");
  return 0;
}

int mgpu_host_stream_wait_event(int device, void *waiter, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on())
    return 0;
  int code = 0;
  pthread_mutex_lock(&lock);
  bool called_back = is_called_back(waiter);
  const struct event *event = (const struct event *)*find(events, pointer);
  struct stream *waited = event ? event->stream : NULL;
  if (waited && waited->done < event->number && called_back) {
    run_until(waited, event->number); /* what comes next there runs at once */
    return unlock_after_wait();
  }
  if (waited && waited->done < event->number) {
    struct stream *stream = stream_of(waiter);
    struct operation *wait = stream ? make_operation(0) : NULL;
    if (wait) {
      wait->waited = waited;
      wait->target = event->number;
      ++waited->users;
      append(stream, wait);
    } else {
      code = MGPU_ERROR_MEMORY;
    }
  }
  pthread_mutex_unlock(&lock);
  return code ? mgpu_fail(code, "Out of memory for a stream's wait.") : 0;
}

int mgpu_host_event_sync(int device, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on())
    return 0;
  pthread_mutex_lock(&lock);
  const struct event *event = (const struct event *)*find(events, pointer);
  if (event && event->stream)
    run_until(event->stream, event->number);
  return unlock_after_wait();
}

void *mgpu_host_schedule_data(size_t size) {
  struct operation *made = make_operation(size);
  if (!made)
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for %zu bytes of work on a stream.", size);
  return made ? made->data : NULL;
}

int mgpu_host_schedule_put(void *pointer, mgpu_host_action *action, void *data) {
  struct operation *operation =
      (struct operation *)(void *)((unsigned char *)data - offsetof(struct operation, data));
  operation->action = action;
  operation->traced = mgpu_trace_on ? mgpu_trace_host_take() : NULL;
  pthread_mutex_lock(&lock);
  /* Another thread may have switched it off since the caller looked. What blocks call back is a part of their
   * launch, for its stream. */
  bool put_off = !is_called_back(pointer) && mgpu_host_schedule_on();
  struct stream *stream = put_off ? stream_of(pointer) : NULL;
  if (stream)
    append(stream, operation);
  pthread_mutex_unlock(&lock);
  if (stream)
    return 0;
  int code = MGPU_ERROR_MEMORY;
  char buffer[sizeof failure_text] = "Out of memory for a stream.";
  struct mgpu_text why = {buffer, sizeof buffer, 0};
  if (!put_off) {
    struct mgpu_host_turn turn;
    mgpu_host_turn_begin(&turn, pointer);
    code = run(operation, &turn, &why);
    mgpu_host_turn_end(&turn);
  }
  free(operation);
  return code ? mgpu_fail(code, "%s", buffer) : 0;
}

void mgpu_host_schedule_drain(void) {
  pthread_mutex_lock(&lock);
  run_all();
  pthread_mutex_unlock(&lock);
}

uint64_t mgpu_host_schedule_queued(void) {
  pthread_mutex_lock(&lock);
  uint64_t now = queued;
  pthread_mutex_unlock(&lock);
  return now;
}

uint64_t mgpu_host_schedule_late_writes(void) {
  pthread_mutex_lock(&lock);
  mgpu_host_quarantine_end();
  uint64_t now = mgpu_host_quarantine_damaged();
  pthread_mutex_unlock(&lock);
  return now;
}

/* Whether the calling thread runs the stream's first operation, whose block has forked. */
static bool is_mine(const struct stream *stream) {
  const struct mgpu_host_turn *turn = mgpu_thread()->turn;
  while (turn && (turn->stream != stream->object.key || !pthread_equal(turn->owner, pthread_self())))
    turn = turn->outer;
  return turn;
}

/* What other threads were running is lost, as those threads are. */
void mgpu_host_schedule_in_child(void) {
  progress = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* nobody waits any more */
  for (struct stream *stream = busy, *next; stream; stream = next) {
    next = stream->further;
    if (stream->running && !is_mine(stream)) {
      stream->running = false;
      finish(stream);
    }
  }
}

void mgpuHostSchedule(uint64_t seed) {
  pthread_mutex_lock(&lock);
  bool switched = switch_to(seed);
  unlock_after_wait(); /* with 0, nobody waits here any more for what has failed */
  if (!switched)
    mgpu_fail(MGPU_ERROR_INVALID, "A block of a kernel calls mgpuHostSchedule, with work behind the kernel.");
}
