/* The stand-in of NCCL: communicators whose ranks are processes of this machine, or several in one
 * process. Collectives move what the host wrote, as far as it is known, and nothing else.
 *
 * The ranks of a communicator share a region of memory without a name (memfd): the process that
 * made the unique id holds it, the others open it through /proc, so nothing is left behind by
 * processes that are killed. In it each rank has a ring of slots for collectives, and each pair of
 * ranks one for messages. A call waits for the ranks whose values it needs, if these may be known:
 * operations of more than FRAG_NCCL_PIECE_MAX bytes a rank never wait, as no bytes of theirs are
 * kept, unless the setting shadow= keeps more; then broadcasts, gathers to all and messages go slot
 * by slot. A rank whose process ended, or that does not come within the time-out, is an error.
 *
 * A receive alone, or a group of nothing but receives, does not wait (nccl_late.c). */
#ifndef FRAG_NCCL_NCCL_TYPES_H
#define FRAG_NCCL_NCCL_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAG_NCCL_PIECE_MAX 65536
#define FRAG_NCCL_SLOTS 8

/* A number of the interface, so an int. */
typedef int32_t frag_nccl_result;
enum {
    FRAG_NCCL_SUCCESS = 0,
    FRAG_NCCL_UNHANDLED_CUDA_ERROR = 1,
    FRAG_NCCL_SYSTEM_ERROR = 2,
    FRAG_NCCL_INTERNAL_ERROR = 3,
    FRAG_NCCL_INVALID_ARGUMENT = 4,
    FRAG_NCCL_INVALID_USAGE = 5,
    FRAG_NCCL_REMOTE_ERROR = 6,
    FRAG_NCCL_IN_PROGRESS = 7,
};

typedef struct frag_nccl_id {
    char bytes[128];
} frag_nccl_id;

/* What an id holds: where the region is. */
typedef struct frag_nccl_place {
    char magic[8];
    int32_t process, file;
    uint64_t nonce; /* the region begins with it: another process may have got the number */
} frag_nccl_place;

typedef struct frag_nccl_slot {
    _Atomic uint64_t sequence; /* of the operation, from 1; 0: none yet */
    uint64_t bytes;
    uint64_t is_known;
    unsigned char padding[40];
    unsigned char data[FRAG_NCCL_PIECE_MAX];
} frag_nccl_slot;

typedef enum frag_nccl_state {
    FRAG_NCCL_ABSENT,
    FRAG_NCCL_JOINED,
    FRAG_NCCL_LEFT,
} frag_nccl_state;

typedef struct frag_nccl_member {
    _Atomic int32_t state;
    int32_t process;
    _Atomic uint64_t finished; /* collectives that this rank has done with */
    unsigned char padding[48];
} frag_nccl_member;

typedef struct frag_nccl_region {
    uint64_t nonce;
    uint64_t bytes;
    _Atomic uint64_t child_sequence; /* the last communicator of fewer ranks, and where it is */
    frag_nccl_place child;
    unsigned char padding[16];
    frag_nccl_member members[];
} frag_nccl_region;

typedef struct frag_nccl_communicator {
    uint64_t kind;
    int rank, rank_count, device;
    frag_nccl_id id;
    frag_nccl_region *region; /* NULL: of a single rank, or ended */
    int *process_files;       /* of the other ranks: readable once the process has ended */
    uint64_t collective_count;
    uint64_t *sent_counts, *received_counts; /* messages to and from each rank */
    uint64_t child_count;
    _Atomic int error;
    atomic_bool is_ended;
    atomic_bool has_told; /* that it waits long */
    char message[256];
    struct frag_nccl_communicator *next;
} frag_nccl_communicator;

/* ---- nccl_region.c */

/* A new region for an id; false: the system gives none. */
bool frag_nccl_make_id(frag_nccl_id *id);
/* Joins the region of the communicator's id, and does not wait for others. */
frag_nccl_result frag_nccl_join(frag_nccl_communicator *communicator);
bool frag_nccl_all_joined(const frag_nccl_communicator *communicator);
void frag_nccl_leave(frag_nccl_communicator *communicator);

frag_nccl_slot *frag_nccl_ring(const frag_nccl_communicator *communicator, int rank,
                               uint64_t sequence);
frag_nccl_slot *frag_nccl_mailbox(const frag_nccl_communicator *communicator, int from, int to,
                                  uint64_t sequence);
/* How many messages of the pair the receiver has taken. */
_Atomic uint64_t *frag_nccl_taken(const frag_nccl_communicator *communicator, int from, int to);

/* The rank left the communicator or its process is gone: nothing more comes from it. */
bool frag_nccl_has_ended(frag_nccl_communicator *communicator, int rank);
/* FRAGLAB_SOFTWARE_NCCL_TIMEOUT, or 300. */
double frag_nccl_timeout_seconds(void);
/* After which one sentence says what is waited for: FRAGLAB_SOFTWARE_NCCL_NOTICE, or 10. */
double frag_nccl_notice_seconds(void);

/* ---- nccl_work.c */

typedef enum frag_nccl_work_kind {
    FRAG_NCCL_JOIN, /* all ranks have come */
    FRAG_NCCL_ALL_REDUCE,
    FRAG_NCCL_REDUCE,
    FRAG_NCCL_REDUCE_SCATTER,
    FRAG_NCCL_BROADCAST,
    FRAG_NCCL_ALL_GATHER,
    FRAG_NCCL_ALL_TO_ALL,
    FRAG_NCCL_GATHER,
    FRAG_NCCL_SCATTER,
    FRAG_NCCL_SEND,
    FRAG_NCCL_RECEIVE,
    FRAG_NCCL_EXCHANGE, /* of host memory, between the functions of this library */
} frag_nccl_work_kind;

/* One operation of one rank. bytes: what this rank sends, as one piece for each peer where every
 * peer gets another one. */
typedef struct frag_nccl_work {
    frag_nccl_work_kind kind;
    frag_nccl_communicator *communicator;
    const char *function;
    const void *send;
    void *receive;
    size_t piece_bytes;        /* to or from one rank */
    size_t stride_bytes;       /* between pieces that are received; 0: they follow each other */
    int type, operation, peer; /* peer: also the root */
    bool is_posted, is_done;
    bool is_overwritten; /* something else was written where it receives */
    uint64_t sequence;
} frag_nccl_work;

/* Put off while the thread is in a group. */
frag_nccl_result frag_nccl_submit(const frag_nccl_work *work);
void frag_nccl_group_start(void);
frag_nccl_result frag_nccl_group_end(void);

/* One step; true: it got on. */
bool frag_nccl_advance(frag_nccl_work *work);
/* After many steps without effect: an error if nothing more can come. deadline: in the seconds of
 * frag_nccl_now. */
frag_nccl_result frag_nccl_look_for_trouble(frag_nccl_work *work, double deadline);
double frag_nccl_now(void);

/* ---- nccl_late.c: receives whose bytes are not there yet. The real library only puts them on a
 * stream; here they are done when bytes are there, at the latest when they are read. */

frag_nccl_result frag_nccl_put_off(const frag_nccl_work *work);
/* Takes what has come; true: something has. */
bool frag_nccl_take_late(void);
/* Those of a communicator that ends: what has come is taken, the others are dropped. */
void frag_nccl_drop_late(const frag_nccl_communicator *communicator);
/* Receives into these bytes that come later than this are not written. */
void frag_nccl_overwrite(const void *address, size_t bytes);

/* ---- nccl_reduce.c */

/* 0: there is no such type. */
size_t frag_nccl_type_bytes(int type);
/* sum becomes sum (op) term, for count elements; false: that type or operation is not reckoned. */
bool frag_nccl_reduce(int type, int operation, void *sum, const void *term, size_t count);
/* After the last term: the average divides. */
bool frag_nccl_finish(int type, int operation, void *sum, size_t count, int rank_count);

#endif
