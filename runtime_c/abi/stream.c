/* stream.c: streams, events and scopes of the ABI.
 *
 * The compiler half of LLVM 22 sometimes passes a stream where an event is meant and the other way round;
 * what each such call means is decided here by the handle's kind. */
#include "abi/stream.h"

#include "core/error.h"
#include "core/thread.h"

#include <stdlib.h>

static const struct mgpu_backend *backend_of(int backend) { return mgpu_backends[backend]; }

int mgpu_stream_own(int backend, int device, struct mgpu_place *place) {
  struct mgpu_thread *thread = mgpu_thread();
  struct mgpu_handle **own = thread->own[backend];
  if (!own) {
    own = calloc(MGPU_MAX_DEVICES, sizeof *own);
    if (!own)
      return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for this thread's streams.");
    thread->own[backend] = own;
  }
  if (!own[device]) {
    struct mgpu_handle *handle = mgpu_handle_get(backend, device, MGPU_STREAM);
    if (!handle)
      return mgpu_pending();
    own[device] = handle;
  }
  *place = (struct mgpu_place){backend, device, own[device]->driver, true};
  return 0;
}

int mgpu_stream_to_release(int backend, int device, struct mgpu_place *place) {
  if (!mgpu_backend_forked(backend))
    return mgpu_stream_own(backend, device, place);
  *place = (struct mgpu_place){backend, device, NULL, false};
  return 0;
}

bool mgpu_stream_forked(void *stream) {
  if (!stream)
    stream = mgpu_thread()->stream;
  const struct mgpu_handle *handle = stream ? mgpu_handle_of(stream) : NULL;
  int backend = handle ? handle->backend : mgpu_backend_active(NULL, NULL, NULL);
  return backend >= 0 && mgpu_backend_forked(backend);
}

int mgpu_stream_place(void *stream, struct mgpu_place *place) {
  struct mgpu_thread *thread = mgpu_thread();
  if (!stream)
    stream = thread->stream;
  struct mgpu_handle *handle = stream ? mgpu_handle_of(stream) : NULL;
  if (!handle) {
    int backend = mgpu_backend_active(NULL, NULL, NULL);
    if (backend < 0)
      return mgpu_pending();
    if (!stream)
      return mgpu_stream_own(backend, thread->device[backend], place);
    int device = mgpu_backends[backend]->stream_device(&stream, thread->device[backend]);
    *place = (struct mgpu_place){backend, device, stream, false};
    return 0;
  }
  if (!__atomic_load_n(&handle->live, __ATOMIC_ACQUIRE))
    return mgpu_fail(MGPU_ERROR_INVALID, "The stream %p has been destroyed already.", stream);
  if (handle->kind != MGPU_STREAM)
    return mgpu_fail(MGPU_ERROR_INVALID, "%p is an event; a stream is needed here.", stream);
  *place = (struct mgpu_place){handle->backend, handle->device, handle->driver, false};
  return 0;
}

static void *create(enum mgpu_kind kind) {
  if (mgpu_pending())
    return NULL;
  int backend = mgpu_backend_active(NULL, NULL, NULL);
  return backend < 0 ? NULL : mgpu_handle_get(backend, mgpu_thread()->device[backend], kind);
}

static void destroy(void *pointer) {
  if (!pointer)
    return;
  struct mgpu_handle *handle = mgpu_handle_of(pointer);
  if (!handle)
    mgpu_fail(MGPU_ERROR_INVALID, "%p is no stream or event of this runtime; its creator must destroy it.",
              pointer);
  else if (!mgpu_handle_put(handle))
    mgpu_fail(MGPU_ERROR_INVALID, "The stream or event %p has been destroyed already.", pointer);
}

static bool is_kind(const void *pointer, enum mgpu_kind kind) {
  const struct mgpu_handle *handle = mgpu_handle_of(pointer);
  return handle && handle->kind == kind;
}

/* An event of ours or of the driver, on the backend and device where it belongs. */
static int event_place(void *event, struct mgpu_place *place) {
  if (!event)
    return mgpu_fail(MGPU_ERROR_INVALID, "The event is NULL.");
  struct mgpu_handle *handle = mgpu_handle_of(event);
  if (!handle) {
    int backend = mgpu_backend_active(NULL, NULL, NULL);
    if (backend < 0)
      return mgpu_pending();
    *place = (struct mgpu_place){backend, mgpu_thread()->device[backend], event, false};
    return 0;
  }
  if (!__atomic_load_n(&handle->live, __ATOMIC_ACQUIRE))
    return mgpu_fail(MGPU_ERROR_INVALID, "The event %p has been destroyed already.", event);
  *place = (struct mgpu_place){handle->backend, handle->device, handle->driver, false};
  return 0;
}

static void sync_stream(void *stream) {
  struct mgpu_place place;
  if (mgpu_stream_place(stream, &place) == 0)
    backend_of(place.backend)->stream_sync(place.device, place.driver);
  if (!stream)
    mgpu_stream_waited();
}

void mgpu_stream_waited(void) {
  struct mgpu_unwaited *unwaited = &mgpu_thread()->unwaited;
  unwaited->work = false;
  unwaited->named = 0;
}

void mgpu_stream_unwaited(const char *kernel) {
  struct mgpu_unwaited *unwaited = &mgpu_thread()->unwaited;
  unsigned i = 0;
  unwaited->work = true;
  while (i < unwaited->named && unwaited->names[i] != kernel)
    ++i;
  if (kernel && i == unwaited->named && i < MGPU_UNWAITED_NAMES)
    unwaited->names[unwaited->named++] = kernel;
}

void mgpuWaitForLater(void) {
  if (mgpu_thread()->unwaited.work)
    sync_stream(NULL);
}

static void sync_event(void *event) {
  struct mgpu_place place;
  if (event_place(event, &place) == 0)
    backend_of(place.backend)->event_sync(place.device, place.driver);
}

static void wait_event(void *stream, void *event) {
  struct mgpu_place waiter = {0}, waited = {0};
  if (mgpu_stream_place(stream, &waiter) || event_place(event, &waited))
    return;
  if (waiter.backend != waited.backend)
    backend_of(waited.backend)->event_sync(waited.device, waited.driver);
  else
    backend_of(waiter.backend)->stream_wait_event(waiter.device, waiter.driver, waited.driver);
}

static void wait_stream(void *waiter_stream, void *waited_stream) {
  struct mgpu_place waiter = {0}, waited = {0};
  if (mgpu_stream_place(waiter_stream, &waiter) || mgpu_stream_place(waited_stream, &waited))
    return;
  const struct mgpu_backend *backend = backend_of(waited.backend);
  if (waiter.backend != waited.backend) {
    backend->stream_sync(waited.device, waited.driver);
    return;
  }
  if (waiter.device == waited.device && waiter.driver == waited.driver)
    return;
  struct mgpu_handle *event = mgpu_handle_get(waited.backend, waited.device, MGPU_EVENT);
  if (!event)
    return;
  if (backend->event_record(waited.device, event->driver, waited.driver) == 0)
    backend->stream_wait_event(waiter.device, waiter.driver, event->driver);
  mgpu_handle_put(event); /* the wait has taken what the event stood for; a new record does not move it */
}

bool mgpuStreamCapturing(void *stream) {
  struct mgpu_place place;
  bool capturing = false;
  if (mgpu_pending() || mgpu_stream_place(stream, &place))
    return false;
  if (backend_of(place.backend)->stream_capturing)
    backend_of(place.backend)->stream_capturing(place.device, place.driver, &capturing);
  return capturing;
}

void *mgpuStreamCreate(void) { return create(MGPU_STREAM); }

void mgpuStreamDestroy(void *stream) { destroy(stream); }

void mgpuStreamSynchronize(void *stream) {
  if (mgpu_pending()) {
    if (!stream)
      mgpuWaitForLater();
    return;
  }
  if (is_kind(stream, MGPU_EVENT))
    sync_event(stream);
  else
    sync_stream(stream);
}

void mgpuStreamWaitEvent(void *stream, void *event) {
  if (mgpu_pending())
    return;
  if (is_kind(event, MGPU_STREAM))
    wait_stream(stream, event);
  else
    wait_event(stream, event);
}

void *mgpuEventCreate(void) { return create(MGPU_EVENT); }

void mgpuEventDestroy(void *event) { destroy(event); }

void mgpuEventSynchronize(void *event) {
  if (mgpu_pending())
    return;
  if (is_kind(event, MGPU_STREAM))
    sync_stream(event);
  else
    sync_event(event);
}

void mgpuEventRecord(void *event, void *stream) {
  if (mgpu_pending())
    return;
  if (is_kind(event, MGPU_STREAM)) { /* whoever waits for that stream later waits for this point too */
    wait_stream(event, stream);
    return;
  }
  struct mgpu_place point, recorded;
  if (event_place(event, &point) || mgpu_stream_place(stream, &recorded))
    return;
  if (!mgpu_handle_of(event) && point.backend == recorded.backend)
    point.device = recorded.device; /* which device a driver's own event is of, only the driver can tell */
  if (point.backend != recorded.backend || point.device != recorded.device)
    mgpu_fail(MGPU_ERROR_INVALID,
              "The event %p belongs to %s:%d and cannot be recorded on a stream of %s:%d.", event,
              backend_of(point.backend)->name, point.device, backend_of(recorded.backend)->name,
              recorded.device);
  else
    backend_of(point.backend)->event_record(point.device, point.driver, recorded.driver);
}

void *mgpuStreamMark(void *stream) {
  struct mgpu_place place;
  if (mgpu_pending())
    return NULL;
  if (mgpu_stream_place(stream, &place))
    return NULL;
  struct mgpu_handle *event = mgpu_handle_get(place.backend, place.device, MGPU_EVENT);
  if (event && backend_of(place.backend)->event_record(place.device, event->driver, place.driver)) {
    mgpu_handle_put(event);
    return NULL;
  }
  return event;
}

int32_t mgpuStreamDevice(void *stream) {
  struct mgpu_place place;
  return mgpu_pending() || mgpu_stream_place(stream, &place) ? -1 : place.device;
}

void *mgpuStreamDriver(void *stream) {
  struct mgpu_place place;
  return mgpu_pending() || mgpu_stream_place(stream, &place) ? NULL : place.driver;
}

void mgpuStreamWaitStream(void *waiter, void *waited) {
  if (mgpu_pending())
    return;
  if (is_kind(waited, MGPU_EVENT))
    wait_event(waiter, waited);
  else
    wait_stream(waiter, waited);
}

/* A new stream for a function. Where the caller has set the thread's stream, the function's work is on that
 * one's device and begins behind what is there. */
static void *create_for_scope(void) {
  struct mgpu_thread *thread = mgpu_thread();
  struct mgpu_place place;
  if (!thread->stream)
    return create(MGPU_STREAM);
  if (mgpu_stream_place(thread->stream, &place))
    return NULL;
  struct mgpu_handle *made = mgpu_handle_get(place.backend, place.device, MGPU_STREAM);
  if (made)
    wait_stream(made, thread->stream);
  return made;
}

void *mgpuScopeStream(mgpuScope *scope) {
  if (mgpu_pending())
    return NULL;
  if (!scope) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuScopeStream needs a scope.");
    return NULL;
  }
  if (scope->count == MGPU_SCOPE_STREAMS) {
    uint32_t turn = scope->next;
    scope->next = (turn + 1) % MGPU_SCOPE_STREAMS;
    return scope->streams[turn];
  }
  void *stream = create_for_scope();
  if (!stream)
    return NULL;
  if (scope->count == 0) {
    struct mgpu_thread *thread = mgpu_thread();
    scope->outer = thread->scopes;
    thread->scopes = scope;
  }
  scope->streams[scope->count++] = stream;
  return stream;
}

/* Also after a failure, when mgpuStreamSynchronize does nothing. Not of a graph that is being made: its work
 * runs at another time, and a wait would spoil it. */
static void finish(const mgpuScope *scope) {
  for (uint32_t i = 0; i < scope->count; ++i) {
    struct mgpu_place place;
    bool capturing = false;
    if (mgpu_stream_place(scope->streams[i], &place))
      continue;
    const struct mgpu_backend *backend = backend_of(place.backend);
    if (backend->stream_capturing)
      backend->stream_capturing(place.device, place.driver, &capturing);
    if (!capturing)
      backend->stream_sync(place.device, place.driver);
  }
}

void mgpu_scopes_finish(const mgpuScope *until) {
  for (const mgpuScope *scope = mgpu_thread()->scopes; scope != until; scope = scope->outer)
    finish(scope);
}

void mgpuScopeWait(mgpuScope *scope) {
  if (!scope)
    return;
  if (mgpu_pending())
    finish(scope);
  else
    for (uint32_t i = 0; i < scope->count; ++i)
      mgpuStreamSynchronize(scope->streams[i]);
}

void mgpuScopeEnd(mgpuScope *scope) {
  if (!scope)
    return;
  if (mgpu_pending()) /* what compiled code would have waited for */
    finish(scope);
  if (scope->count)
    mgpu_thread()->scopes = scope->outer;
  for (uint32_t i = 0; i < scope->count; ++i)
    destroy(scope->streams[i]);
  scope->count = scope->next = 0;
}

void *mgpuSetThreadStream(void *stream) {
  struct mgpu_thread *thread = mgpu_thread();
  void *previous = thread->stream;
  thread->stream = stream;
  return previous;
}
