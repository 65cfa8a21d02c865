#include "tests/benchmarks/bench_peer.h"

#include <search.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/memory.h"

#define RANGE_BYTES ((uint64_t)1 << 62)
#define ALIGN_BYTES 512u

typedef struct piece {
    uint64_t bytes;
    uint64_t address;
    struct piece *prev;
    struct piece *next;
    bool is_free;
} piece;

struct bench_peer {
    const frag_trace *trace;
    piece **slots;
    piece *first;
    void *tree;
    piece *spare; /* linked by next */
    uint64_t end_max;
};

static int compare(const void *left, const void *right)
{
    const piece *a = left;
    const piece *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

typedef struct probe {
    uint64_t bytes;
    const piece **found;
} probe;

/* tfind knows no lower bound: the way down passes it, and this keeps it. */
static int compare_probe(const void *key, const void *node)
{
    const probe *wanted = key;
    const piece *at = node;
    if (at->bytes < wanted->bytes)
        return 1;
    *wanted->found = at;
    return -1;
}

static piece *take_piece(bench_peer *peer)
{
    piece *taken = peer->spare;
    if (taken == NULL)
        return frag_alloc(1, sizeof *taken);
    peer->spare = taken->next;
    return taken;
}

static void insert(bench_peer *peer, piece *at)
{
    at->is_free = true;
    FRAG_ASSERT(tsearch(at, &peer->tree, compare) != NULL);
}

static void swallow_next(bench_peer *peer, piece *at)
{
    piece *gone = at->next;
    at->bytes += gone->bytes;
    at->next = gone->next;
    if (at->next != NULL)
        at->next->prev = at;
    gone->next = peer->spare;
    peer->spare = gone;
}

static void request(bench_peer *peer, const frag_event *event)
{
    const piece *found = NULL;
    probe wanted = {frag_align_up(event->bytes, ALIGN_BYTES), &found};
    tfind(&wanted, &peer->tree, compare_probe);
    FRAG_ASSERT(found != NULL);
    tdelete(found, &peer->tree, compare);
    piece *front = found->prev != NULL ? found->prev->next : peer->first;
    if (front->bytes > wanted.bytes) {
        piece *rest = take_piece(peer);
        *rest = (piece){front->bytes - wanted.bytes, front->address + wanted.bytes, front,
                        front->next, false};
        if (rest->next != NULL)
            rest->next->prev = rest;
        front->next = rest;
        front->bytes = wanted.bytes;
        insert(peer, rest);
    }
    front->is_free = false;
    peer->slots[event->slot] = front;
    if (front->address + front->bytes > peer->end_max)
        peer->end_max = front->address + front->bytes;
}

static void give_back(bench_peer *peer, uint32_t slot)
{
    piece *at = peer->slots[slot];
    if (at->next != NULL && at->next->is_free) {
        tdelete(at->next, &peer->tree, compare);
        swallow_next(peer, at);
    }
    if (at->prev != NULL && at->prev->is_free) {
        at = at->prev;
        tdelete(at, &peer->tree, compare);
        swallow_next(peer, at);
    }
    insert(peer, at);
}

bench_peer *bench_peer_create(const frag_trace *trace)
{
    bench_peer *peer = frag_alloc(1, sizeof *peer);
    peer->trace = trace;
    peer->slots = frag_alloc((size_t)trace->slot_count + 1, sizeof *peer->slots);
    peer->first = take_piece(peer);
    *peer->first = (piece){.bytes = RANGE_BYTES};
    insert(peer, peer->first);
    return peer;
}

uint64_t bench_peer_run(bench_peer *peer)
{
    for (uint64_t i = 0; i < peer->trace->event_count; i++) {
        const frag_event *event = &peer->trace->events[i];
        bool is_deferred = (event->flags & FRAG_EVENT_DEFERRED) != 0;
        if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE)
            request(peer, event);
        else if ((event->op == FRAG_OP_FREE && !is_deferred) || event->op == FRAG_OP_COMPLETE)
            give_back(peer, event->slot);
    }
    return peer->end_max;
}

void bench_peer_destroy(bench_peer *peer)
{
    for (piece *at = peer->first; at != NULL;) {
        piece *next = at->next;
        if (at->is_free)
            tdelete(at, &peer->tree, compare);
        free(at);
        at = next;
    }
    for (piece *at = peer->spare; at != NULL;) {
        piece *next = at->next;
        free(at);
        at = next;
    }
    free(peer->slots);
    free(peer);
}
