/* schedule.c: runs what waits on the host's streams as late as it may, in an order drawn by chance.
 *
 * There is no thread here: whoever waits marks what it needs (in each stream a first part of the queue) and
 * runs marked operations until its own are done; several may do so at once. An operation runs without the
 * lock held. */
#include "host/schedule.h"

#include "core/numerals.h"
#include "core/thread.h"
#include "host/queues.h"
#include "host/turns.h"
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int mgpu_host_schedule_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static uint64_t chance, eagerness;
static bool environment_read;
static int failure; /* the first since somebody waited */
static char failure_text[256];

void mgpu_host_schedule_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_host_schedule_unlock(void) { pthread_mutex_unlock(&lock); }

/* 0, or the code of a failure, and why. What the work calls back is inside of that turn. Called without the
 * lock. */
static int run(struct mgpu_host_operation *operation, const struct mgpu_host_turn *turn,
               struct mgpu_text *why) {
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

/* More runs than anybody needs, so that what nobody waits for can also come early. How often depends on the
 * seed: a fault may show only where nearly all work is late, or only where it is not. */
static void need_more(void) {
  if (draw(4) >= eagerness)
    return;
  if (draw(2)) {
    mgpu_host_queue_need_all();
    return;
  }
  uint64_t count = 0;
  for (struct mgpu_host_stream *stream = mgpu_host_queues_busy; stream; stream = stream->further)
    ++count;
  struct mgpu_host_stream *stream = mgpu_host_queues_busy;
  for (uint64_t skip = draw(count); skip; --skip)
    stream = stream->further;
  mgpu_host_queue_need(stream, stream->done + 1 + draw(stream->put - stream->done));
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
  struct mgpu_host_stream *chosen = NULL;
  uint64_t ready = 0;
  for (struct mgpu_host_stream *stream = mgpu_host_queues_busy; stream; stream = stream->further) {
    const struct mgpu_host_operation *first = stream->first;
    if (!stream->running && first->number <= stream->needed &&
        (!first->waited || first->waited->done >= first->target) && draw(++ready) == 0)
      chosen = stream;
  }
  if (!chosen)
    return false;
  if (chosen->first->action) {
    struct mgpu_host_operation *operation = chosen->first;
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
  mgpu_host_queue_finish(chosen);
  pthread_cond_broadcast(&progress);
  return true;
}

/* Whether nothing runs but the launches whose blocks have called back to here: these wait for themselves. */
static bool is_stuck(void) {
  if (!mgpu_thread()->turn)
    return false;
  for (struct mgpu_host_stream *stream = mgpu_host_queues_busy; stream; stream = stream->further)
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

void mgpu_host_schedule_run_until(struct mgpu_host_stream *stream, uint64_t number) {
  ++stream->users;
  mgpu_host_queue_need(stream, number);
  if (stream->done < number)
    need_more();
  while (stream->done < number)
    if (!step_or_wait()) {
      keep(MGPU_ERROR_INVALID,
           "A block of a kernel calls back and waits for work that comes after the kernel.");
      break;
    }
  mgpu_host_stream_leave(stream);
}

bool mgpu_host_schedule_called_back(const void *pointer) {
  struct mgpu_host_stream *stream = mgpu_host_stream_known(pointer);
  if (mgpu_host_turn_inside(pointer))
    return true;
  if (!stream || !stream->first || !mgpu_thread()->turn || !mgpu_thread_has(pointer))
    return false;
  uint64_t number = stream->put;
  ++stream->users;
  mgpu_host_queue_need(stream, number);
  while (stream->done < number && step_or_wait())
    ;
  bool waits = stream->done < number;
  mgpu_host_stream_leave(stream);
  return waits;
}

/* False when some is left, which comes after a kernel whose block has called back. */
static bool run_all(void) {
  while (mgpu_host_queues_busy) {
    mgpu_host_queue_need_all();
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

int mgpu_host_schedule_read_environment(void) {
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

int mgpu_host_schedule_unlock_after_wait(void) {
  int code = failure;
  char text[sizeof failure_text];
  if (code) {
    memcpy(text, failure_text, sizeof text);
    failure = 0;
  }
  pthread_mutex_unlock(&lock);
  return code ? mgpu_fail(code, "%s", text) : 0;
}

/* The functions from here on take the lock. */

void *mgpu_host_schedule_data(size_t size) {
  struct mgpu_host_operation *made = mgpu_host_operation_make(size);
  if (!made)
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for %zu bytes of work on a stream.", size);
  return made ? made->data : NULL;
}

int mgpu_host_schedule_put(void *pointer, mgpu_host_action *action, void *data) {
  struct mgpu_host_operation *operation =
      (struct mgpu_host_operation *)(void *)((unsigned char *)data -
                                             offsetof(struct mgpu_host_operation, data));
  operation->action = action;
  operation->traced = mgpu_trace_on ? mgpu_trace_host_take() : NULL;
  pthread_mutex_lock(&lock);
  /* Another thread may have switched it off since the caller looked. What blocks call back is a part of their
   * launch, for its stream. */
  bool put_off = !mgpu_host_schedule_called_back(pointer) && mgpu_host_schedule_on();
  struct mgpu_host_stream *stream = put_off ? mgpu_host_stream_of(pointer) : NULL;
  if (stream)
    mgpu_host_queue_append(stream, operation);
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
  uint64_t now = mgpu_host_queued;
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
static bool is_mine(const struct mgpu_host_stream *stream) {
  const struct mgpu_host_turn *turn = mgpu_thread()->turn;
  while (turn && (turn->stream != stream->object.key || !pthread_equal(turn->owner, pthread_self())))
    turn = turn->outer;
  return turn;
}

/* What other threads were running is lost, as those threads are. */
void mgpu_host_schedule_in_child(void) {
  progress = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* nobody waits any more */
  for (struct mgpu_host_stream *stream = mgpu_host_queues_busy, *next; stream; stream = next) {
    next = stream->further;
    if (stream->running && !is_mine(stream)) {
      stream->running = false;
      mgpu_host_queue_finish(stream);
    }
  }
}

void mgpuHostSchedule(uint64_t seed) {
  pthread_mutex_lock(&lock);
  bool switched = switch_to(seed);
  mgpu_host_schedule_unlock_after_wait(); /* with 0, nobody waits here any more for what has failed */
  if (!switched)
    mgpu_fail(MGPU_ERROR_INVALID, "A block of a kernel calls mgpuHostSchedule, with work behind the kernel.");
}
