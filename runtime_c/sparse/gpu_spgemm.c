/* gpu_spgemm.c: products of sparse matrices on a GPU. The library's descriptors live from the first
 * question for a size to the end of the SpGEMM, with the handle that they were made with: what the library
 * finds out in one phase it keeps in them for the next. */
#include "core/error.h"
#include "sparse/gpu.h"

#include <stdlib.h>

enum phase { ASKED, ESTIMATED, SIZED, COMPUTED };

struct spgemm {
  /* As the library has it, with copies of the operands, for they may be destroyed before it. */
  struct mgpu_sparse_call call;
  struct mgpu_sparse copies[3];
  const struct mgpu_sparse *originals[3];
  struct mgpu_sparse_handle *handle;
  struct mgpu_sparse_descriptors operands;
  void *descriptor;
  enum phase phase;
  size_t sizes[2];
};

/* The library's arguments up to the descriptor. The result has no entries yet, so beta is 0: what is in its
 * memory before a copy is no number. */
#define ARGUMENTS(use, s)                                                                                    \
  (use).handle->handle, (s)->call.mode_a, (s)->call.mode_b, mgpu_sparse_one((s)->call.compute),              \
      (s)->operands.of[0], (s)->operands.of[1], mgpu_sparse_zero(), (s)->operands.of[2], (s)->call.compute,  \
      MGPU_SPARSE_SPGEMM_DEFAULT, (s)->descriptor

/* In the handle's device. */
static void destroy(struct mgpu_sparse_use *use, struct spgemm *s) {
  if (s->descriptor)
    MGPU_SPARSE_CALL(use->vendor, SpGEMM_destroyDescr, (s->descriptor));
  mgpu_sparse_undescribe(use->vendor, &s->operands);
}

void mgpu_gpu_spgemm_release(struct mgpu_sparse *spgemm) {
  struct mgpu_sparse_vendor *vendor = mgpu_sparse_vendor_of(spgemm->backend);
  struct spgemm *s = spgemm->state;
  spgemm->state = NULL;
  if (!s)
    return;
  void *previous;
  if (vendor->reach(s->handle->device, &previous)) {
    struct mgpu_sparse_use use = {vendor, s->handle, s->handle->device, previous};
    destroy(&use, s);
    mgpu_sparse_end(&use, NULL);
  } else {
    free(s->handle);
  }
  free(s);
}

static int start(struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse_call *call,
                 struct mgpu_sparse *spgemm) {
  if (call->c->stored)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "On %s an SpGEMM computes into a matrix without entries; this one has %lld.",
                     mgpu_backends[vendor->backend]->name, (long long)call->c->stored);
  struct spgemm *s = calloc(1, sizeof *s);
  if (!s)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a sparse product.");
  s->call = *call;
  s->call.mode_a = mgpu_sparse_mode(call->mode_a, call->a);
  s->call.mode_b = mgpu_sparse_mode(call->mode_b, call->b);
  s->call.compute = mgpu_sparse_compute_type(call->compute);
  const struct mgpu_sparse *const originals[] = {call->a, call->b, call->c};
  for (int i = 0; i < 3; ++i) {
    s->originals[i] = originals[i];
    s->copies[i] = *originals[i];
  }
  s->call.a = &s->copies[0];
  s->call.b = &s->copies[1];
  s->call.c = &s->copies[2];
  struct mgpu_sparse_use use;
  int failure = mgpu_sparse_begin(vendor, call, &use);
  if (failure) {
    free(s);
    return failure;
  }
  if (vendor->check_type)
    failure = vendor->check_type(vendor->version, s->call.compute);
  if (!failure)
    failure = mgpu_sparse_describe(&use, &s->call, NULL, &s->operands);
  if (!failure) {
    failure = MGPU_SPARSE_CALL(vendor, SpGEMM_createDescr, (&s->descriptor));
    if (failure) {
      s->descriptor = NULL;
      destroy(&use, s);
    }
  }
  if (failure) {
    mgpu_sparse_end(&use, NULL);
    free(s);
    return failure;
  }
  mgpu_sparse_end(&use, &s->handle);
  spgemm->state = s;
  return 0;
}

/* Whether an operand is what it was; where a result goes may change. */
static bool is_same(const struct spgemm *s, int i, const struct mgpu_sparse *operand) {
  const struct mgpu_sparse *copy = &s->copies[i];
  bool moved = copy->positions != operand->positions || copy->indices != operand->indices ||
               copy->values != operand->values || copy->stored != operand->stored;
  return s->originals[i] == operand && (i == 2 || !moved);
}

/* The state of the same product, at least in that phase; NULL after mgpu_fail. */
static struct spgemm *state_of(const struct mgpu_sparse_call *call, const struct mgpu_sparse *spgemm,
                               enum phase least) {
  struct spgemm *s = spgemm->state;
  bool same = s && is_same(s, 0, call->a) && is_same(s, 1, call->b) && is_same(s, 2, call->c) &&
              s->call.mode_a == mgpu_sparse_mode(call->mode_a, call->a) &&
              s->call.mode_b == mgpu_sparse_mode(call->mode_b, call->b) &&
              s->call.compute == mgpu_sparse_compute_type(call->compute) &&
              s->call.place.device == call->place.device;
  if (same && s->phase >= least)
    return s;
  mgpu_fail(MGPU_ERROR_INVALID,
            s && !same      ? "The phases of this SpGEMM have different operands, modes, types or devices."
            : least < SIZED ? "mgpuSpGEMMWorkEstimation comes first, once without and once with a buffer."
                            : "mgpuSpGEMMCompute comes before this, once without and once with a buffer.");
  return NULL;
}

int mgpu_gpu_spgemm_estimate(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                             void *buffer) {
  struct mgpu_sparse_vendor *vendor = mgpu_sparse_vendor_of(call->place.backend);
  if (!buffer) {
    mgpu_gpu_spgemm_release(spgemm);
    int failure = start(vendor, call, spgemm);
    if (failure)
      return failure;
  }
  struct spgemm *s = state_of(call, spgemm, ASKED);
  if (!s || (buffer && mgpu_sparse_check_buffer("SpGEMM", *size, s->sizes[0])))
    return mgpu_pending();
  struct mgpu_sparse_use use;
  int failure = mgpu_sparse_begin_with(vendor, call, s->handle, &use);
  if (failure)
    return failure;
  failure = MGPU_SPARSE_CALL_ON(vendor, call, SpGEMM_workEstimation, (ARGUMENTS(use, s), size, buffer));
  mgpu_sparse_end(&use, &s->handle);
  if (failure)
    return failure;
  *size = s->sizes[0] = buffer ? s->sizes[0] : *size + (*size == 0);
  s->phase = buffer ? ESTIMATED : ASKED;
  return 0;
}

int mgpu_gpu_spgemm_compute(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                            void *buffer, int64_t *entries) {
  struct mgpu_sparse_vendor *vendor = mgpu_sparse_vendor_of(call->place.backend);
  struct spgemm *s = state_of(call, spgemm, buffer ? SIZED : ESTIMATED);
  if (!s || (buffer && mgpu_sparse_check_buffer("SpGEMM", *size, s->sizes[1])))
    return mgpu_pending();
  struct mgpu_sparse_use use;
  int failure = mgpu_sparse_begin_with(vendor, call, s->handle, &use);
  if (failure)
    return failure;
  failure = MGPU_SPARSE_CALL_ON(vendor, call, SpGEMM_compute, (ARGUMENTS(use, s), size, buffer));
  int64_t rows, cols;
  if (!failure && buffer)
    failure = MGPU_SPARSE_CALL(vendor, SpMatGetSize, (s->operands.of[2], &rows, &cols, entries));
  mgpu_sparse_end(&use, &s->handle);
  if (failure)
    return failure;
  *size = s->sizes[1] = buffer ? s->sizes[1] : *size + (*size == 0);
  s->phase = buffer ? COMPUTED : SIZED;
  return 0;
}

/* Some versions of the libraries multiply what is in the result's memory by beta even where beta is 0, and it
 * may be no number. */
static int clear_values(const struct mgpu_sparse_call *call) {
  const struct mgpu_sparse *c = call->c;
  if (c->pending == 0)
    return 0;
  return mgpu_backends[call->place.backend]->memset(call->place.device, c->values, 0, 1,
                                                    (size_t)c->pending * mgpu_sparse_type_size(c->type),
                                                    call->place.driver);
}

int mgpu_gpu_spgemm_copy(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm) {
  struct mgpu_sparse_vendor *vendor = mgpu_sparse_vendor_of(call->place.backend);
  struct spgemm *s = state_of(call, spgemm, COMPUTED);
  const struct mgpu_sparse *c = call->c;
  if (!s)
    return mgpu_pending();
  if (!c->positions || (c->pending && (!c->indices || !c->values)))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The matrix that an SpGEMM is copied to has no memory for %lld entries; "
                     "mgpuSetCsrPointers gives it.",
                     (long long)c->pending);
  struct mgpu_sparse_use use;
  int failure = mgpu_sparse_begin_with(vendor, call, s->handle, &use);
  if (failure)
    return failure;
  failure = clear_values(call);
  if (!failure)
    failure =
        MGPU_SPARSE_CALL(vendor, CsrSetPointers, (s->operands.of[2], c->positions, c->indices, c->values));
  if (!failure)
    failure = MGPU_SPARSE_CALL_ON(vendor, call, SpGEMM_copy, (ARGUMENTS(use, s)));
  mgpu_sparse_end(&use, &s->handle);
  return failure;
}
