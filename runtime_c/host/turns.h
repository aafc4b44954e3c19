/* turns.h: one thread at a time works on a stream of the host backend, as streams are in order.
 *
 * Work that is not put off (host/schedule.h) runs on the thread that puts it on a stream. A second thread
 * with work for that stream waits for its turn, and so does who waits for the stream. A thread's own stream
 * is no other thread's and costs next to nothing. Any thread; nothing here fails. */
#ifndef MGPU_INTERNAL_HOST_TURNS_H
#define MGPU_INTERNAL_HOST_TURNS_H

#include <pthread.h>
#include <stdbool.h>

/* A thread at work on a stream; on that thread's stack. */
struct mgpu_host_turn {
  struct mgpu_host_turn *next;
  const void *stream; /* NULL: nobody has to wait */
  pthread_t owner;
  const struct mgpu_host_turn *outer; /* whose blocks have called back; NULL where none have */
};

/* Waits until no other thread works on the stream, and then is at work on it until `mgpu_host_turn_end`,
 * which must come. What the launch's blocks call back, on whatever thread, may use the stream again.
 * NULL: the thread's own, nobody else's.
 */
void mgpu_host_turn_begin(struct mgpu_host_turn *turn, const void *stream);
void mgpu_host_turn_end(struct mgpu_host_turn *turn);

/* Waits until no other thread works on the stream. */
void mgpu_host_turn_wait(const void *stream);

/* Whether the calling thread runs blocks of a launch on that stream, or of one that these have launched. */
bool mgpu_host_turn_inside(const void *stream);

/* For core/fork.c. The child has one thread, which is at work on nothing. */
void mgpu_host_turns_lock(void);
void mgpu_host_turns_unlock(void);
void mgpu_host_turns_in_child(void);

#endif
