/* A tape of PyTorch's eager mode that keeps only memory: tensors, their storages, and the graph of
 * autograd, without any values.
 *
 * Model code written over it reads like the Python that it stands for: an operator allocates its
 * outputs and records a node that says what it saves for backward; names hold references, and a
 * storage is given back where the last of them goes, at the very place where the reference counts
 * of PyTorch reach 0. frag_tape_backward (backward.c) then walks the graph in the order of
 * PyTorch's engine. So the requests come out one by one as the framework makes them. Ground truth
 * for every operator is a dry run of PyTorch 2.9 (docs/workloads.md). */
#ifndef FRAG_TAPE_TAPE_H
#define FRAG_TAPE_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/trace/trace.h"
#include "traces/builder.h"

typedef enum frag_dtype {
    FRAG_F32,
    FRAG_F16,
    FRAG_BF16,
    FRAG_I64,
    FRAG_I32,
    FRAG_BOOL,
    FRAG_I8, /* and 8 bits without a sign */
    FRAG_DTYPE_COUNT,
} frag_dtype;

/* What sizes depend on besides the model. */
typedef struct frag_tape_card {
    uint32_t capability; /* 80 is 8.0 */
    uint32_t multiprocessors;
    uint32_t threads_per_multiprocessor;
    /* What cuDNN and cuSOLVER take besides is not published. 0: the most, 1: the least, above:
     * between, as draw - 1 of sim/device/uncertain_size.h. */
    uint64_t workspace_draw;
    bool keeps_softmax_input; /* for its derivative, as PyTorch before 1.11 */
} frag_tape_card;

/* What a request is for. */
typedef enum frag_request_kind {
    FRAG_REQUEST_TEMPORARY,
    FRAG_REQUEST_INPUT,
    FRAG_REQUEST_WEIGHT,
    FRAG_REQUEST_CAST,       /* a copy of a weight in the type of autocast */
    FRAG_REQUEST_ACTIVATION, /* saved for backward */
    FRAG_REQUEST_GRADIENT,
    FRAG_REQUEST_OPTIMIZER,
    FRAG_REQUEST_WORKSPACE, /* of a library */
    FRAG_REQUEST_KIND_COUNT
} frag_request_kind;

/* Kinds of the requests of a trace, in their order, beside it. Starts as {0}; freed by the caller
 * (kinds). */
typedef struct frag_request_kinds {
    uint8_t *kinds; /* frag_request_kind */
    size_t capacity;
    uint64_t count;
} frag_request_kinds;

typedef uint32_t frag_tensor; /* a handle; 0: none. The holder of one owns one reference. */

enum { FRAG_NODE_EDGES_MAX = 4, FRAG_NODE_SAVED_MAX = 8, FRAG_NODE_NUMBERS_MAX = 8 };

typedef struct frag_tape frag_tape;
typedef struct frag_node frag_node;
typedef struct frag_checkpoint_frame frag_checkpoint_frame;

/* The backward of an operator. in: gradients of its outputs, 0 where none came; borrowed. out: to
 * be filled with gradients of its inputs, in the order in which the node names them, owned; those
 * that nobody needs may stay 0. */
typedef void frag_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out);

typedef struct frag_edge {
    uint32_t node; /* 0: this input needs no gradient */
    uint32_t input;
} frag_edge;

struct frag_node {
    frag_backward *run; /* NULL: accumulates into the gradient of a parameter */
    uint64_t sequence;
    uint32_t references;   /* of tensors and other nodes */
    uint32_t dependencies; /* while a backward pass runs */
    uint32_t visit;        /* the pass that counted them */
    uint32_t parameter;    /* of an accumulating node: a tensor */
    bool holds_parameter;  /* it counts as a reference */
    bool is_collecting;    /* of a collector */
    frag_edge edges[FRAG_NODE_EDGES_MAX];
    uint32_t edge_count;
    frag_tensor saved[FRAG_NODE_SAVED_MAX]; /* given back in this order */
    uint32_t saved_count;
    uint64_t host_counts[FRAG_NODE_SAVED_MAX]; /* of what is saved on the host; 0: it is not */
    frag_dtype host_dtypes[FRAG_NODE_SAVED_MAX];
    frag_tensor held;                     /* by the node itself, as long as it is there */
    frag_checkpoint_frame *frame;         /* what is saved is made anew; NULL: it is there */
    uint32_t places[FRAG_NODE_SAVED_MAX]; /* in the frame, from 1; 0: nothing */
    uint32_t hook;                        /* that runs before it; 0: none */
    uint64_t numbers[FRAG_NODE_NUMBERS_MAX];
    frag_tensor buffer[FRAG_NODE_EDGES_MAX]; /* gradients that have arrived */
    uint64_t counts[FRAG_NODE_EDGES_MAX];    /* elements and type that they must have */
    frag_dtype dtypes[FRAG_NODE_EDGES_MAX];
    bool are_columns[FRAG_NODE_EDGES_MAX];
    bool is_sparse;       /* its result has some rows of what its input has */
    bool is_summed;       /* its first result is a sum over rows, though there is only one */
    bool is_summed_along; /* rows lie next to each other there */
    bool is_sum_viewed;   /* such a sum has fewer dimensions: a view, which holds what it is of */
    uint32_t output_count;
    uint32_t made_count; /* outputs that are no views */
};

/* Events go to builder, whose device has begun. */
frag_tape *frag_tape_create(frag_builder *builder, const frag_tape_card *card);
void frag_tape_destroy(frag_tape *tape);
const frag_tape_card *frag_tape_get_card(const frag_tape *tape);

/* From here on the kinds of requests are kept there. */
void frag_tape_watch_kinds(frag_tape *tape, frag_request_kinds *kinds);
/* What requests are for until the next call, where the tape does not know better: what autograd
 * saves is an activation, what a parameter is given a gradient. Returns the kind before. */
frag_request_kind frag_tape_set_kind(frag_tape *tape, frag_request_kind kind);

/* Were ever more than so many bytes live? Repeated stretches count with what they leave. */
void frag_tape_set_limit(frag_tape *tape, uint64_t bytes);
bool frag_tape_is_over(const frag_tape *tape);

/* Marks of phases in the trace; begun and ended in pairs. */
void frag_tape_begin(frag_tape *tape, const char *name);
void frag_tape_end(frag_tape *tape, const char *name);
void frag_tape_empty_cache(frag_tape *tape);

/* ---- tensors */
uint64_t frag_dtype_bytes(frag_dtype dtype);
frag_tensor frag_tape_empty(frag_tape *tape, uint64_t count, frag_dtype dtype);
frag_tensor frag_tape_empty_like(frag_tape *tape, frag_tensor tensor);
/* A parameter: a leaf that is given gradients, unless it is frozen. */
frag_tensor frag_tape_parameter(frag_tape *tape, uint64_t count, frag_dtype dtype, bool is_frozen);
/* Takes part in nothing but gradients: it holds, as it came, what is for the tensors that are
 * collected into it. */
frag_tensor frag_tape_collector(frag_tape *tape, uint64_t count, frag_dtype dtype);
/* A tensor like the collector on the storage of base; neither is held. */
frag_tensor frag_tape_collect_into(frag_tape *tape, frag_tensor collector, frag_tensor base);
/* The parameter has a mask (held by the caller), with which it is multiplied for each use. */
void frag_tape_prune(frag_tape *tape, frag_tensor parameter, frag_tensor mask);
frag_tensor frag_tape_mask(const frag_tape *tape, frag_tensor parameter); /* 0: none */
/* The product, which stays until the next; used up. */
void frag_tape_name_masked(frag_tape *tape, frag_tensor parameter, frag_tensor product);
/* From here on parameters are made on the host; a module that runs brings its own to the GPU, and
 * gives them back when it is through: accelerate's cpu_offload. */
void frag_tape_set_hosting(frag_tape *tape, bool is_hosting);
/* A module with these parameters begins, and ends. 0s and parameters on the GPU are passed over.
 * Behind each that comes accelerate empties the cache. */
void frag_tape_fetch(frag_tape *tape, const frag_tensor *parameters, uint32_t count);
void frag_tape_send_back(frag_tape *tape, const frag_tensor *parameters, uint32_t count);
/* Is it such a parameter? */
bool frag_tape_is_hosted(const frag_tape *tape, frag_tensor tensor);
/* From here on, or no more, tensors take no memory: they are on another device. */
void frag_tape_set_silent(frag_tape *tape, bool is_silent);
/* A DTensor: it lies on several devices. */
void frag_tape_set_part(frag_tape *tape, frag_tensor tensor);
/* requires_grad_(): a tensor that nothing made wants a gradient, and keeps it as long as the graph
 * or a name holds it. Operators that use it must follow. */
void frag_tape_require_gradient(frag_tape *tape, frag_tensor tensor);
/* Another tensor on the same storage. As in PyTorch it holds the tensor whose view it is. */
frag_tensor frag_tape_view(frag_tape *tape, frag_tensor base, uint64_t count);
/* The same storage without that (detach() of autograd's own, _unsafe_view). */
frag_tensor frag_tape_alias(frag_tape *tape, frag_tensor base, uint64_t count);
uint64_t frag_tape_count(const frag_tape *tape, frag_tensor tensor); /* elements */
frag_dtype frag_tape_dtype(const frag_tape *tape, frag_tensor tensor);
bool frag_tape_needs_gradient(const frag_tape *tape, frag_tensor tensor);
/* The gradient that a parameter has, or 0; borrowed. */
frag_tensor frag_tape_gradient(const frag_tape *tape, frag_tensor parameter);
/* Drops the gradient (set_to_none), or what the optimizer keeps beside it. */
void frag_tape_clear_gradient(frag_tape *tape, frag_tensor parameter);
void frag_tape_set_gradient(frag_tape *tape, frag_tensor parameter, frag_tensor gradient);

/* Has it more elements than its storage: a view that repeats them? */
bool frag_tape_is_expanded(const frag_tape *tape, frag_tensor tensor);
/* A column: one element a row. Its gradient is a sum along rows, where others are sums over them.
 */
void frag_tape_set_column(frag_tape *tape, frag_tensor tensor);
bool frag_tape_is_column(const frag_tape *tape, frag_tensor tensor);
/* It does not lie in one piece, or in another order: a copy to the host lays it out first, and a
 * parameter keeps a copy of such a gradient. */
void frag_tape_set_strided(frag_tape *tape, frag_tensor tensor);
bool frag_tape_is_strided(const frag_tape *tape, frag_tensor tensor);

frag_tensor frag_tape_keep(frag_tape *tape, frag_tensor tensor); /* one more reference */
void frag_tape_drop(frag_tape *tape, frag_tensor tensor);        /* 0 is allowed */
void frag_tape_drop_all(frag_tape *tape, const frag_tensor *tensors,
                        size_t count); /* first to last */
/* name = value, as Python does it: the old value goes after the new one is there. */
void frag_tape_set(frag_tape *tape, frag_tensor *name, frag_tensor value);
void frag_tape_clear(frag_tape *tape, frag_tensor *name); /* del name */
/* Is it a view of another? */
bool frag_tape_is_view(const frag_tape *tape, frag_tensor tensor);
/* Is this the only reference to the only tensor on its storage? */
bool frag_tape_is_sole(const frag_tape *tape, frag_tensor tensor);
bool frag_tape_is_last(const frag_tape *tape, frag_tensor tensor); /* to the tensor alone */

/* ---- storages that come and go under their tensors (resize_(0) and back) */
void frag_tape_empty_storage(frag_tape *tape, frag_tensor tensor);
void frag_tape_fill_storage(frag_tape *tape, frag_tensor tensor, uint64_t count);
/* The type of what it is filled with from here on; it is empty. */
void frag_tape_set_dtype(frag_tape *tape, frag_tensor tensor, frag_dtype dtype);
/* The stream of what is asked for until the next call; 0 at the start. Returns the one before. */
uint64_t frag_tape_set_stream(frag_tape *tape, uint64_t stream);

/* ---- hooks of backward: run with the number that is given to a tensor */
typedef void frag_hook(frag_tape *tape, void *context, uint32_t number);
enum { FRAG_HOOK_END = INT32_MAX }; /* the number when all nodes have run */
void frag_tape_set_hook(frag_tape *tape, frag_hook *run, void *context);
/* tensor.register_hook(): before the node that made it runs. number: from 1. */
void frag_tape_hook(frag_tape *tape, frag_tensor tensor, uint32_t number);
/* The tensor again, by a node that does nothing else in backward. */
frag_tensor frag_tape_hook_behind(frag_tape *tape, frag_tensor tensor, uint32_t number);
void frag_tape_call_hook(frag_tape *tape, uint32_t number);

/* ---- the graph */
bool frag_tape_set_recording(frag_tape *tape, bool is_recording); /* enable_grad; what it was */
bool frag_tape_is_recording(const frag_tape *tape);
/* Records the operator that made outputs out of inputs, unless nobody needs gradients: then what
 * the node is told is of no account, and it saves nothing. Valid until the next node is made. */
frag_node *frag_tape_record(frag_tape *tape, frag_backward *run, const frag_tensor *inputs,
                            uint32_t input_count, const frag_tensor *outputs,
                            uint32_t output_count);
void frag_tape_save(frag_tape *tape, frag_node *node, frag_tensor tensor);
void frag_tape_save_made(frag_tape *tape, frag_node *node, frag_tensor tensor); /* by itself */
/* Kept beside what is saved, which goes when the node has run: an attribute of a Python function.
 */
void frag_tape_hold(frag_tape *tape, frag_node *node, frag_tensor tensor);
/* What the node itself made and returns is saved as another tensor on the storage, else the graph
 * would hold itself. */
void frag_tape_save_output(frag_tape *tape, frag_node *node, frag_tensor tensor);
/* Is told of each parameter that has been given a gradient in backward. */
typedef void frag_gradient_watch(frag_tape *tape, void *context, frag_tensor parameter);
void frag_tape_watch_gradients(frag_tape *tape, frag_gradient_watch *watch, void *context);
void frag_tape_tell_gradient(frag_tape *tape, frag_tensor parameter); /* for backward.c */
/* From here on, or no more, what is saved goes to pinned memory of the host and comes back when its
 * node runs: torch.autograd.graph.save_on_cpu. Returns what it was. */
bool frag_tape_set_offloading(frag_tape *tape, bool is_offloading);
/* Does what is saved now go to the host, from where it comes back in one piece? */
bool frag_tape_saves_on_host(const frag_tape *tape);
/* An operator that is about to run will save this input: what is strided is laid out for the host
 * before anything is made. */
void frag_tape_will_save(frag_tape *tape, frag_tensor tensor);
/* Pinned memory for so many elements, for good. */
void frag_tape_take_host(frag_tape *tape, uint64_t count, frag_dtype dtype);
/* The most that was there at a time, in blocks as PyTorch takes them: powers of two. */
uint64_t frag_tape_host_bytes_max(const frag_tape *tape);
/* The engine: loss.backward(), and tensor.backward(gradient), which is borrowed. */
void frag_tape_backward(frag_tape *tape, frag_tensor loss);
void frag_tape_backward_from(frag_tape *tape, frag_tensor tensor, frag_tensor gradient);

/* ---- checkpointing (torch.utils.checkpoint with use_reentrant=False) */
typedef frag_tensor frag_region(frag_tape *tape, const void *context, frag_tensor input);

/* region(input), of which nothing is saved: the first node of it that runs in backward makes all of
 * it anew. context is copied. kept: further tensors that the region reads, which are held as long
 * as the region may run again; 0s are allowed. */
typedef struct frag_region_call {
    frag_region *run;
    const void *context;
    size_t context_bytes;
    const frag_tensor *kept;
    uint32_t kept_count; /* at most 4 */
} frag_region_call;
/* A forward pass begins, in which every so many calls of the following do so; the others run the
 * region as it is. before: calls that another device makes. */
void frag_tape_begin_checkpoints(frag_tape *tape, uint64_t every, uint64_t before);
frag_tensor frag_tape_checkpoint(frag_tape *tape, const frag_region_call *call, frag_tensor input);
/* The kernel of scaled_dot_product_attention: the one that what goes in asks for, or this alone; or
 * none, where attention has its scores as a tensor. */
typedef enum frag_attention_kernel {
    FRAG_KERNEL_CHOSEN,
    FRAG_KERNEL_FLASH,
    FRAG_KERNEL_EFFICIENT,
    FRAG_KERNEL_MATH,
    FRAG_KERNEL_NONE,
} frag_attention_kernel;

void frag_tape_set_kernel(frag_tape *tape, frag_attention_kernel kernel);
frag_attention_kernel frag_tape_kernel(const frag_tape *tape);
/* From here on, or no more, regions keep what products of matrices and attention make, and take it
 * when they are made anew: create_selective_checkpoint_contexts with those operators. Returns what
 * it was. */
bool frag_tape_set_selective(frag_tape *tape, bool is_selective);
/* As frag_tape_empty: what such an operator makes, and what it needs while it runs. */
frag_tensor frag_tape_product(frag_tape *tape, uint64_t count, frag_dtype dtype);
frag_tensor frag_tape_scratch(frag_tape *tape, uint64_t count, frag_dtype dtype);
/* Will it run? Not where its region is made anew and has kept what it makes, or ends before. */
bool frag_tape_runs_product(const frag_tape *tape);
/* Does such a region run, or is it made anew? PyTorch then takes each tensor for one whose class
 * may forbid changes in place. */
bool frag_tape_is_selecting(const frag_tape *tape);
/* What was allocated last stays: a region that is made anew finds it there. */
void frag_tape_note_once(frag_tape *tape);
/* Is a region made anew? */
bool frag_tape_is_remaking(const frag_tape *tape);
/* For backward.c: saved tensors of such a node, before it runs and after. */
void frag_tape_unpack(frag_tape *tape, frag_node *node);
void frag_tape_drop_unpacked(frag_tape *tape, frag_node *node);

/* ---- what libraries keep: the first matrix product of a thread takes a workspace */
void frag_tape_use_blas(frag_tape *tape);
void frag_tape_use_blas_lt(frag_tape *tape);
/* What the threads of a forward pass took is backward's from here on. */
void frag_tape_hand_over_blas(frag_tape *tape);
/* Around a forward pass on a thread of its own, whose handles are not the main thread's. */
void frag_tape_swap_blas(frag_tape *tape);
/* Of another library: bytes between both ends, until its kernel has run. */
void frag_tape_use_workspace(frag_tape *tape, uint64_t least, uint64_t most);

/* ---- what is done once more
 * A stretch starts from some tensors, each alone on a storage of its own, and leaves each with
 * other contents on another; all else that it makes is gone at its end, but for workspaces. No
 * gradients, no casts that are kept behind it. */
/* What is there once for all tensors. */
typedef struct frag_tape_libraries {
    bool has_blas[2]; /* workspaces */
    bool has_blas_lt[2];
    bool has_tried_bf16;
} frag_tape_libraries;

typedef struct frag_stretch_tensor {
    uint32_t from; /* slots of it */
    uint32_t to;
    uint64_t bytes;   /* afterwards, */
    uint64_t request; /* among those of the stretch, */
    uint64_t count;   /* as all below */
    bool is_column;
    bool is_strided;
} frag_stretch_tensor;

typedef struct frag_tape_stretch {
    uint64_t first; /* event */
    uint64_t end;   /* 0: nothing was kept */
    bool is_open;   /* a shortened trace cannot do it again */
    uint64_t request;
    uint64_t requests;
    uint64_t live_bytes;      /* before; then what it adds, */
    uint64_t workspace_bytes; /* and workspaces among it */
    uint32_t cast_count;
    uint32_t number; /* in a shortened trace */
    uint32_t tensor_count;
    frag_stretch_tensor tensors[FRAG_STRETCH_TENSORS_MAX];
    frag_tape_libraries before;
    frag_tape_libraries after;
} frag_tape_stretch;

/* Is the trace a shortened one, which is asked whether a stretch can be done again? */
bool frag_tape_is_short(const frag_tape *tape);
/* Is each tensor alone on a storage of its own? */
bool frag_tape_are_alone(const frag_tape *tape, const frag_tensor *tensors, uint32_t count);
void frag_tape_begin_stretch(const frag_tape *tape, const frag_tensor *tensors, uint32_t count,
                             frag_tape_stretch *stretch);
/* The tensors may have other numbers than at its beginning. */
void frag_tape_end_stretch(frag_tape *tape, const frag_tensor *tensors, frag_tape_stretch *stretch);
/* Adds the requests of a stretch that would do the same from these tensors on. false: nothing was
 * kept, or it would take other workspaces, and must run. */
bool frag_tape_repeat_stretch(frag_tape *tape, const frag_tensor *tensors,
                              const frag_tape_stretch *stretch);

/* ---- autocast */
/* FRAG_F32: off. */
void frag_tape_set_autocast(frag_tape *tape, frag_dtype dtype);
frag_dtype frag_tape_autocast(const frag_tape *tape);
/* The tensor, or 0, in the type of autocast, where that is on; casts of parameters are kept until
 * autocast ends. */
frag_tensor frag_tape_cast(frag_tape *tape, frag_tensor tensor);
frag_tensor frag_tape_to(frag_tape *tape, frag_tensor tensor, frag_dtype dtype);

/* ---- for backward.c */
frag_node *frag_tape_node(frag_tape *tape, uint32_t node);
uint32_t frag_tape_tensor_node(const frag_tape *tape, frag_tensor tensor);
uint32_t frag_tape_next_visit(frag_tape *tape);
void frag_tape_release_saved(frag_tape *tape, frag_node *node);
void frag_tape_node_keep(frag_tape *tape, uint32_t node);
void frag_tape_node_drop(frag_tape *tape, uint32_t node);
void frag_tape_set_thread(frag_tape *tape, bool is_backward);

#endif
