/* stream.h: from a stream as the ABI knows it to the driver's. */
#ifndef MGPU_INTERNAL_STREAM_H
#define MGPU_INTERNAL_STREAM_H

#include "mgpu.h"

/* Where work on a stream goes. */
struct mgpu_place {
  int backend;
  int device;
  void *driver; /* the driver's stream */
  bool own;     /* the calling thread's own stream, which no other thread uses */
};

/* Resolves a stream of ours, a foreign driver stream, or NULL (the calling thread's). A foreign stream
 * belongs to the device that the driver of the backend in use says. 0, or a failure that is kept. Any thread.
 */
int mgpu_stream_place(void *stream, struct mgpu_place *place);

/* The calling thread's own stream on that device, made at first use. 0, or a failure that is kept. */
int mgpu_stream_own(int backend, int device, struct mgpu_place *place);

/* The same for giving something back. In the child of a fork, where that is nobody's business any more, there
 * is no stream, and no failure. */
int mgpu_stream_to_release(int backend, int device, struct mgpu_place *place);

/* Notes work on the calling thread's stream that is waited for later (MGPU_WAIT_LATER), or now and with what
 * was: a kernel, whose name outlives the wait, or NULL. */
void mgpu_stream_unwaited(const char *kernel);
/* The stream has been waited for. */
void mgpu_stream_waited(void);

/* Waits for the work of the calling thread's scopes inside of `until` (NULL: of all), whatever error is kept.
 */
void mgpu_scopes_finish(const struct mgpuScope *until);

/* Whether the stream, or the calling thread's where it is NULL, is one that a fork has left to the parent. */
bool mgpu_stream_forked(void *stream);

#endif
