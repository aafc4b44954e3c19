/* turns.c: one thread at a time works on a stream of the host backend. Streams are known by their address,
 * which is not read: another's stream may be anything. */
#include "host/turns.h"

#include "core/thread.h"
#include "trace/trace.h"

#include <stdint.h>

/* Streams share few locks, which are held for as long as it takes to look at a short list. */
struct row {
  pthread_mutex_t lock;
  pthread_cond_t ended;
  struct mgpu_host_turn *first; /* atomic where the lock is not held */
  unsigned waiting;
};

#define EIGHT(row) row, row, row, row, row, row, row, row
#define ROW {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0}

enum { ROWS = 8 };
static struct row rows[ROWS] = {EIGHT(ROW)};

static struct row *row_of(const void *stream) {
  return &rows[((uint64_t)(uintptr_t)stream * 0x9E3779B97F4A7C15u) >> 61];
}

/* Whether the calling thread runs blocks of that turn, or of one that these have launched. */
static bool is_inside(const struct mgpu_host_turn *turn) {
  const struct mgpu_host_turn *mine = mgpu_thread()->turn;
  while (mine && mine != turn)
    mine = mine->outer;
  return mine;
}

bool mgpu_host_turn_inside(const void *stream) {
  const struct mgpu_host_turn *mine = mgpu_thread()->turn;
  while (mine && mine->stream != stream)
    mine = mine->outer;
  return mine;
}

/* With the row's lock held. */
static void wait_for_others(struct row *row, const void *stream) {
  pthread_t self = pthread_self();
  for (const struct mgpu_host_turn *turn = row->first; turn;)
    if (turn->stream == stream && !pthread_equal(turn->owner, self) && !is_inside(turn)) {
      ++row->waiting;
      pthread_cond_wait(&row->ended, &row->lock);
      --row->waiting;
      turn = row->first;
    } else {
      turn = turn->next;
    }
}

void mgpu_host_turn_begin(struct mgpu_host_turn *turn, const void *stream) {
  turn->stream = stream;
  if (!stream)
    return;
  struct row *row = row_of(stream);
  turn->owner = pthread_self();
  turn->outer = mgpu_thread()->turn;
  pthread_mutex_lock(&row->lock);
  wait_for_others(row, stream);
  turn->next = row->first;
  __atomic_store_n(&row->first, turn, __ATOMIC_RELEASE);
  if (mgpu_trace_on)
    mgpu_thread()->times = (struct mgpu_turn_times){mgpu_trace_now(), 0};
  pthread_mutex_unlock(&row->lock);
}

void mgpu_host_turn_end(struct mgpu_host_turn *turn) {
  if (!turn->stream)
    return;
  struct row *row = row_of(turn->stream);
  pthread_mutex_lock(&row->lock);
  struct mgpu_host_turn **place = &row->first;
  while (*place && *place != turn) /* it is not there in the child of a fork that a kernel has called */
    place = &(*place)->next;
  if (*place)
    __atomic_store_n(place, turn->next, __ATOMIC_RELEASE);
  if (mgpu_trace_on)
    mgpu_thread()->times.ended = mgpu_trace_now();
  if (row->waiting)
    pthread_cond_broadcast(&row->ended);
  pthread_mutex_unlock(&row->lock);
}

void mgpu_host_turn_wait(const void *stream) {
  struct row *row = row_of(stream);
  if (!stream || !__atomic_load_n(&row->first, __ATOMIC_ACQUIRE))
    return;
  pthread_mutex_lock(&row->lock);
  wait_for_others(row, stream);
  pthread_mutex_unlock(&row->lock);
}

void mgpu_host_turns_lock(void) {
  for (int i = 0; i < ROWS; ++i)
    pthread_mutex_lock(&rows[i].lock);
}

void mgpu_host_turns_unlock(void) {
  for (int i = ROWS; i-- > 0;)
    pthread_mutex_unlock(&rows[i].lock);
}

void mgpu_host_turns_in_child(void) {
  for (int i = 0; i < ROWS; ++i) {
    rows[i].first = NULL;
    rows[i].waiting = 0;
    rows[i].ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* nobody waits any more */
  }
}
