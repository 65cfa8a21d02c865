/* What a tape consists of, for the files that implement it: tensors.c and saved.c. */
#ifndef FRAG_TAPE_TAPE_STATE_H
#define FRAG_TAPE_TAPE_STATE_H

#include "workload/tape/tape.h"

typedef struct frag_tape_storage {
    uint32_t slot;
    uint32_t references; /* of tensors */
    uint64_t bytes;      /* 0: nothing was asked for */
    uint64_t request;    /* its place among all requests */
} frag_tape_storage;

typedef struct frag_tape_tensor {
    uint32_t storage;
    uint32_t references;
    uint32_t node;        /* that made it; of a parameter: the one that accumulates */
    uint32_t node_output; /* which of its outputs it is */
    frag_tensor base;     /* held: whose view it is */
    frag_tensor gradient; /* of a parameter, held */
    frag_tensor mask;     /* of one that is pruned */
    frag_tensor masked;   /* its product with that, held */
    uint64_t count;
    frag_dtype dtype;
    bool is_column;
    bool is_strided;
    bool is_leaf;   /* nothing made it, and it wants gradients: casts of it are kept */
    bool is_part;   /* a DTensor */
    bool is_hosted; /* a parameter that is on the GPU only while its modules run, */
    uint8_t users;  /* of which so many do */
} frag_tape_tensor;

typedef struct frag_tape_held_cast {
    frag_tensor from;
    frag_tensor to;
    uint64_t region; /* that made it, or read it last; 0: none */
} frag_tape_held_cast;

struct frag_tape {
    frag_builder *builder;
    frag_tape_card card;
    frag_request_kinds *kinds; /* NULL: nobody asks */
    frag_request_kind kind;    /* of the next request */
    frag_tape_storage *storages;
    size_t storages_capacity;
    uint32_t storage_count;
    uint32_t storage_free; /* the first unused one, linked by slot */
    frag_tape_tensor *tensors;
    size_t tensors_capacity;
    uint32_t tensor_count;
    uint32_t tensor_free; /* linked by storage */
    frag_node **chunks;
    size_t chunks_capacity;
    uint32_t node_count;
    uint32_t node_free;   /* linked by visit */
    frag_node unrecorded; /* stands for nodes that nobody needs */
    uint64_t sequence;
    uint32_t visit;
    uint64_t allocation_count;
    uint64_t *uncertain; /* the most of each uncertain workspace, in the order of first uses */
    size_t uncertain_count;
    size_t uncertain_capacity;
    frag_checkpoint_frame *frame; /* that runs */
    uint64_t region_count;        /* of checkpoints, so far */
    uint64_t checkpoint_every;    /* calls; 0: each */
    uint64_t checkpoint_calls;
    bool is_remaking;
    bool is_selective;
    bool is_offloading;
    bool is_hosting;
    frag_attention_kernel kernel;
    uint64_t host_bytes; /* of saved tensors that are there */
    uint64_t host_bytes_max;
    uint64_t workspace_bytes; /* of libraries, for good */
    uint64_t live_bytes;
    uint64_t limit_bytes; /* of what is live at once */
    bool is_over;         /* it was passed */
    bool is_silent;
    bool is_recording;
    bool is_backward_thread;
    bool has_blas[2]; /* of the main thread, of that of backward */
    bool has_blas_lt[2];
    bool has_blas_aside; /* of threads that run forward passes */
    bool has_blas_lt_aside;
    frag_dtype autocast;
    bool has_tried_bf16;
    bool has_cast_part;
    frag_gradient_watch *watch; /* NULL: nobody asks */
    void *watcher;
    frag_hook *hook;
    void *hooked;
    uint64_t stream;
    frag_tape_held_cast *casts;
    size_t casts_capacity;
    uint32_t cast_count;
    uint32_t *slots; /* of a stretch that is repeated */
    size_t slots_capacity;
};

/* What a request turns out to be for; what is more than a temporary stays what it is, but for what
 * becomes a gradient. */
void frag_tape_turn_kind(frag_tape *tape, frag_tensor id, frag_request_kind kind);

/* A cast that was made before is read: made anew, a region makes it itself. */
void frag_tape_note_cast(frag_tape *tape, frag_tape_held_cast *cast);

/* Of a node that is there when the tape ends: what the host holds for its regions. */
void frag_tape_forget_places(const frag_node *node);

/* Whether a region is made anew, and all that it saves is there. */
bool frag_tape_is_past_saved(const frag_tape *tape);

#endif
