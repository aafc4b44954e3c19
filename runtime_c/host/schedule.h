/* schedule.h: the host backend's streams and events, and work on them that is put off.
 *
 * Off (the default), work runs when it is put on a stream. On, nothing runs before somebody waits for it;
 * then what the wait needs runs, and now and then more, streams interleaved by chance. Every order that comes
 * about is one that a driver may choose, so a program that gives another result then has a missing
 * dependency, or has met a fault of the compiler. Everything here may be called by any thread. */
#ifndef MGPU_INTERNAL_HOST_SCHEDULE_H
#define MGPU_INTERNAL_HOST_SCHEDULE_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern int mgpu_host_schedule_state; /* atomic; for the next function alone */

/* Whether work is put off. Costs a load. */
static inline bool mgpu_host_schedule_on(void) {
  return __atomic_load_n(&mgpu_host_schedule_state, __ATOMIC_ACQUIRE) != 0;
}

/* Does a piece of work. 0, or an error code with its sentence in `why`; must not call mgpu_fail, because
 * whoever waits runs it. */
typedef int mgpu_host_action(void *data, struct mgpu_text *why);

/* Room for the data of a piece of work, 64-byte aligned: given to mgpu_host_schedule_put once. NULL after
 * mgpu_fail. */
void *mgpu_host_schedule_data(size_t size);
/* Puts work at the end of a stream. Failures of the work are kept by who next waits for anything. */
int mgpu_host_schedule_put(void *stream, mgpu_host_action *action, void *data);
/* Runs all work that there is, of all streams. */
void mgpu_host_schedule_drain(void);

/* Memory while work is put off (host/quarantine.c). Fresh memory gets a pattern when the stream comes to its
 * allocation (at once where the CPU may use it), freed memory another when the stream comes to the free; it
 * is kept for a while, so that late reads find that and late writes are noticed. A free before the stream of
 * the allocation has come there is a failure of that work. */
int mgpu_host_schedule_alloc(void *stream, void *memory, size_t size, bool shared);
int mgpu_host_schedule_free(void *stream, void *memory);

/* With the lock held. */

/* Gives what was freed back to the system. */
void mgpu_host_quarantine_end(void);
/* How many blocks had been written to after they were freed, of those that went back to the system. */
uint64_t mgpu_host_quarantine_damaged(void);

/* The slots of the backend (host/events.c). */
int mgpu_host_stream_create(int device, void **stream);
int mgpu_host_stream_destroy(int device, void *stream);
int mgpu_host_stream_sync(int device, void *stream);
int mgpu_host_stream_wait_event(int device, void *stream, void *event);
int mgpu_host_event_create(int device, void **event);
int mgpu_host_event_destroy(int device, void *event);
int mgpu_host_event_record(int device, void *event, void *stream);
int mgpu_host_event_sync(int device, void *event);

/* Pieces of work that wait to be run; ends the quarantine and adds up what it found. */
uint64_t mgpu_host_schedule_queued(void);
uint64_t mgpu_host_schedule_late_writes(void);

/* For core/fork.c: the lock of all this, and what a child does before it lets go. Only that of
 * host/memory.h is taken under it. */
void mgpu_host_schedule_lock(void);
void mgpu_host_schedule_unlock(void);
void mgpu_host_schedule_in_child(void);

#endif
