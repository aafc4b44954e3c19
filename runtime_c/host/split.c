/* split.c: how many threads a kernel's blocks are worth.
 *
 * What a block of each kernel took is kept, because a grid's size says nothing: two blocks may take seconds,
 * and a million of them nothing. A grid that is expected to be done before a sleeping thread is awake runs
 * where it was launched; a first part of it shows whether that was right this time, and the rest goes to the
 * pool if not. It gets a thread for each SHARE_NS, though, where it comes so soon after its caller's last one
 * that the threads are still looking for work, or can be, from now on. A kernel's first launch goes to the
 * pool. */
#include "host/host.h"
#include "trace/trace.h"

#include <pthread.h>

enum { SHARE_NS = 2500, WORTH_NS = 20000, SOON_NS = 40000, FIRST_PART = 8, FADES = 4 };

/* Picoseconds. */
static const uint64_t UNIT = 1000;

/* One block's price: the highest of late, so that a kernel whose launches differ is not taken for a light
 * one. */
static void learn(uint64_t *cost, uint64_t count, uint64_t ns) {
  uint64_t now = count ? ns / count * UNIT + ns % count * UNIT / count + 1 : 0;
  uint64_t before = __atomic_load_n(cost, __ATOMIC_RELAXED);
  if (count && now < before)
    now = before - (before - now + FADES - 1) / FADES;
  if (count && now != before)
    __atomic_store_n(cost, now, __ATOMIC_RELAXED);
}

struct rest {
  mgpu_host_part *part;
  void *context;
  uint64_t begin;
};

static int run_rest(void *context, uint64_t first, uint64_t last) {
  const struct rest *rest = context;
  return rest->part(rest->context, rest->begin + first, rest->begin + last);
}

static int run_together(uint64_t begin, uint64_t total, unsigned threads, mgpu_host_part *part, void *context,
                        uint64_t *cost) {
  struct mgpu_host_share mine;
  struct rest rest = {part, context, begin};
  int failure = begin ? mgpu_host_pool_run(total - begin, threads, run_rest, &rest, &mine)
                      : mgpu_host_pool_run(total, threads, part, context, &mine);
  learn(cost, mine.count, mine.ns);
  return failure;
}

/* Whether a launch that is worth threads, if they need not be woken, has come soon after another one of its
 * caller's. Where others come between, the processors have work already. */
static bool comes_soon(uint64_t now) {
  static uint64_t last, last_caller; /* atomic */
  uint64_t caller = (uint64_t)pthread_self();
  uint64_t before = __atomic_exchange_n(&last, now, __ATOMIC_RELAXED);
  return __atomic_exchange_n(&last_caller, caller, __ATOMIC_RELAXED) == caller && now - before < SOON_NS;
}

int mgpu_host_split(uint64_t total, mgpu_host_part *part, void *context, uint64_t *cost) {
  uint64_t price = __atomic_load_n(cost, __ATOMIC_RELAXED);
  if (total == 1)
    return part(context, 0, 1);
  uint64_t expected = price > UINT64_MAX / total ? UINT64_MAX / UNIT : price * total / UNIT;
  if (!price || expected > WORTH_NS)
    return run_together(0, total, MGPU_HOST_ALL_THREADS, part, context, cost);
  unsigned threads = (unsigned)(expected / SHARE_NS);
  uint64_t first = (total + FIRST_PART - 1) / FIRST_PART, begin = mgpu_trace_now();
  if (threads > 1 && comes_soon(begin))
    return run_together(0, total, threads, part, context, cost);
  int failure = part(context, 0, first);
  uint64_t ns = mgpu_trace_now() - begin;
  learn(cost, first, ns);
  if (failure)
    return failure;
  if (ns > 2 * WORTH_NS * first / total && total - first > 1)
    return run_together(first, total, MGPU_HOST_ALL_THREADS, part, context, cost);
  return part(context, first, total);
}
