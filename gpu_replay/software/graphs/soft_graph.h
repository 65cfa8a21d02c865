/* Graphs of work: what a capture noted, or a program added by hand, is carried out at each launch
 * and not before. Of kernels there is nothing to do; copies, fills, functions of the host and
 * graphs within graphs are kept, in the order in which they were added. An executable graph is a
 * copy, with parameters of its own. */
#ifndef FRAG_GRAPHS_SOFT_GRAPH_H
#define FRAG_GRAPHS_SOFT_GRAPH_H

#include "gpu_replay/software/soft_state.h"

/* The numbers of the first five are those of CUDA's node types. */
typedef enum frag_soft_step_kind {
    FRAG_SOFT_STEP_KERNEL,
    FRAG_SOFT_STEP_COPY,
    FRAG_SOFT_STEP_FILL,
    FRAG_SOFT_STEP_HOST,
    FRAG_SOFT_STEP_GRAPH,
    FRAG_SOFT_STEP_EMPTY,
    FRAG_SOFT_STEP_FORGET, /* a block of an allocator begins or ends: no node */
    FRAG_SOFT_STEP_NOTE,   /* a function of what drives the dry run: no node */
} frag_soft_step_kind;

typedef struct frag_soft_step {
    frag_soft_step_kind kind;
    bool is_disabled;
    uint64_t node;       /* its handle */
    uint64_t node_of;    /* that of the node it was cloned from */
    frag_soft_area area; /* of a copy or a fill; to and width of what is forgotten */
    uint32_t value;      /* of a fill */
    uint32_t value_bytes;
    void (*function)(void *data);
    void *data;
    const void *caller; /* of a copy */
    uint64_t graph;     /* of a graph: a copy that belongs to this step */
} frag_soft_step;

/* ---- under the lock */
uint64_t frag_soft_graph_new(void);
void frag_soft_graph_give(uint64_t graph);
/* Work was captured, of which there may be nothing to do. */
void frag_soft_graph_count(uint64_t graph);
/* What is captured is counted as work besides. Returns the node's handle; 0: there is no such
 * graph. */
uint64_t frag_soft_graph_add(uint64_t graph, frag_soft_step step);
void frag_soft_graphs_stop(void);

/* ---- whole calls, which are neither counted nor logged but for the launch. Graphs and nodes that
 * do not exist are FRAG_CUDA_INVALID_VALUE. */
int32_t frag_soft_graph_create(void **out);
int32_t frag_soft_graph_destroy(const void *graph);
/* An executable keeps the nodes' handles; a clone has its own. */
int32_t frag_soft_graph_copy(void **out, const void *graph, bool is_executable);
int32_t frag_soft_graph_update(const void *executable, const void *graph);
/* Into a graph; a step of a graph names the child as it is, which is copied. */
int32_t frag_soft_node_add(void **out, const void *graph, frag_soft_step step);
/* Of an executable; executable NULL: of the graph that it was added to. */
int32_t frag_soft_node_set(const void *executable, const void *node, frag_soft_step step);
int32_t frag_soft_node_enable(const void *executable, const void *node, bool is_enabled);
int32_t frag_soft_node_destroy(const void *node);
int32_t frag_soft_node_kind(const void *node, int32_t *kind);
int32_t frag_soft_node_find_in(void **out, const void *node, const void *clone);
int32_t frag_soft_node_child(const void *node, void **graph);
/* nodes NULL: only their number. Kernels that were captured have no handle: NULL. */
int32_t frag_soft_graph_nodes(const void *graph, void **nodes, size_t *count);
/* On a stream that is captured it becomes a node of that graph. */
int32_t frag_soft_graph_launch(frag_soft_call_id id, const void *executable, const void *stream);

#endif
