/* Operations: what a rank posts for the others, what it waits for, what is known afterwards. */
#include "gpu_replay/software/libraries/nccl/nccl_types.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_replay/software/software_cuda.h"

static _Thread_local struct {
    int depth;
    size_t count, capacity;
    frag_nccl_work *works;
} group;

static int get_rank_count(const frag_nccl_work *work)
{
    return work->communicator->rank_count;
}

static bool is_message(const frag_nccl_work *work)
{
    return work->kind == FRAG_NCCL_SEND || work->kind == FRAG_NCCL_RECEIVE;
}

/* What one rank of a collective posts: a piece, or one for every rank. */
static size_t posted_bytes(const frag_nccl_work *work)
{
    bool is_for_each = work->kind == FRAG_NCCL_REDUCE_SCATTER ||
                       work->kind == FRAG_NCCL_ALL_TO_ALL || work->kind == FRAG_NCCL_SCATTER;
    return work->piece_bytes * (is_for_each ? (size_t)get_rank_count(work) : 1);
}

/* What the operation writes on this rank. */
static size_t received_bytes(const frag_nccl_work *work)
{
    bool is_root = work->peer == work->communicator->rank;
    switch (work->kind) {
    case FRAG_NCCL_ALL_GATHER:
    case FRAG_NCCL_ALL_TO_ALL:
    case FRAG_NCCL_EXCHANGE:
        return work->piece_bytes * (size_t)get_rank_count(work);
    case FRAG_NCCL_GATHER:
        return is_root ? work->piece_bytes * (size_t)get_rank_count(work) : 0;
    case FRAG_NCCL_REDUCE:
        return is_root ? work->piece_bytes : 0;
    case FRAG_NCCL_JOIN:
    case FRAG_NCCL_SEND:
        return 0;
    default:
        return work->piece_bytes;
    }
}

/* All ranks decide this alike, by the sizes. */
static bool may_be_known(const frag_nccl_work *work)
{
    return posted_bytes(work) > 0 && posted_bytes(work) <= FRAG_NCCL_PIECE_MAX;
}

static bool posts(const frag_nccl_work *work)
{
    int rank = work->communicator->rank;
    if (work->kind == FRAG_NCCL_BROADCAST || work->kind == FRAG_NCCL_SCATTER)
        return work->peer == rank;
    return work->kind != FRAG_NCCL_JOIN && work->kind != FRAG_NCCL_RECEIVE;
}

/* Does this rank need what that one posts? */
static bool needs(const frag_nccl_work *work, int rank)
{
    switch (work->kind) {
    case FRAG_NCCL_BROADCAST:
    case FRAG_NCCL_SCATTER:
        return rank == work->peer;
    case FRAG_NCCL_REDUCE:
    case FRAG_NCCL_GATHER:
        return work->communicator->rank == work->peer;
    default:
        return true;
    }
}

static void fill(frag_nccl_slot *slot, const frag_nccl_work *work, size_t bytes)
{
    slot->bytes = bytes;
    if (work->kind == FRAG_NCCL_EXCHANGE) {
        memcpy(slot->data, work->send, bytes);
        slot->is_known = true;
    } else {
        slot->is_known = frag_software_read(work->send, slot->data, bytes) == bytes;
    }
    atomic_store(&slot->sequence, work->sequence);
}

/* false: the ring is full, as a rank has not done with the oldest. */
static bool post(frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    if (work->kind == FRAG_NCCL_SEND) {
        uint64_t taken = atomic_load(frag_nccl_taken(communicator, communicator->rank, work->peer));
        if (work->sequence > taken + FRAG_NCCL_SLOTS)
            return false;
        fill(frag_nccl_mailbox(communicator, communicator->rank, work->peer, work->sequence), work,
             work->piece_bytes);
        return true;
    }
    if (!posts(work))
        return true;
    for (int i = 0; i < communicator->rank_count; i++)
        if (work->sequence >
            atomic_load(&communicator->region->members[i].finished) + FRAG_NCCL_SLOTS)
            return false;
    fill(frag_nccl_ring(communicator, communicator->rank, work->sequence), work,
         posted_bytes(work));
    return true;
}

static void give(const frag_nccl_work *work, size_t offset, const void *data, size_t bytes,
                 bool is_known)
{
    unsigned char *to = (unsigned char *)work->receive + offset;
    if (work->kind == FRAG_NCCL_EXCHANGE)
        memcpy(to, data, bytes);
    else if (is_known)
        frag_software_write(to, data, bytes);
    else
        frag_software_forget(to, bytes);
}

static void give_reduced(const frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    bool is_scatter = work->kind == FRAG_NCCL_REDUCE_SCATTER;
    size_t offset = is_scatter ? work->piece_bytes * (size_t)communicator->rank : 0;
    size_t element_bytes = frag_nccl_type_bytes(work->type);
    size_t count = element_bytes > 0 ? work->piece_bytes / element_bytes : 0;
    static _Thread_local uint64_t sum[FRAG_NCCL_PIECE_MAX / sizeof(uint64_t)];
    bool is_known = count > 0;
    if (received_bytes(work) == 0)
        return;
    for (int i = 0; i < communicator->rank_count && is_known; i++) {
        const frag_nccl_slot *slot = frag_nccl_ring(communicator, i, work->sequence);
        is_known = slot->is_known && slot->bytes >= offset + work->piece_bytes;
        if (is_known && i == 0)
            memcpy(sum, slot->data + offset, work->piece_bytes);
        else if (is_known)
            is_known =
                frag_nccl_reduce(work->type, work->operation, sum, slot->data + offset, count);
    }
    is_known = is_known &&
               frag_nccl_finish(work->type, work->operation, sum, count, communicator->rank_count);
    give(work, 0, sum, work->piece_bytes, is_known);
}

static void give_pieces(const frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    bool is_for_each = posted_bytes(work) != work->piece_bytes;
    size_t mine = is_for_each ? work->piece_bytes * (size_t)communicator->rank : 0;
    bool is_one = work->kind == FRAG_NCCL_BROADCAST || work->kind == FRAG_NCCL_SCATTER;
    if (received_bytes(work) == 0)
        return;
    for (int i = 0; i < communicator->rank_count; i++) {
        if (is_one && i != work->peer)
            continue;
        const frag_nccl_slot *slot = frag_nccl_ring(communicator, i, work->sequence);
        size_t stride = work->stride_bytes > 0 ? work->stride_bytes : work->piece_bytes;
        give(work, is_one ? 0 : stride * (size_t)i, slot->data + mine, work->piece_bytes,
             slot->is_known && slot->bytes >= mine + work->piece_bytes);
    }
}

/* false: something that is needed is not there yet. */
static bool take_message(frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    frag_nccl_slot *slot =
        frag_nccl_mailbox(communicator, work->peer, communicator->rank, work->sequence);
    _Atomic uint64_t *taken = frag_nccl_taken(communicator, work->peer, communicator->rank);
    if (atomic_load(taken) + 1 != work->sequence || atomic_load(&slot->sequence) != work->sequence)
        return false;
    if (!work->is_overwritten)
        give(work, 0, slot->data, work->piece_bytes,
             slot->is_known && slot->bytes == work->piece_bytes);
    atomic_store(taken, work->sequence);
    return true;
}

static bool finish(frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    if (work->kind == FRAG_NCCL_JOIN)
        return frag_nccl_all_joined(communicator);
    if (work->kind == FRAG_NCCL_SEND)
        return true;
    if (work->kind == FRAG_NCCL_RECEIVE)
        return take_message(work);
    _Atomic uint64_t *finished = &communicator->region->members[communicator->rank].finished;
    if (atomic_load(finished) + 1 != work->sequence)
        return false;
    for (int i = 0; i < communicator->rank_count; i++)
        if (needs(work, i) &&
            atomic_load(&frag_nccl_ring(communicator, i, work->sequence)->sequence) !=
                work->sequence)
            return false;
    if (work->kind == FRAG_NCCL_ALL_REDUCE || work->kind == FRAG_NCCL_REDUCE ||
        work->kind == FRAG_NCCL_REDUCE_SCATTER)
        give_reduced(work);
    else
        give_pieces(work);
    atomic_store(finished, work->sequence);
    return true;
}

/* Of a single rank, every operation is a copy. */
static void copy_to_itself(const frag_nccl_work *work)
{
    if (work->kind == FRAG_NCCL_EXCHANGE)
        memcpy(work->receive, work->send, work->piece_bytes);
    else if (received_bytes(work) > 0 && work->send != NULL && work->send != work->receive)
        frag_software_copy(work->receive, work->send, work->piece_bytes);
}

/* Operations that carry nothing known are over at once; the others get their turn. */
static void begin(frag_nccl_work *work)
{
    frag_nccl_communicator *communicator = work->communicator;
    if (work->kind != FRAG_NCCL_EXCHANGE && received_bytes(work) > 0)
        frag_nccl_overwrite(work->receive, received_bytes(work));
    if (work->kind == FRAG_NCCL_JOIN)
        return;
    if (communicator->rank_count == 1 && !is_message(work)) {
        copy_to_itself(work);
        work->is_done = true;
    } else if (!may_be_known(work)) {
        if (received_bytes(work) > 0)
            frag_software_forget(work->receive, received_bytes(work));
        work->is_done = true;
    } else if (work->kind == FRAG_NCCL_SEND) {
        work->sequence = ++communicator->sent_counts[work->peer];
    } else if (work->kind == FRAG_NCCL_RECEIVE) {
        work->sequence = ++communicator->received_counts[work->peer];
    } else {
        work->sequence = ++communicator->collective_count;
    }
}

/* true: something got on. The first work of a kind and peer that waits holds up those behind it,
 * as their sequences are higher. */
bool frag_nccl_advance(frag_nccl_work *work)
{
    bool has_advanced = false;
    if (!work->is_posted && post(work))
        has_advanced = work->is_posted = true;
    if (work->is_posted && finish(work))
        has_advanced = work->is_done = true;
    return has_advanced;
}

double frag_nccl_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* "ncclRecv of message 3 from rank 1, 4096 bytes,": which of a program's operations it is. */
static void describe(const frag_nccl_work *work, char *out, size_t out_bytes)
{
    if (is_message(work))
        snprintf(out, out_bytes, "%s of message %" PRIu64 " %s rank %d, %zu bytes,", work->function,
                 work->sequence, work->kind == FRAG_NCCL_SEND ? "to" : "from", work->peer,
                 work->piece_bytes);
    else if (work->kind == FRAG_NCCL_JOIN)
        snprintf(out, out_bytes, "%s", work->function);
    else
        snprintf(out, out_bytes, "%s, collective %" PRIu64 ",", work->function, work->sequence);
}

static frag_nccl_result fail(frag_nccl_work *work, const char *why, int rank)
{
    frag_nccl_communicator *communicator = work->communicator;
    char what[128];
    describe(work, what, sizeof what);
    snprintf(communicator->message, sizeof communicator->message,
             "%s on rank %d of %d: rank %d %s (software NCCL)", what, communicator->rank,
             communicator->rank_count, rank, why);
    atomic_store(&communicator->error, FRAG_NCCL_REMOTE_ERROR);
    return FRAG_NCCL_REMOTE_ERROR;
}

/* Does the work wait for that rank? Others may have ended meanwhile, after their part in it. */
static bool waits_for(const frag_nccl_work *work, int rank)
{
    frag_nccl_communicator *communicator = work->communicator;
    frag_nccl_member *member = &communicator->region->members[rank];
    if (is_message(work))
        return rank == work->peer;
    if (work->kind == FRAG_NCCL_JOIN)
        return atomic_load(&member->state) == FRAG_NCCL_ABSENT;
    if (!work->is_posted)
        return work->sequence > atomic_load(&member->finished) + FRAG_NCCL_SLOTS;
    return needs(work, rank) &&
           atomic_load(&frag_nccl_ring(communicator, rank, work->sequence)->sequence) !=
               work->sequence;
}

/* Once for each communicator: a hang is seen before anything times out, and by everyone. */
static void tell_if_long(const frag_nccl_work *work, int missing, double deadline)
{
    frag_nccl_communicator *communicator = work->communicator;
    char what[128];
    double waited = frag_nccl_now() - (deadline - frag_nccl_timeout_seconds());
    if (waited < frag_nccl_notice_seconds() || atomic_exchange(&communicator->has_told, true))
        return;
    describe(work, what, sizeof what);
    fprintf(stderr,
            "software NCCL: rank %d of %d has waited %.0f seconds in %s for rank %d; it goes on "
            "waiting for %.0f (FRAGLAB_SOFTWARE_NCCL_TIMEOUT)\n",
            communicator->rank, communicator->rank_count, waited, what, missing,
            frag_nccl_timeout_seconds());
}

/* A rank may have done its part just before it ended: the work is tried once more before it is
 * given up. While ranks join, one that ended was needed by those that are still to come. */
frag_nccl_result frag_nccl_look_for_trouble(frag_nccl_work *work, double deadline)
{
    frag_nccl_communicator *communicator = work->communicator;
    int missing = communicator->rank;
    if (atomic_load(&communicator->is_ended) || atomic_load(&communicator->error) != 0)
        return fail(work, "aborted the communicator", communicator->rank);
    for (int i = communicator->rank_count - 1; i >= 0; i--) {
        if (waits_for(work, i))
            missing = i;
        else if (work->kind != FRAG_NCCL_JOIN)
            continue;
        if (frag_nccl_has_ended(communicator, i) && !frag_nccl_advance(work))
            return fail(work, "has ended", i);
    }
    tell_if_long(work, missing, deadline);
    if (frag_nccl_now() > deadline)
        return fail(work, "did not come in time (FRAGLAB_SOFTWARE_NCCL_TIMEOUT)", missing);
    return FRAG_NCCL_SUCCESS;
}

static frag_nccl_work *first_left(frag_nccl_work *works, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!works[i].is_done)
            return &works[i];
    return NULL;
}

static bool are_receives(const frag_nccl_work *works, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (works[i].kind != FRAG_NCCL_RECEIVE)
            return false;
    return true;
}

static frag_nccl_result receive_later(const frag_nccl_work *works, size_t count)
{
    frag_nccl_result result = FRAG_NCCL_SUCCESS;
    for (size_t i = 0; i < count && result == FRAG_NCCL_SUCCESS; i++)
        if (!works[i].is_done)
            result = frag_nccl_put_off(&works[i]);
    frag_nccl_take_late();
    return result;
}

static frag_nccl_result run(frag_nccl_work *works, size_t count)
{
    double deadline = frag_nccl_now() + frag_nccl_timeout_seconds();
    unsigned idle_count = 0;
    for (size_t i = 0; i < count; i++)
        begin(&works[i]);
    if (are_receives(works, count))
        return receive_later(works, count);
    for (frag_nccl_work *left; (left = first_left(works, count)) != NULL;) {
        bool has_advanced = frag_nccl_take_late();
        for (size_t i = 0; i < count; i++)
            if (!works[i].is_done)
                has_advanced |= frag_nccl_advance(&works[i]);
        if (has_advanced) {
            idle_count = 0;
            continue;
        }
        if (++idle_count < 64) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = idle_count < 1000 ? 50000 : 1000000}, NULL);
        frag_nccl_result result =
            idle_count % 64 == 0 ? frag_nccl_look_for_trouble(left, deadline) : FRAG_NCCL_SUCCESS;
        if (result != FRAG_NCCL_SUCCESS)
            return result;
    }
    return FRAG_NCCL_SUCCESS;
}

/* More than a slot holds, of which the program keeps the bytes all the same. All ranks decide this
 * alike, as they set the limit alike. */
static bool is_in_parts(const frag_nccl_work *work)
{
    bool can_be =
        work->kind == FRAG_NCCL_BROADCAST || work->kind == FRAG_NCCL_ALL_GATHER || is_message(work);
    return can_be && work->piece_bytes > FRAG_NCCL_PIECE_MAX &&
           work->piece_bytes <= frag_software_get_kept_max();
}

static frag_nccl_result submit_whole(const frag_nccl_work *work)
{
    if (group.depth == 0) {
        frag_nccl_work alone = *work;
        return run(&alone, 1);
    }
    if (group.count == group.capacity) {
        size_t capacity = group.capacity > 0 ? 2 * group.capacity : 16;
        frag_nccl_work *works = realloc(group.works, capacity * sizeof *works);
        if (works == NULL)
            return FRAG_NCCL_SYSTEM_ERROR;
        group.works = works;
        group.capacity = capacity;
    }
    group.works[group.count++] = *work;
    return FRAG_NCCL_SUCCESS;
}

frag_nccl_result frag_nccl_submit(const frag_nccl_work *work)
{
    if (!is_in_parts(work))
        return submit_whole(work);
    frag_nccl_result result = FRAG_NCCL_SUCCESS;
    for (size_t done = 0; done < work->piece_bytes && result == FRAG_NCCL_SUCCESS;) {
        frag_nccl_work part = *work;
        part.piece_bytes = work->piece_bytes - done;
        if (part.piece_bytes > FRAG_NCCL_PIECE_MAX)
            part.piece_bytes = FRAG_NCCL_PIECE_MAX;
        part.stride_bytes = work->piece_bytes;
        if (work->send != NULL)
            part.send = (const unsigned char *)work->send + done;
        if (work->receive != NULL)
            part.receive = (unsigned char *)work->receive + done;
        result = submit_whole(&part);
        done += part.piece_bytes;
    }
    return result;
}

void frag_nccl_group_start(void)
{
    group.depth++;
}

frag_nccl_result frag_nccl_group_end(void)
{
    if (group.depth == 0)
        return FRAG_NCCL_INVALID_USAGE;
    if (--group.depth > 0)
        return FRAG_NCCL_SUCCESS;
    frag_nccl_result result = run(group.works, group.count);
    free(group.works);
    group.works = NULL;
    group.count = group.capacity = 0;
    return result;
}
