/* trace.h: what ran, written as a file that Perfetto and chrome://tracing read. OFFLOAD_TRACE names the file.
 *
 * Off, the table of backends is what it always is and nothing here runs. On, the table's slots are replaced
 * by ones that note what they do (trace/slots.c, trace/table.c). The host's threads, and each stream of each
 * device, have a lane. Everything here may be called by any thread. */
#ifndef MGPU_INTERNAL_TRACE_H
#define MGPU_INTERNAL_TRACE_H

#include "core/backend.h"
#include "core/error.h"

/* Whether there is a trace. Written once, before any backend is used. */
extern bool mgpu_trace_on;

/* trace/trace.c */

/* Reads the setting, begins the file, and replaces the table of backends. Called once, by mgpu_first_use. */
void mgpu_trace_start(void);
/* Keeps the error that the file could not be begun, the first time that it is called after that. 0 otherwise.
 */
int mgpu_trace_problem(void);
/* CLOCK_MONOTONIC, in ns. */
uint64_t mgpu_trace_now(void);

/* What happened: the same for the thread that asked for it and the stream that did it. Texts belong to the
 * caller; `detail` is the members of a JSON object. */
struct mgpu_trace_event {
  const char *name;
  const char *category;
  const char *detail;
};

/* Names the calling thread's lane, the first time. Before its first event. */
void mgpu_trace_name_thread(bool worker);
/* Adds an event to the calling thread's lane. `writes`: the file may be written now and an error of that be
 * kept; else whoever adds the next one writes. */
void mgpu_trace_add(const struct mgpu_trace_event *event, uint64_t begin, uint64_t end, bool writes);
/* Adds an event to the lane of a driver's stream. */
void mgpu_trace_add_device(int backend, int device, const void *stream, const struct mgpu_trace_event *event,
                           uint64_t begin, uint64_t end);
/* A quoted JSON string of that text, cut after 200 bytes. */
void mgpu_trace_quote(struct mgpu_text *to, const char *text);

/* For core/fork.c. */
void mgpu_trace_lock(void);
void mgpu_trace_unlock(void);
void mgpu_trace_in_child(void);

/* trace/file.c: the file. Every write leaves it whole, and processes and artifacts take turns. */

/* Takes the setting's text, in which %p stands for the process's id. 0, or an errno. */
int mgpu_trace_file_begin(const char *setting);
/* Adds events, each begun by ",\n". 0, or an errno. */
int mgpu_trace_file_append(const char *lines, size_t size);
/* In the child of a fork: the same file, or its own where the name has the process's id. 0, or an errno. */
int mgpu_trace_file_fork(void);
/* Whether this process has been forked, and has run no other program since. */
bool mgpu_trace_file_forked(void);
/* The path, and the meaning of such an errno, for messages. */
const char *mgpu_trace_file_path(void);
const char *mgpu_trace_file_words(int code);

/* trace/device.c: when work ran on a GPU, by the driver's events before and after it. */

/* A mark before the work; NULL when the driver gives none: the work is then not timed. */
void *mgpu_trace_mark(int backend, int device, void *stream);
/* A mark after it; the event is added once the driver knows both times. Copies the event. */
void mgpu_trace_finish(int backend, int device, void *stream, void *mark,
                       const struct mgpu_trace_event *event);
/* Adds the events of work that has ended on that device, on all with backend < 0. */
void mgpu_trace_collect(int backend, int device);
/* For the fork's sake; taken before the lock of trace/trace.c. */
void mgpu_trace_device_lock(void);
void mgpu_trace_device_unlock(void);
/* In the child of a fork: forgets all, because the driver works no more. */
void mgpu_trace_device_in_child(void);

/* trace/host.c: when work ran on the CPU. */

/* Says what the calling thread is about to put on a stream of the host. */
void mgpu_trace_host_put(int backend, int device, void *stream, const struct mgpu_trace_event *event);
/* Takes what was said back; false when it has gone with the work, which is then put off. */
bool mgpu_trace_host_back(void);
/* For host/schedule.c: what goes with a piece of work, or NULL. It is the work's from now on. */
struct mgpu_trace_work *mgpu_trace_host_take(void);
/* The work has run from `begin` until now. */
void mgpu_trace_host_ran(struct mgpu_trace_work *work, uint64_t begin);
/* The calling thread has run blocks [first, last) of a kernel since `begin`. */
void mgpu_trace_host_blocks(const char *kernel, uint64_t first, uint64_t last, uint64_t begin);

/* trace/table.c: replaces the table of backends by one that traces. */
void mgpu_trace_wrap(void);

#endif
