/* The interface of NCCL: communicators, memory, and the operations as nccl_work.c does them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nccl_calls.h>

#include "base/bits.h"
#include "gpu_replay/software/libraries/nccl/nccl_types.h"
#include "gpu_replay/software/libraries/standin_version.h"

#define COMMUNICATOR UINT64_C(0x6e63636c636f6d6d)
#define NO_COLOR (-1)

/* They are not given back, as threads that watch a communicator ask it after its end. */
static frag_nccl_communicator *_Atomic all;

static frag_nccl_communicator *as_communicator(const void *pointer)
{
    frag_nccl_communicator *communicator = (frag_nccl_communicator *)(uintptr_t)pointer;
    return communicator != NULL && communicator->kind == COMMUNICATOR ? communicator : NULL;
}

/* One that can take work. */
static frag_nccl_communicator *as_living(const void *pointer)
{
    frag_nccl_communicator *communicator = as_communicator(pointer);
    return communicator != NULL && !atomic_load(&communicator->is_ended) ? communicator : NULL;
}

/* A function of the CUDA runtime; NULL: none is loaded. */
static void find_runtime(const char *name, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
}

static int get_device(void)
{
    int (*get)(int *) = NULL;
    int device = 0;
    find_runtime("cudaGetDevice", &get);
    return get != NULL && get(&device) == 0 ? device : 0;
}

static void note_buffers(void)
{
    frag_software_note("nccl",
                       "The real NCCL takes device memory of its own for each communicator, "
                       "outside of PyTorch's allocator; it is not counted here.");
}

static frag_nccl_communicator *make_communicator(const frag_nccl_id *id, int rank, int rank_count)
{
    frag_nccl_communicator *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->kind = COMMUNICATOR;
    made->id = *id;
    made->rank = rank;
    made->rank_count = rank_count;
    made->device = get_device();
    made->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &made->next, made)) {
    }
    note_buffers();
    return made;
}

/* Makes it known to the others and waits until all have come, at the end of the group if in one. */
static frag_nccl_result begin_communicator(const char *function, const frag_nccl_id *id, int rank,
                                           int rank_count, void **out)
{
    if (out == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *out = NULL;
    if (rank_count < 1 || rank < 0 || rank >= rank_count)
        return FRAG_NCCL_INVALID_ARGUMENT;
    frag_nccl_communicator *made = make_communicator(id, rank, rank_count);
    if (made == NULL)
        return FRAG_NCCL_SYSTEM_ERROR;
    *out = made;
    frag_nccl_result result = frag_nccl_join(made);
    if (result == FRAG_NCCL_SUCCESS)
        result = frag_nccl_submit(
            &(frag_nccl_work){.kind = FRAG_NCCL_JOIN, .communicator = made, .function = function});
    if (result != FRAG_NCCL_SUCCESS)
        atomic_store(&made->error, result);
    return result;
}

int32_t ncclGetVersion(int32_t *version)
{
    static const frag_standin_version otherwise = {2, 27, 5};
    frag_standin_version found = frag_standin_find_version("nccl", FRAG_CALLER(), otherwise);
    if (version == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *version = found.major * 10000 + found.minor * 100 + found.patch;
    return FRAG_NCCL_SUCCESS;
}

const char *ncclGetErrorString(int32_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && (size_t)result < sizeof texts / sizeof *texts ? texts[result]
                                                                        : "unknown result code";
}

const char *ncclGetLastError(void *pointer)
{
    const frag_nccl_communicator *communicator = as_communicator(pointer);
    if (communicator != NULL)
        return communicator->message;
    for (communicator = atomic_load(&all); communicator != NULL; communicator = communicator->next)
        if (communicator->message[0] != '\0')
            return communicator->message;
    return "";
}

int32_t ncclGetUniqueId(void *id)
{
    if (id == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    return frag_nccl_make_id(id) ? FRAG_NCCL_SUCCESS : FRAG_NCCL_SYSTEM_ERROR;
}

int32_t ncclCommGetUniqueId(void *communicator, void *id)
{
    (void)communicator;
    return ncclGetUniqueId(id);
}

int32_t ncclCommInitRank(void **out, int32_t rank_count, frag_standin_struct128 id, int32_t rank)
{
    frag_nccl_id copy;
    memcpy(&copy, &id, sizeof copy);
    return begin_communicator("ncclCommInitRank", &copy, rank, rank_count, out);
}

int32_t ncclCommInitRankConfig(void **out, int32_t rank_count, frag_standin_struct128 id,
                               int32_t rank, void *config)
{
    frag_nccl_id copy;
    (void)config;
    memcpy(&copy, &id, sizeof copy);
    return begin_communicator("ncclCommInitRankConfig", &copy, rank, rank_count, out);
}

int32_t ncclCommInitRankScalable(void **out, int32_t rank_count, int32_t rank, int32_t id_count,
                                 void *ids, void *config)
{
    frag_nccl_id id;
    (void)config;
    if (out != NULL)
        *out = NULL;
    if (ids == NULL || id_count < 1)
        return FRAG_NCCL_INVALID_ARGUMENT;
    memcpy(&id, ids, sizeof id);
    return begin_communicator("ncclCommInitRankScalable", &id, rank, rank_count, out);
}

/* All ranks are in this process; devices NULL: the first ones. */
int32_t ncclCommInitAll(void **out, int32_t count, const void *devices)
{
    frag_nccl_id id;
    int (*set)(int) = NULL;
    int before = get_device();
    if (out == NULL || count < 1)
        return FRAG_NCCL_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        out[i] = NULL;
    if (!frag_nccl_make_id(&id))
        return FRAG_NCCL_SYSTEM_ERROR;
    find_runtime("cudaSetDevice", &set);
    frag_nccl_group_start();
    frag_nccl_result result = FRAG_NCCL_SUCCESS;
    for (int i = 0; i < count && result == FRAG_NCCL_SUCCESS; i++) {
        int device = devices != NULL ? ((const int *)devices)[i] : i;
        if (set != NULL)
            set(device);
        result = begin_communicator("ncclCommInitAll", &id, i, count, &out[i]);
    }
    frag_nccl_result last = frag_nccl_group_end();
    if (set != NULL)
        set(before);
    return result != FRAG_NCCL_SUCCESS ? result : last;
}

/* ---- communicators from communicators */

typedef struct frag_nccl_member_choice {
    int color, key;
    frag_nccl_id id;
} frag_nccl_member_choice;

/* The ranks of a color by key, then by rank: the place of this one, and who comes first. */
static int find_place(const frag_nccl_member_choice *choices, int count, int rank, int *size,
                      int *first)
{
    int place = 0;
    *size = 0;
    *first = -1;
    for (int i = 0; i < count; i++) {
        if (choices[i].color != choices[rank].color)
            continue;
        ++*size;
        place +=
            choices[i].key < choices[rank].key || (choices[i].key == choices[rank].key && i < rank);
        if (*first < 0 || choices[i].key < choices[*first].key)
            *first = i;
    }
    return place;
}

/* Each rank offers a region; that of the first of each color is taken. The offers of the others are
 * closed with the process. */
int32_t ncclCommSplit(void *pointer, int32_t color, int32_t key, void **out, void *config)
{
    frag_nccl_communicator *parent = as_living(pointer);
    (void)config;
    if (out != NULL)
        *out = NULL;
    if (parent == NULL || out == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    frag_nccl_member_choice mine = {.color = color, .key = key};
    frag_nccl_member_choice *choices = calloc((size_t)parent->rank_count, sizeof *choices);
    if (choices == NULL || !frag_nccl_make_id(&mine.id)) {
        free(choices);
        return FRAG_NCCL_SYSTEM_ERROR;
    }
    frag_nccl_result result = frag_nccl_submit(&(frag_nccl_work){.kind = FRAG_NCCL_EXCHANGE,
                                                                 .communicator = parent,
                                                                 .function = "ncclCommSplit",
                                                                 .send = &mine,
                                                                 .receive = choices,
                                                                 .piece_bytes = sizeof mine});
    if (result == FRAG_NCCL_SUCCESS && color != NO_COLOR) {
        int size, first;
        int place = find_place(choices, parent->rank_count, parent->rank, &size, &first);
        result = begin_communicator("ncclCommSplit", &choices[first].id, place, size, out);
    }
    free(choices);
    return result;
}

/* Waits for the region that the first of the ranks that stay offers. */
static frag_nccl_result find_child(frag_nccl_communicator *parent, bool is_first, frag_nccl_id *id)
{
    frag_nccl_region *region = parent->region;
    uint64_t sequence = ++parent->child_count;
    memset(id, 0, sizeof *id);
    if (is_first) {
        if (!frag_nccl_make_id(id))
            return FRAG_NCCL_SYSTEM_ERROR;
        if (region != NULL) {
            memcpy(&region->child, id->bytes, sizeof region->child);
            atomic_store(&region->child_sequence, sequence);
        }
        return FRAG_NCCL_SUCCESS;
    }
    for (double waited = 0; atomic_load(&region->child_sequence) < sequence; waited += 0.001) {
        if (waited > frag_nccl_timeout_seconds())
            return FRAG_NCCL_REMOTE_ERROR;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    memcpy(id->bytes, &region->child, sizeof region->child);
    return FRAG_NCCL_SUCCESS;
}

int32_t ncclCommShrink(void *pointer, void *excluded, int32_t excluded_count, void **out,
                       void *config, int32_t flags)
{
    frag_nccl_communicator *parent = as_communicator(pointer);
    const int *ranks = excluded;
    frag_nccl_id id;
    (void)config, (void)flags;
    if (out != NULL)
        *out = NULL;
    if (parent == NULL || parent->region == NULL || out == NULL || excluded_count < 0 ||
        (ranks == NULL && excluded_count > 0))
        return FRAG_NCCL_INVALID_ARGUMENT;
    int place = parent->rank, size = parent->rank_count - excluded_count;
    for (int i = 0; i < excluded_count; i++) {
        if (ranks[i] == parent->rank)
            return FRAG_NCCL_INVALID_ARGUMENT;
        place -= ranks[i] < parent->rank;
    }
    frag_nccl_result result = find_child(parent, place == 0, &id);
    return result == FRAG_NCCL_SUCCESS ? begin_communicator("ncclCommShrink", &id, place, size, out)
                                       : result;
}

/* Ranks that are there keep their numbers and give -1; the one that has the id passes it on to
 * them through the region of the smaller communicator. */
int32_t ncclCommGrow(void *pointer, int32_t rank_count, const void *id, int32_t rank, void **out,
                     void *config)
{
    frag_nccl_communicator *parent = as_living(pointer);
    frag_nccl_id copy = {{0}};
    (void)config;
    if (out != NULL)
        *out = NULL;
    if (out == NULL || (parent == NULL && (pointer != NULL || id == NULL)))
        return FRAG_NCCL_INVALID_ARGUMENT;
    if (parent == NULL) {
        memcpy(&copy, id, sizeof copy);
        return begin_communicator("ncclCommGrow", &copy, rank, rank_count, out);
    }
    if (parent->region == NULL || rank_count <= parent->rank_count)
        return FRAG_NCCL_INVALID_ARGUMENT;
    if (id != NULL) {
        memcpy(&copy, id, sizeof copy);
        memcpy(&parent->region->child, copy.bytes, sizeof parent->region->child);
        atomic_store(&parent->region->child_sequence, ++parent->child_count);
    } else if (find_child(parent, false, &copy) != FRAG_NCCL_SUCCESS) {
        return FRAG_NCCL_REMOTE_ERROR;
    }
    return begin_communicator("ncclCommGrow", &copy, parent->rank, rank_count, out);
}

/* ---- the end of communicators: nobody waits for anybody */

static int32_t end_communicator(void *pointer)
{
    frag_nccl_communicator *communicator = as_communicator(pointer);
    if (communicator == NULL)
        return pointer == NULL ? FRAG_NCCL_SUCCESS : FRAG_NCCL_INVALID_ARGUMENT;
    if (atomic_exchange(&communicator->is_ended, true))
        return FRAG_NCCL_SUCCESS;
    frag_nccl_drop_late(communicator);
    frag_nccl_leave(communicator);
    return FRAG_NCCL_SUCCESS;
}

int32_t ncclCommDestroy(void *communicator)
{
    return end_communicator(communicator);
}

/* Another thread may be waiting in an operation: it sees the flag, and the region stays. */
int32_t ncclCommAbort(void *pointer)
{
    frag_nccl_communicator *communicator = as_communicator(pointer);
    if (communicator == NULL)
        return pointer == NULL ? FRAG_NCCL_SUCCESS : FRAG_NCCL_INVALID_ARGUMENT;
    if (!atomic_exchange(&communicator->is_ended, true) && communicator->region != NULL)
        atomic_store(&communicator->region->members[communicator->rank].state, FRAG_NCCL_LEFT);
    return FRAG_NCCL_SUCCESS;
}

int32_t ncclCommRevoke(void *pointer, int32_t flags)
{
    frag_nccl_communicator *communicator = as_living(pointer);
    (void)flags;
    return communicator != NULL ? FRAG_NCCL_SUCCESS : FRAG_NCCL_INVALID_ARGUMENT;
}

/* ---- what is asked of communicators */

static int32_t give_number(const void *pointer, int32_t *out, int value)
{
    bool is_there = as_communicator(pointer) != NULL;
    if (out == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *out = is_there ? value : 0;
    return is_there ? FRAG_NCCL_SUCCESS : FRAG_NCCL_INVALID_ARGUMENT;
}

int32_t ncclCommCount(void *pointer, int32_t *count)
{
    const frag_nccl_communicator *communicator = as_communicator(pointer);
    return give_number(pointer, count, communicator != NULL ? communicator->rank_count : 0);
}

int32_t ncclCommUserRank(void *pointer, int32_t *rank)
{
    const frag_nccl_communicator *communicator = as_communicator(pointer);
    return give_number(pointer, rank, communicator != NULL ? communicator->rank : 0);
}

int32_t ncclCommCuDevice(void *pointer, int32_t *device)
{
    const frag_nccl_communicator *communicator = as_communicator(pointer);
    return give_number(pointer, device, communicator != NULL ? communicator->device : 0);
}

int32_t ncclCommGetAsyncError(void *pointer, int32_t *error)
{
    frag_nccl_communicator *communicator = as_communicator(pointer);
    return give_number(pointer, error,
                       communicator != NULL ? atomic_load(&communicator->error) : 0);
}

/* ---- memory */

int32_t ncclMemAlloc(void **out, uint64_t bytes)
{
    int (*allocate)(void **, size_t) = NULL;
    if (out == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *out = NULL;
    find_runtime("cudaMalloc", &allocate);
    return allocate != NULL && allocate(out, bytes) == 0 ? FRAG_NCCL_SUCCESS
                                                         : FRAG_NCCL_UNHANDLED_CUDA_ERROR;
}

int32_t ncclMemFree(void *memory)
{
    int (*release)(void *) = NULL;
    find_runtime("cudaFree", &release);
    return release != NULL && release(memory) == 0 ? FRAG_NCCL_SUCCESS
                                                   : FRAG_NCCL_UNHANDLED_CUDA_ERROR;
}

/* A window remembers where it is. */
int32_t ncclCommWindowRegister(void *communicator, void *buffer, uint64_t bytes, void **window,
                               int32_t flags)
{
    (void)communicator, (void)bytes, (void)flags;
    if (window == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *window = frag_standin_new();
    frag_standin_set(*window, 0, (uint64_t)(uintptr_t)buffer);
    return FRAG_NCCL_SUCCESS;
}

int32_t ncclWinGetUserPtr(void *communicator, void *window, void **out)
{
    (void)communicator;
    if (out == NULL)
        return FRAG_NCCL_INVALID_ARGUMENT;
    *out = (void *)(uintptr_t)frag_standin_get(window, 0);
    return FRAG_NCCL_SUCCESS;
}

/* ---- operations */

static frag_nccl_result submit(void *pointer, frag_nccl_work work, size_t count)
{
    frag_nccl_communicator *communicator = as_living(pointer);
    size_t element_bytes = frag_nccl_type_bytes(work.type);
    if (communicator == NULL || element_bytes == 0)
        return FRAG_NCCL_INVALID_ARGUMENT;
    if (work.peer < 0 || work.peer >= communicator->rank_count)
        return FRAG_NCCL_INVALID_ARGUMENT;
    if (atomic_load(&communicator->error) != FRAG_NCCL_SUCCESS)
        return (frag_nccl_result)atomic_load(&communicator->error);
    work.communicator = communicator;
    work.piece_bytes = count * element_bytes;
    return frag_nccl_submit(&work);
}

int32_t ncclAllReduce(const void *send, void *receive, uint64_t count, int32_t type,
                      int32_t operation, void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_ALL_REDUCE,
                                   .function = "ncclAllReduce",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .operation = operation},
                  count);
}

int32_t ncclReduce(const void *send, void *receive, uint64_t count, int32_t type, int32_t operation,
                   int32_t root, void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_REDUCE,
                                   .function = "ncclReduce",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .operation = operation,
                                   .peer = root},
                  count);
}

int32_t ncclReduceScatter(const void *send, void *receive, uint64_t count, int32_t type,
                          int32_t operation, void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_REDUCE_SCATTER,
                                   .function = "ncclReduceScatter",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .operation = operation},
                  count);
}

int32_t ncclBroadcast(const void *send, void *receive, uint64_t count, int32_t type, int32_t root,
                      void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_BROADCAST,
                                   .function = "ncclBroadcast",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .peer = root},
                  count);
}

int32_t ncclBcast(void *buffer, uint64_t count, int32_t type, int32_t root, void *communicator,
                  void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

int32_t ncclAllGather(const void *send, void *receive, uint64_t count, int32_t type,
                      void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_ALL_GATHER,
                                   .function = "ncclAllGather",
                                   .send = send,
                                   .receive = receive,
                                   .type = type},
                  count);
}

int32_t ncclAlltoAll(const void *send, void *receive, uint64_t count, int32_t type,
                     void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_ALL_TO_ALL,
                                   .function = "ncclAlltoAll",
                                   .send = send,
                                   .receive = receive,
                                   .type = type},
                  count);
}

int32_t ncclGather(const void *send, void *receive, uint64_t count, int32_t type, int32_t root,
                   void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_GATHER,
                                   .function = "ncclGather",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .peer = root},
                  count);
}

int32_t ncclScatter(const void *send, void *receive, uint64_t count, int32_t type, int32_t root,
                    void *communicator, void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_SCATTER,
                                   .function = "ncclScatter",
                                   .send = send,
                                   .receive = receive,
                                   .type = type,
                                   .peer = root},
                  count);
}

int32_t ncclSend(const void *send, uint64_t count, int32_t type, int32_t peer, void *communicator,
                 void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_SEND,
                                   .function = "ncclSend",
                                   .send = send,
                                   .type = type,
                                   .peer = peer},
                  count);
}

int32_t ncclRecv(void *receive, uint64_t count, int32_t type, int32_t peer, void *communicator,
                 void *stream)
{
    (void)stream;
    return submit(communicator,
                  (frag_nccl_work){.kind = FRAG_NCCL_RECEIVE,
                                   .function = "ncclRecv",
                                   .receive = receive,
                                   .type = type,
                                   .peer = peer},
                  count);
}

int32_t ncclGroupStart(void)
{
    frag_nccl_group_start();
    return FRAG_NCCL_SUCCESS;
}

int32_t ncclGroupEnd(void)
{
    return frag_nccl_group_end();
}

int32_t ncclGroupSimulateEnd(void *information)
{
    (void)information;
    return frag_nccl_group_end();
}
