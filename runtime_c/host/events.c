/* events.c: the host backend's streams and events. While work is not put off, all that was put on a stream
 * has run, and an event stands for nothing that is to come. */
#include "host/queues.h"
#include "host/turns.h"

#include <stdlib.h>

static int create(struct mgpu_host_table *table, size_t size, void **out) {
  struct mgpu_host_object *object = calloc(1, size);
  if (!object)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a stream or event.");
  mgpu_host_schedule_lock();
  int wrong = mgpu_host_schedule_read_environment();
  if (!wrong)
    mgpu_host_table_add(table, object, object);
  mgpu_host_schedule_unlock();
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

int mgpu_host_stream_create(int device, void **stream) {
  (void)device;
  return create(&mgpu_host_streams, sizeof(struct mgpu_host_stream), stream);
}

/* Work that is still on the stream keeps it alive until somebody needs that work. */
int mgpu_host_stream_destroy(int device, void *pointer) {
  (void)device;
  mgpu_host_schedule_lock();
  struct mgpu_host_object **place = mgpu_host_table_find(&mgpu_host_streams, pointer);
  struct mgpu_host_stream *stream = (struct mgpu_host_stream *)*place;
  if (stream) {
    *place = stream->object.next;
    stream->destroyed = true;
    mgpu_host_stream_free_if_unused(stream);
  }
  mgpu_host_schedule_unlock();
  return 0;
}

int mgpu_host_stream_sync(int device, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on()) {
    mgpu_host_turn_wait(pointer);
    return 0;
  }
  mgpu_host_schedule_lock();
  bool called_back = mgpu_host_schedule_called_back(pointer);
  struct mgpu_host_stream *stream = mgpu_host_stream_known(pointer);
  if (stream && !called_back) /* else all before the launch has run */
    mgpu_host_schedule_run_until(stream, stream->put);
  return mgpu_host_schedule_unlock_after_wait();
}

int mgpu_host_event_create(int device, void **event) {
  (void)device;
  return create(&mgpu_host_events, sizeof(struct mgpu_host_event), event);
}

int mgpu_host_event_destroy(int device, void *pointer) {
  (void)device;
  mgpu_host_schedule_lock();
  struct mgpu_host_object **place = mgpu_host_table_find(&mgpu_host_events, pointer);
  struct mgpu_host_event *event = (struct mgpu_host_event *)*place;
  if (event) {
    *place = event->object.next;
    if (event->stream)
      mgpu_host_stream_leave(event->stream);
    free(event);
  }
  mgpu_host_schedule_unlock();
  return 0;
}

int mgpu_host_event_record(int device, void *pointer, void *on) {
  (void)device;
  if (!mgpu_host_schedule_on()) {
    mgpu_host_turn_wait(on); /* then all that the event stands for is done */
    return 0;
  }
  mgpu_host_schedule_lock();
  bool called_back = mgpu_host_schedule_called_back(on);
  struct mgpu_host_event *event = mgpu_host_event_known(pointer);
  struct mgpu_host_stream *stream = event ? mgpu_host_stream_of(on) : NULL;
  if (stream) {
    ++stream->users;
    if (event->stream)
      mgpu_host_stream_leave(event->stream);
    event->stream = stream;
    event->number = called_back ? stream->done : stream->put;
  }
  mgpu_host_schedule_unlock();
  if (event && !stream)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a stream.");
  return 0;
}

int mgpu_host_stream_wait_event(int device, void *waiter, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on())
    return 0;
  int code = 0;
  mgpu_host_schedule_lock();
  bool called_back = mgpu_host_schedule_called_back(waiter);
  const struct mgpu_host_event *event = mgpu_host_event_known(pointer);
  struct mgpu_host_stream *waited = event ? event->stream : NULL;
  if (waited && waited->done < event->number && called_back) {
    mgpu_host_schedule_run_until(waited, event->number); /* what comes next there runs at once */
    return mgpu_host_schedule_unlock_after_wait();
  }
  if (waited && waited->done < event->number) {
    struct mgpu_host_stream *stream = mgpu_host_stream_of(waiter);
    struct mgpu_host_operation *wait = stream ? mgpu_host_operation_make(0) : NULL;
    if (wait) {
      wait->waited = waited;
      wait->target = event->number;
      ++waited->users;
      mgpu_host_queue_append(stream, wait);
    } else {
      code = MGPU_ERROR_MEMORY;
    }
  }
  mgpu_host_schedule_unlock();
  return code ? mgpu_fail(code, "Out of memory for a stream's wait.") : 0;
}

int mgpu_host_event_sync(int device, void *pointer) {
  (void)device;
  if (!mgpu_host_schedule_on())
    return 0;
  mgpu_host_schedule_lock();
  const struct mgpu_host_event *event = mgpu_host_event_known(pointer);
  if (event && event->stream)
    mgpu_host_schedule_run_until(event->stream, event->number);
  return mgpu_host_schedule_unlock_after_wait();
}
