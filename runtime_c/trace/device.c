/* device.c: times of work on GPUs: marks (the driver's events) before and after it, asked for later.
 *
 * Nobody waits for a mark. A driver tells times between two marks, so each device has a base, a mark whose
 * time on the host's clock is known; it moves on, because differences are floats. Marks are used again and
 * never given back: a driver bounds how much unfinished work there is. */
#include "trace/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 256 };
static const double BASE_LASTS = 1e9; /* ns */

struct pending {
  struct pending *next;
  void *from, *to; /* marks */
  void *stream;
  struct mgpu_trace_event event; /* its texts follow; the category is static */
  char texts[];
};

struct spare {
  struct spare *next;
  void *mark;
};

static struct clock {
  void *base;
  double base_at; /* ns */
  struct spare *spares;
  struct pending *pending;
  unsigned count, collect_at; /* of pending */
} clocks[MGPU_BACKENDS][MGPU_MAX_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void mgpu_trace_device_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_trace_device_unlock(void) { pthread_mutex_unlock(&lock); }

/* The functions from here on are called with the lock held. */

static void *take_mark(int backend, int device) {
  struct clock *clock = &clocks[backend][device];
  struct spare *spare = clock->spares;
  void *mark = NULL;
  if (!spare)
    return mgpu_backends[backend]->mark_create(device, &mark) ? mark : NULL;
  clock->spares = spare->next;
  mark = spare->mark;
  free(spare);
  return mark;
}

static void put_mark(struct clock *clock, void *mark) {
  struct spare *spare = mark ? malloc(sizeof *spare) : NULL;
  if (spare) {
    *spare = (struct spare){clock->spares, mark};
    clock->spares = spare;
  }
}

static bool has_base(int backend, int device) {
  struct clock *clock = &clocks[backend][device];
  if (clock->base)
    return true;
  void *mark = take_mark(backend, device);
  uint64_t at = 0;
  if (!mark || !mgpu_backends[backend]->mark_now(device, mark, &at)) {
    put_mark(clock, mark);
    return false;
  }
  clock->base = mark;
  clock->base_at = (double)at;
  return true;
}

/* Adds the work's event if both its times are known. */
static bool collect_one(int backend, int device, struct pending *work) {
  struct clock *clock = &clocks[backend][device];
  const struct mgpu_backend *vendor = mgpu_backends[backend];
  double start, length;
  if (!vendor->mark_elapsed(device, work->from, work->to, &length) ||
      !vendor->mark_elapsed(device, clock->base, work->from, &start))
    return false;
  double begin = clock->base_at + start;
  mgpu_trace_add_device(backend, device, work->stream, &work->event, begin > 0 ? (uint64_t)begin : 0,
                        begin + length > 0 ? (uint64_t)(begin + length) : 0);
  if (start > BASE_LASTS) {
    put_mark(clock, clock->base);
    clock->base = work->from;
    clock->base_at = begin;
  } else {
    put_mark(clock, work->from);
  }
  put_mark(clock, work->to);
  free(work);
  return true;
}

static void collect(int backend, int device) {
  struct clock *clock = &clocks[backend][device];
  for (struct pending **place = &clock->pending; *place;) {
    struct pending *work = *place, *next = work->next;
    if (collect_one(backend, device, work)) {
      *place = next;
      --clock->count;
    } else {
      place = &work->next;
    }
  }
  clock->collect_at = clock->count + MANY;
}

/* The functions from here on take the lock. */

void *mgpu_trace_mark(int backend, int device, void *stream) {
  struct clock *clock = &clocks[backend][device];
  mgpu_trace_device_lock();
  void *mark = has_base(backend, device) ? take_mark(backend, device) : NULL;
  mgpu_trace_device_unlock();
  if (!mark || mgpu_backends[backend]->mark_put(device, mark, stream))
    return mark;
  mgpu_trace_device_lock();
  put_mark(clock, mark);
  mgpu_trace_device_unlock();
  return NULL;
}

void mgpu_trace_finish(int backend, int device, void *stream, void *from,
                       const struct mgpu_trace_event *event) {
  struct clock *clock = &clocks[backend][device];
  if (!from)
    return;
  void *to = event ? mgpu_trace_mark(backend, device, stream) : NULL;
  size_t name = event ? strlen(event->name) + 1 : 0, detail = event ? strlen(event->detail) + 1 : 0;
  struct pending *work = to ? malloc(sizeof *work + name + detail) : NULL;
  mgpu_trace_device_lock();
  if (work) {
    *work = (struct pending){.from = from, .to = to, .stream = stream, .event = *event};
    work->event.name = memcpy(work->texts, event->name, name);
    work->event.detail = memcpy(work->texts + name, event->detail, detail);
    work->next = clock->pending;
    clock->pending = work;
    if (++clock->count >= clock->collect_at)
      collect(backend, device);
  } else {
    put_mark(clock, from);
    put_mark(clock, to);
  }
  mgpu_trace_device_unlock();
}

void mgpu_trace_collect(int backend, int device) {
  mgpu_trace_device_lock();
  if (backend >= 0)
    collect(backend, device);
  for (int i = 0; i < MGPU_BACKENDS && backend < 0; ++i)
    for (int k = 0; k < MGPU_MAX_DEVICES; ++k)
      collect(i, k);
  mgpu_trace_device_unlock();
}

void mgpu_trace_device_in_child(void) {
  for (int i = 0; i < MGPU_BACKENDS; ++i)
    for (int k = 0; k < MGPU_MAX_DEVICES; ++k) {
      struct clock *clock = &clocks[i][k];
      for (struct pending *at = clock->pending, *next; at; at = next) {
        next = at->next;
        free(at);
      }
      for (struct spare *at = clock->spares, *next; at; at = next) {
        next = at->next;
        free(at);
      }
      *clock = (struct clock){0};
    }
}
