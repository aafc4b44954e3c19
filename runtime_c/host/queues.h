/* queues.h: what waits on the host's streams while work is put off, as host/schedule.c and host/events.c see
 * it.
 *
 * A stream is a queue. Its operations run one after another; one that waits for an event is passed when the
 * stream of that event has come to where the event was recorded. Everything here is called with the
 * schedule's lock held, except for what says otherwise. */
#ifndef MGPU_INTERNAL_HOST_QUEUES_H
#define MGPU_INTERNAL_HOST_QUEUES_H

#include "host/schedule.h"

#include <stdalign.h>

/* What a driver's handle stands for, found by the handle's value: one of another's making must not be read.
 */
struct mgpu_host_object {
  struct mgpu_host_object *next;
  const void *key;
};

struct mgpu_host_operation {
  struct mgpu_host_operation *next;
  uint64_t number;
  mgpu_host_action *action; /* NULL: waits for operation `target` of `waited` */
  struct mgpu_host_stream *waited;
  uint64_t target;
  struct mgpu_trace_work *traced; /* or NULL */
  alignas(64) unsigned char data[];
};

struct mgpu_host_stream {
  struct mgpu_host_object object; /* first */
  struct mgpu_host_operation *first, *last;
  struct mgpu_host_operation *unmarked;        /* the first that nobody needs yet */
  uint64_t put, done, needed;                  /* numbers of operations: the last put, run and needed */
  struct mgpu_host_stream *previous, *further; /* among those with operations */
  struct mgpu_host_stream *due;                /* the next that is to be marked, while something is */
  unsigned users;                              /* events, operations and threads that point here */
  bool running, destroyed, is_due;
};

struct mgpu_host_event {
  struct mgpu_host_object object; /* first */
  struct mgpu_host_stream *stream;
  uint64_t number; /* of its last operation when the event was recorded */
};

/* Streams and events, by their handles. */
struct mgpu_host_table {
  struct mgpu_host_object *buckets[256];
};
extern struct mgpu_host_table mgpu_host_streams, mgpu_host_events;

void mgpu_host_table_add(struct mgpu_host_table *table, struct mgpu_host_object *object, const void *key);
/* What points to the object; to NULL where there is none. */
struct mgpu_host_object **mgpu_host_table_find(struct mgpu_host_table *table, const void *key);
/* NULL where there is none, or none yet: streams of another's making get a queue when work comes. */
struct mgpu_host_stream *mgpu_host_stream_known(const void *key);
/* Makes that queue. NULL when out of memory. */
struct mgpu_host_stream *mgpu_host_stream_of(const void *key);
struct mgpu_host_event *mgpu_host_event_known(const void *key);

/* Frees a destroyed stream that has nothing to do and that nobody points to; the second after the caller has
 * pointed there. */
void mgpu_host_stream_free_if_unused(struct mgpu_host_stream *stream);
void mgpu_host_stream_leave(struct mgpu_host_stream *stream);

/* With room for `size` bytes of data; all zero. NULL when out of memory. Needs no lock. */
struct mgpu_host_operation *mgpu_host_operation_make(size_t size);
void mgpu_host_queue_append(struct mgpu_host_stream *stream, struct mgpu_host_operation *operation);
/* Takes the first operation, which has run, off its stream, and frees it. */
void mgpu_host_queue_finish(struct mgpu_host_stream *stream);

/* Marks the stream's operations up to `number`, and all that they wait for: they are needed. */
void mgpu_host_queue_need(struct mgpu_host_stream *stream, uint64_t number);
void mgpu_host_queue_need_all(void);

extern struct mgpu_host_stream *mgpu_host_queues_busy; /* the first of those with operations */
extern uint64_t mgpu_host_queued;                      /* operations, of all of them */

/* The functions from here on are host/schedule.c's. */

/* Reads OFFLOAD_HOST_SCHEDULE when the first stream or event is made. 0, or an error code. */
int mgpu_host_schedule_read_environment(void);
/* Whether what is put there now, or waits there, is a part of a launch whose block has called back: on the
 * launch's stream, and on the thread's where that waits for the launch, as it was the thread's before a block
 * ran on it. Lets go of the lock in between. */
bool mgpu_host_schedule_called_back(const void *stream);
/* Runs what is marked and ready until the stream has done its operation `number`. Lets go of the lock in
 * between. */
void mgpu_host_schedule_run_until(struct mgpu_host_stream *stream, uint64_t number);
/* Lets go of the lock; hands on what failed since somebody waited. 0, or that error. */
int mgpu_host_schedule_unlock_after_wait(void);

#endif
