/* The engine of autograd: which node runs next, where its gradients go, what is given back when.
 *
 * As torch/csrc/autograd/engine.cpp of PyTorch 2.9 does it: a heap of ready nodes by sequence
 * number, where accumulating nodes come first; a node's incoming gradients go when it has run, then
 * what it had saved; then its results are handed on. Where a gradient has arrived before, the two
 * are added in place if nobody else holds the first, else into a new tensor. */
#include "base/memory.h"
#include "workload/tape/aten.h"

typedef struct ready_heap {
    uint32_t *nodes;
    size_t capacity;
    uint32_t count;
} ready_heap;

static bool is_before(frag_tape *tape, uint32_t a, uint32_t b)
{
    return frag_tape_node(tape, a)->sequence < frag_tape_node(tape, b)->sequence;
}

/* Up from hole towards top, as std::push_heap: equal nodes keep their order there. */
static void sift_up(frag_tape *tape, uint32_t *heap, uint32_t hole, uint32_t value)
{
    while (hole > 0 && is_before(tape, heap[(hole - 1) / 2], value)) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

static void push(frag_tape *tape, ready_heap *heap, uint32_t node)
{
    heap->nodes = frag_grow(heap->nodes, &heap->capacity, heap->count + 1, sizeof *heap->nodes);
    sift_up(tape, heap->nodes, heap->count++, node);
}

/* As std::pop_heap: the hole goes down to a leaf along the larger children (the right one of
 * equals), and the last node comes up from there. */
static uint32_t pop(frag_tape *tape, ready_heap *heap)
{
    uint32_t *nodes = heap->nodes;
    uint32_t top = nodes[0];
    uint32_t value = nodes[--heap->count];
    uint32_t count = heap->count;
    uint32_t hole = 0;
    uint32_t child = 0;
    while (count > 1 && child < (count - 1) / 2) {
        child = 2 * (child + 1);
        if (is_before(tape, nodes[child], nodes[child - 1]))
            child--;
        nodes[hole] = nodes[child];
        hole = child;
    }
    if (count % 2 == 0 && count > 0 && child == (count - 2) / 2) {
        child = 2 * (child + 1);
        nodes[hole] = nodes[child - 1];
        hole = child - 1;
    }
    if (count > 0)
        sift_up(tape, nodes, hole, value);
    return top;
}

/* How many gradients each node waits for. */
static void count_dependencies(frag_tape *tape, uint32_t root)
{
    uint32_t visit = frag_tape_next_visit(tape);
    uint32_t *left = NULL;
    size_t capacity = 0;
    uint32_t count = 0;
    left = frag_grow(left, &capacity, 1, sizeof *left);
    left[count++] = root;
    frag_tape_node(tape, root)->visit = visit;
    frag_tape_node(tape, root)->dependencies = 0;
    while (count > 0) {
        frag_node *node = frag_tape_node(tape, left[--count]);
        for (uint32_t i = 0; i < node->edge_count; i++) {
            uint32_t next_id = node->edges[i].node;
            if (next_id == 0)
                continue;
            frag_node *next = frag_tape_node(tape, next_id);
            if (next->visit != visit) {
                next->visit = visit;
                next->dependencies = 0;
                *FRAG_APPEND(left, count, capacity) = next_id;
            }
            next->dependencies++;
        }
    }
    frag_free(left);
}

static void accumulate(frag_tape *tape, const frag_node *node, frag_tensor gradient)
{
    frag_tensor parameter = node->parameter;
    if (frag_tape_gradient(tape, parameter) != 0)
        return; /* added in place */
    if (node->is_collecting) {
        frag_tape_set_gradient(tape, parameter, frag_tape_keep(tape, gradient));
        return;
    }
    uint64_t count = frag_tape_count(tape, gradient);
    bool is_taken = frag_tape_is_last(tape, gradient) && !frag_tape_is_strided(tape, gradient) &&
                    !frag_tape_is_strided(tape, parameter);
    frag_tensor kept = is_taken ? frag_tape_alias(tape, gradient, count)
                                : frag_tape_empty(tape, count, frag_tape_dtype(tape, gradient));
    frag_tape_set_gradient(tape, parameter, kept);
}

/* The shape and the type that the receiver must get: sum_to, then a cast. */
static frag_tensor fit(frag_tape *tape, const frag_node *node, uint32_t edge, frag_tensor gradient)
{
    const frag_node *next = frag_tape_node(tape, node->edges[edge].node);
    uint32_t input = node->edges[edge].input;
    if (node->is_sparse)
        return gradient;
    bool is_summed = edge == 0 && node->is_summed;
    if (is_summed || frag_tape_count(tape, gradient) != next->counts[input]) {
        frag_tensor sum =
            frag_tape_empty(tape, next->counts[input], frag_tape_dtype(tape, gradient));
        uint64_t inputs = frag_tape_count(tape, gradient) / next->counts[input];
        bool is_fastest = next->are_columns[input] || (edge == 0 && node->is_summed_along);
        frag_aten_reduce_buffers(tape,
                                 &(frag_reduction){next->counts[input], inputs, is_fastest, 0});
        frag_tape_drop(tape, gradient);
        gradient = sum;
        if (edge == 0 && node->is_sum_viewed) {
            gradient = frag_tape_view(tape, sum, next->counts[input]);
            frag_tape_drop(tape, sum);
        }
    }
    if (frag_tape_dtype(tape, gradient) != next->dtypes[input]) {
        frag_tensor cast = frag_tape_empty(tape, next->counts[input], next->dtypes[input]);
        frag_tape_drop(tape, gradient);
        gradient = cast;
    }
    return gradient;
}

static void add_to_buffer(frag_tape *tape, frag_node *next, uint32_t input, frag_tensor gradient)
{
    frag_tensor *held = &next->buffer[input];
    if (*held == 0) {
        *held = gradient;
        return;
    }
    if (!frag_tape_is_sole(tape, *held)) {
        frag_tensor sum = frag_tape_empty(tape, next->counts[input], frag_tape_dtype(tape, *held));
        frag_tape_set(tape, held, sum);
    }
    frag_tape_drop(tape, gradient);
}

static void hand_on(frag_tape *tape, ready_heap *ready, const frag_edge *edge, frag_tensor gradient)
{
    if (edge->node == 0) {
        frag_tape_drop(tape, gradient);
        return;
    }
    frag_node *next = frag_tape_node(tape, edge->node);
    if (gradient != 0)
        add_to_buffer(tape, next, edge->input, gradient);
    FRAG_ASSERT(next->dependencies > 0);
    if (--next->dependencies == 0)
        push(tape, ready, edge->node);
}

static void run_node(frag_tape *tape, ready_heap *ready, uint32_t id)
{
    frag_node *node = frag_tape_node(tape, id);
    frag_tensor in[FRAG_NODE_EDGES_MAX] = {0};
    frag_tensor out[FRAG_NODE_EDGES_MAX] = {0};
    for (uint32_t i = 0; i < node->output_count; i++) {
        in[i] = node->buffer[i];
        node->buffer[i] = 0;
    }
    frag_tape_call_hook(tape, node->hook);
    if (node->run == NULL) {
        accumulate(tape, node, in[0]);
        frag_tape_tell_gradient(tape, node->parameter);
        frag_tape_drop(tape, in[0]);
        return;
    }
    frag_tape_unpack(tape, node);
    node->run(tape, node, in, out);
    frag_tape_drop_unpacked(tape, node);
    for (uint32_t i = 0; i < node->edge_count; i++)
        if (node->edges[i].node != 0 && out[i] != 0)
            out[i] = fit(tape, node, i, out[i]);
    frag_tape_drop_all(tape, in, node->output_count);
    frag_tape_release_saved(tape, node);
    for (uint32_t i = 0; i < node->edge_count; i++)
        hand_on(tape, ready, &node->edges[i], out[i]);
}

void frag_tape_backward(frag_tape *tape, frag_tensor loss)
{
    frag_tensor one = frag_tape_empty_like(tape, loss);
    frag_tape_backward_from(tape, loss, one);
    frag_tape_drop(tape, one);
}

void frag_tape_backward_from(frag_tape *tape, frag_tensor tensor, frag_tensor gradient)
{
    uint32_t root = frag_tape_tensor_node(tape, tensor);
    if (root == 0)
        return;
    bool was_recording = frag_tape_set_recording(tape, false);
    frag_tape_set_thread(tape, true);
    count_dependencies(tape, root);
    ready_heap ready = {0};
    frag_tape_node(tape, root)->buffer[0] = frag_tape_keep(tape, gradient);
    push(tape, &ready, root);
    while (ready.count > 0)
        run_node(tape, &ready, pop(tape, &ready));
    frag_free(ready.nodes);
    frag_tape_call_hook(tape, FRAG_HOOK_END);
    frag_tape_set_thread(tape, false);
    frag_tape_set_recording(tape, was_recording);
}
