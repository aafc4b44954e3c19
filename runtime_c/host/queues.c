/* queues.c: the queues of the host's streams, and which of their operations somebody needs. */
#include "host/queues.h"

#include <stdlib.h>
#include <string.h>

struct mgpu_host_table mgpu_host_streams, mgpu_host_events;
struct mgpu_host_stream *mgpu_host_queues_busy;
uint64_t mgpu_host_queued;

static struct mgpu_host_object **bucket(struct mgpu_host_table *table, const void *key) {
  return &table->buckets[((uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u) >> 56];
}

void mgpu_host_table_add(struct mgpu_host_table *table, struct mgpu_host_object *object, const void *key) {
  struct mgpu_host_object **place = bucket(table, key);
  object->key = key;
  object->next = *place;
  *place = object;
}

struct mgpu_host_object **mgpu_host_table_find(struct mgpu_host_table *table, const void *key) {
  struct mgpu_host_object **place = bucket(table, key);
  while (*place && (*place)->key != key)
    place = &(*place)->next;
  return place;
}

struct mgpu_host_stream *mgpu_host_stream_known(const void *key) {
  return (struct mgpu_host_stream *)*mgpu_host_table_find(&mgpu_host_streams, key);
}

struct mgpu_host_stream *mgpu_host_stream_of(const void *key) {
  struct mgpu_host_stream *stream = mgpu_host_stream_known(key);
  if (!stream && (stream = calloc(1, sizeof *stream)))
    mgpu_host_table_add(&mgpu_host_streams, &stream->object, key);
  return stream;
}

struct mgpu_host_event *mgpu_host_event_known(const void *key) {
  return (struct mgpu_host_event *)*mgpu_host_table_find(&mgpu_host_events, key);
}

void mgpu_host_stream_free_if_unused(struct mgpu_host_stream *stream) {
  if (stream->destroyed && !stream->first && !stream->users)
    free(stream);
}

void mgpu_host_stream_leave(struct mgpu_host_stream *stream) {
  --stream->users;
  mgpu_host_stream_free_if_unused(stream);
}

struct mgpu_host_operation *mgpu_host_operation_make(size_t size) {
  void *made = NULL;
  if (posix_memalign(&made, alignof(struct mgpu_host_operation), sizeof(struct mgpu_host_operation) + size))
    return NULL;
  return memset(made, 0, sizeof(struct mgpu_host_operation));
}

void mgpu_host_queue_append(struct mgpu_host_stream *stream, struct mgpu_host_operation *operation) {
  operation->next = NULL;
  operation->number = ++stream->put;
  if (stream->first) {
    stream->last->next = operation;
  } else {
    stream->first = operation;
    stream->previous = NULL;
    stream->further = mgpu_host_queues_busy;
    if (stream->further)
      stream->further->previous = stream;
    mgpu_host_queues_busy = stream;
  }
  stream->last = operation;
  if (!stream->unmarked)
    stream->unmarked = operation;
  ++mgpu_host_queued;
}

void mgpu_host_queue_finish(struct mgpu_host_stream *stream) {
  struct mgpu_host_operation *operation = stream->first;
  ++stream->users; /* it may be what the operation waited for */
  stream->first = operation->next;
  stream->done = operation->number;
  if (!stream->first) {
    *(stream->previous ? &stream->previous->further : &mgpu_host_queues_busy) = stream->further;
    if (stream->further)
      stream->further->previous = stream->previous;
  }
  if (operation->waited)
    mgpu_host_stream_leave(operation->waited);
  free(operation);
  --mgpu_host_queued;
  mgpu_host_stream_leave(stream);
}

/* Operations up to `number` are needed: puts the stream on a list if some of them are not marked yet. */
static void mark_later(struct mgpu_host_stream *stream, uint64_t number, struct mgpu_host_stream **list) {
  if (number > stream->needed)
    stream->needed = number;
  if (stream->is_due || !stream->unmarked || stream->unmarked->number > stream->needed)
    return;
  stream->is_due = true;
  stream->due = *list;
  *list = stream;
}

/* Streams may wait for each other in turn as often as the program likes, so it is a list that remembers them
 * and not the stack. */
void mgpu_host_queue_need(struct mgpu_host_stream *stream, uint64_t number) {
  struct mgpu_host_stream *list = NULL;
  mark_later(stream, number, &list);
  while (list) {
    struct mgpu_host_stream *next = list;
    list = next->due;
    next->is_due = false;
    while (next->unmarked && next->unmarked->number <= next->needed) {
      struct mgpu_host_operation *operation = next->unmarked;
      next->unmarked = operation->next;
      if (operation->waited)
        mark_later(operation->waited, operation->target, &list);
    }
  }
}

void mgpu_host_queue_need_all(void) {
  for (struct mgpu_host_stream *stream = mgpu_host_queues_busy; stream; stream = stream->further)
    mgpu_host_queue_need(stream, stream->put);
}
