/* Work areas of plans. The documentation of cuFFT names only the worst case, 8 x batch x elements
 * complex numbers, which Bluestein's algorithm takes. Lengths of small primes (2, 3, 5, 7) are done
 * by Cooley and Tukey's, which takes a copy of the data at most, and often nothing. */
#include "gpu_replay/software/libraries/cufft.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <cufft_calls.h>

enum { INVALID_PLAN = 1, INVALID_VALUE = 4, RANK_MAX = 3, WORST_COPIES = 8 };

typedef struct transform {
    int32_t rank;
    uint64_t lengths[RANK_MAX];
    uint64_t batch;
    uint64_t element_bytes;
} transform;

/* Plans that have a size. */
typedef struct plan {
    struct plan *next;
    int32_t number;
    uint64_t work_bytes;
} plan;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plan *first;

static plan **find_plan(int32_t number)
{
    plan **link = &first;
    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

static void keep_size(int32_t number, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    plan **link = find_plan(number);
    if (*link == NULL) {
        *link = calloc(1, sizeof **link);
        if (*link == NULL) {
            fputs("software CUDA: out of host memory for a plan\n", stderr);
            abort();
        }
        (*link)->number = number;
    }
    (*link)->work_bytes = bytes;
    pthread_mutex_unlock(&lock);
}

int32_t cufftDestroy(int32_t number)
{
    pthread_mutex_lock(&lock);
    plan **link = find_plan(number);
    if (*link != NULL) {
        plan *ended = *link;
        *link = ended->next;
        free(ended);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int32_t cufftGetSize(int32_t number, int64_t *bytes)
{
    if (bytes == NULL)
        return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    plan **link = find_plan(number);
    *bytes = *link == NULL ? 0 : (int64_t)(*link)->work_bytes;
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool has_small_primes_only(uint64_t length)
{
    static const unsigned primes[] = {2, 3, 5, 7};
    for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
        while (length > 1 && length % primes[i] == 0)
            length /= primes[i];
    return length <= 1;
}

static uint64_t get_work_bytes(const char *function, const transform *wanted)
{
    uint64_t bytes = wanted->element_bytes * wanted->batch;
    bool is_smooth = true;
    for (int32_t i = 0; i < wanted->rank; i++) {
        bytes *= wanted->lengths[i];
        is_smooth = is_smooth && has_small_primes_only(wanted->lengths[i]);
    }
    return frag_standin_size(function, "work area", 0, is_smooth ? bytes : WORST_COPIES * bytes, 1);
}

/* A cufftType has the bit of double precision. */
static uint64_t bytes_of(int32_t type)
{
    return (type & 0x40) != 0 ? 16 : 8;
}

static int32_t estimate(const char *function, const transform *wanted, int64_t *bytes)
{
    if (bytes == NULL)
        return INVALID_VALUE;
    *bytes = 0;
    if (wanted->rank < 1 || wanted->rank > RANK_MAX)
        return INVALID_VALUE;
    *bytes = (int64_t)get_work_bytes(function, wanted);
    return 0;
}

static int32_t make(const char *function, int32_t number, const transform *wanted, int64_t *bytes)
{
    int64_t work_bytes = 0;
    int32_t status = estimate(function, wanted, &work_bytes);
    if (bytes != NULL)
        *bytes = work_bytes;
    if (status == 0)
        keep_size(number, (uint64_t)work_bytes);
    return status;
}

static int32_t plan_new(const char *function, int32_t *number, const transform *wanted)
{
    if (number == NULL)
        return INVALID_PLAN;
    *number = frag_standin_new_number();
    return make(function, *number, wanted, NULL);
}

static transform shape1(int32_t x, int32_t type, int32_t batch)
{
    return (transform){1, {frag_standin_count(x), 1, 1}, frag_standin_count(batch), bytes_of(type)};
}

static transform shape2(int32_t x, int32_t y, int32_t type)
{
    return (transform){2, {frag_standin_count(x), frag_standin_count(y), 1}, 1, bytes_of(type)};
}

static transform shape3(int32_t x, int32_t y, int32_t z, int32_t type)
{
    return (transform){3,
                       {frag_standin_count(x), frag_standin_count(y), frag_standin_count(z)},
                       1,
                       bytes_of(type)};
}

/* Rank 0: there are no lengths. */
static transform shape_many(int32_t rank, const int32_t *lengths, int32_t type, int32_t batch)
{
    transform made = {
        lengths == NULL ? 0 : rank, {1, 1, 1}, frag_standin_count(batch), bytes_of(type)};
    for (int32_t i = 0; i < made.rank && i < RANK_MAX; i++)
        made.lengths[i] = frag_standin_count(lengths[i]);
    return made;
}

static transform shape_many64(int32_t rank, const int64_t *lengths, uint64_t element_bytes,
                              int64_t batch)
{
    transform made = {
        lengths == NULL ? 0 : rank, {1, 1, 1}, frag_standin_count(batch), element_bytes};
    for (int32_t i = 0; i < made.rank && i < RANK_MAX; i++)
        made.lengths[i] = frag_standin_count(lengths[i]);
    return made;
}

int32_t cufftEstimate1d(int32_t x, int32_t type, int32_t batch, int64_t *bytes)
{
    transform wanted = shape1(x, type, batch);
    return estimate("cufftEstimate1d", &wanted, bytes);
}

int32_t cufftEstimate2d(int32_t x, int32_t y, int32_t type, int64_t *bytes)
{
    transform wanted = shape2(x, y, type);
    return estimate("cufftEstimate2d", &wanted, bytes);
}

int32_t cufftEstimate3d(int32_t x, int32_t y, int32_t z, int32_t type, int64_t *bytes)
{
    transform wanted = shape3(x, y, z, type);
    return estimate("cufftEstimate3d", &wanted, bytes);
}

int32_t cufftGetSize1d(int32_t number, int32_t x, int32_t type, int32_t batch, int64_t *bytes)
{
    (void)number;
    transform wanted = shape1(x, type, batch);
    return estimate("cufftGetSize1d", &wanted, bytes);
}

int32_t cufftGetSize2d(int32_t number, int32_t x, int32_t y, int32_t type, int64_t *bytes)
{
    (void)number;
    transform wanted = shape2(x, y, type);
    return estimate("cufftGetSize2d", &wanted, bytes);
}

int32_t cufftGetSize3d(int32_t number, int32_t x, int32_t y, int32_t z, int32_t type,
                       int64_t *bytes)
{
    (void)number;
    transform wanted = shape3(x, y, z, type);
    return estimate("cufftGetSize3d", &wanted, bytes);
}

int32_t cufftMakePlan1d(int32_t number, int32_t x, int32_t type, int32_t batch, int64_t *bytes)
{
    transform wanted = shape1(x, type, batch);
    return make("cufftMakePlan1d", number, &wanted, bytes);
}

int32_t cufftMakePlan2d(int32_t number, int32_t x, int32_t y, int32_t type, int64_t *bytes)
{
    transform wanted = shape2(x, y, type);
    return make("cufftMakePlan2d", number, &wanted, bytes);
}

int32_t cufftMakePlan3d(int32_t number, int32_t x, int32_t y, int32_t z, int32_t type,
                        int64_t *bytes)
{
    transform wanted = shape3(x, y, z, type);
    return make("cufftMakePlan3d", number, &wanted, bytes);
}

int32_t cufftPlan1d(int32_t *number, int32_t x, int32_t type, int32_t batch)
{
    transform wanted = shape1(x, type, batch);
    return plan_new("cufftPlan1d", number, &wanted);
}

int32_t cufftPlan2d(int32_t *number, int32_t x, int32_t y, int32_t type)
{
    transform wanted = shape2(x, y, type);
    return plan_new("cufftPlan2d", number, &wanted);
}

int32_t cufftPlan3d(int32_t *number, int32_t x, int32_t y, int32_t z, int32_t type)
{
    transform wanted = shape3(x, y, z, type);
    return plan_new("cufftPlan3d", number, &wanted);
}

/* Strides and distances move data, not the work area. */
#define EMBEDDINGS(type)                                                                           \
    const void *in_embedding, type in_stride, type in_distance, const void *out_embedding,         \
        type out_stride, type out_distance
#define UNUSED_EMBEDDINGS                                                                          \
    (void)in_embedding, (void)in_stride, (void)in_distance, (void)out_embedding, (void)out_stride, \
        (void)out_distance

int32_t cufftEstimateMany(int32_t rank, const void *lengths, EMBEDDINGS(int32_t), int32_t type,
                          int32_t batch, int64_t *bytes)
{
    UNUSED_EMBEDDINGS;
    transform wanted = shape_many(rank, lengths, type, batch);
    return estimate("cufftEstimateMany", &wanted, bytes);
}

int32_t cufftGetSizeMany(int32_t number, int32_t rank, const void *lengths, EMBEDDINGS(int32_t),
                         int32_t type, int32_t batch, int64_t *bytes)
{
    UNUSED_EMBEDDINGS;
    (void)number;
    transform wanted = shape_many(rank, lengths, type, batch);
    return estimate("cufftGetSizeMany", &wanted, bytes);
}

int32_t cufftMakePlanMany(int32_t number, int32_t rank, const void *lengths, EMBEDDINGS(int32_t),
                          int32_t type, int32_t batch, int64_t *bytes)
{
    UNUSED_EMBEDDINGS;
    transform wanted = shape_many(rank, lengths, type, batch);
    return make("cufftMakePlanMany", number, &wanted, bytes);
}

int32_t cufftPlanMany(int32_t *number, int32_t rank, const void *lengths, EMBEDDINGS(int32_t),
                      int32_t type, int32_t batch)
{
    UNUSED_EMBEDDINGS;
    transform wanted = shape_many(rank, lengths, type, batch);
    return plan_new("cufftPlanMany", number, &wanted);
}

int32_t cufftGetSizeMany64(int32_t number, int32_t rank, const void *lengths, EMBEDDINGS(int64_t),
                           int32_t type, int64_t batch, int64_t *bytes)
{
    UNUSED_EMBEDDINGS;
    (void)number;
    transform wanted = shape_many64(rank, lengths, bytes_of(type), batch);
    return estimate("cufftGetSizeMany64", &wanted, bytes);
}

int32_t cufftMakePlanMany64(int32_t number, int32_t rank, const void *lengths, EMBEDDINGS(int64_t),
                            int32_t type, int64_t batch, int64_t *bytes)
{
    UNUSED_EMBEDDINGS;
    transform wanted = shape_many64(rank, lengths, bytes_of(type), batch);
    return make("cufftMakePlanMany64", number, &wanted, bytes);
}

/* Types are given one by one: the wider of the two is complex. */
static uint64_t widest(int32_t in_type, int32_t out_type)
{
    return frag_standin_max(frag_standin_type_bytes((uint64_t)(uint32_t)in_type),
                            frag_standin_type_bytes((uint64_t)(uint32_t)out_type));
}

int32_t cufftXtGetSizeMany(int32_t number, int32_t rank, const void *lengths,
                           const void *in_embedding, int64_t in_stride, int64_t in_distance,
                           int32_t in_type, const void *out_embedding, int64_t out_stride,
                           int64_t out_distance, int32_t out_type, int64_t batch, int64_t *bytes,
                           int32_t execution_type)
{
    UNUSED_EMBEDDINGS;
    (void)number, (void)execution_type;
    transform wanted = shape_many64(rank, lengths, widest(in_type, out_type), batch);
    return estimate("cufftXtGetSizeMany", &wanted, bytes);
}

int32_t cufftXtMakePlanMany(int32_t number, int32_t rank, const void *lengths,
                            const void *in_embedding, int64_t in_stride, int64_t in_distance,
                            int32_t in_type, const void *out_embedding, int64_t out_stride,
                            int64_t out_distance, int32_t out_type, int64_t batch, int64_t *bytes,
                            int32_t execution_type)
{
    UNUSED_EMBEDDINGS;
    (void)execution_type;
    transform wanted = shape_many64(rank, lengths, widest(in_type, out_type), batch);
    return make("cufftXtMakePlanMany", number, &wanted, bytes);
}
