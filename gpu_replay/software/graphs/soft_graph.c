#include "gpu_replay/software/graphs/soft_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GRAPH_BASE 0x540000000000u
#define NODE_BASE 0x570000000000u
#define STEP_BYTES 16

typedef struct graph {
    bool is_executable;
    frag_soft_step *steps;
    size_t count;
    size_t capacity;
    uint64_t node_count;
} graph;

static struct {
    frag_soft_handles handles;
    graph *graphs;
    size_t capacity;
    uint64_t node_count; /* handles given out */
} all = {.handles = {.base = GRAPH_BASE}};

/* ---- under the lock */

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static void *handle_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static graph *find(uint64_t number)
{
    uint32_t place = 0;
    return frag_soft_handle_find(&all.handles, number, &place) ? &all.graphs[place] : NULL;
}

static bool is_node(const frag_soft_step *step)
{
    return step->kind < FRAG_SOFT_STEP_FORGET;
}

uint64_t frag_soft_graph_new(void)
{
    uint32_t place = frag_soft_handle_take(&all.handles);
    all.graphs = frag_grow(all.graphs, &all.capacity, (size_t)place + 1, sizeof all.graphs[0]);
    all.graphs[place] = (graph){0};
    return frag_soft_handle_number(&all.handles, place);
}

void frag_soft_graph_give(uint64_t number)
{
    uint32_t place = 0;
    if (!frag_soft_handle_find(&all.handles, number, &place))
        return;
    graph given = all.graphs[place];
    frag_soft_handle_give(&all.handles, place);
    for (size_t i = 0; i < given.count; i++)
        if (given.steps[i].kind == FRAG_SOFT_STEP_GRAPH)
            frag_soft_graph_give(given.steps[i].graph);
    free(given.steps);
}

void frag_soft_graph_count(uint64_t number)
{
    graph *counted = find(number);
    if (counted != NULL)
        counted->node_count++;
}

/* A copy with the nodes' handles, or with new ones. */
static uint64_t copy_of(uint64_t number, bool is_executable)
{
    uint64_t made = frag_soft_graph_new(); /* which may move the graphs */
    const graph *from = find(number);
    if (from == NULL)
        return made;
    graph copy = *from;
    copy.is_executable = is_executable;
    copy.steps = NULL;
    copy.capacity = 0;
    if (copy.count > 0) {
        copy.steps = frag_grow(NULL, &copy.capacity, copy.count, sizeof copy.steps[0]);
        memcpy(copy.steps, from->steps, copy.count * sizeof copy.steps[0]);
    }
    for (size_t i = 0; i < copy.count; i++) {
        frag_soft_step *step = &copy.steps[i];
        if (step->kind == FRAG_SOFT_STEP_GRAPH)
            step->graph = copy_of(step->graph, is_executable);
        if (is_executable)
            continue;
        step->node_of = step->node;
        step->node = NODE_BASE + STEP_BYTES * ++all.node_count;
    }
    *find(made) = copy;
    return made;
}

uint64_t frag_soft_graph_add(uint64_t number, frag_soft_step step)
{
    if (find(number) == NULL)
        return 0;
    if (step.kind == FRAG_SOFT_STEP_GRAPH)
        step.graph = copy_of(step.graph, false);
    graph *to = find(number);
    to->steps = frag_grow(to->steps, &to->capacity, to->count + 1, sizeof to->steps[0]);
    step.node = NODE_BASE + STEP_BYTES * ++all.node_count;
    to->steps[to->count++] = step;
    return step.node;
}

void frag_soft_graphs_stop(void)
{
    for (uint32_t i = 0; i < all.handles.count; i++)
        if (all.handles.slots[i].is_live)
            frag_soft_graph_give(frag_soft_handle_number(&all.handles, i));
    free(all.graphs);
    all.graphs = NULL;
    all.capacity = 0;
    frag_soft_handles_destroy(&all.handles);
}

/* The step of a node in a graph, or in those that its steps hold. */
static frag_soft_step *step_in(const graph *in, uint64_t node)
{
    frag_soft_step *found = NULL;
    for (size_t i = 0; in != NULL && found == NULL && i < in->count; i++) {
        if (in->steps[i].node == node && is_node(&in->steps[i]))
            return &in->steps[i];
        if (in->steps[i].kind == FRAG_SOFT_STEP_GRAPH)
            found = step_in(find(in->steps[i].graph), node);
    }
    return found;
}

/* In the graph that a node was added to; owner: that graph. */
static frag_soft_step *step_of(uint64_t node, graph **owner)
{
    for (uint32_t g = 0; g < all.handles.count; g++) {
        graph *in = &all.graphs[g];
        for (size_t i = 0; all.handles.slots[g].is_live && !in->is_executable && i < in->count; i++)
            if (in->steps[i].node == node && is_node(&in->steps[i])) {
                *owner = in;
                return &in->steps[i];
            }
    }
    return NULL;
}

static frag_soft_step *step_at(const void *executable, const void *node)
{
    graph *owner = NULL;
    return executable == NULL ? step_of(number_of(node), &owner)
                              : step_in(find(number_of(executable)), number_of(node));
}

/* ---- whole calls */

/* Gives the lock back; *is_right false: something does not exist. */
static int32_t leave(int32_t result, bool is_right)
{
    frag_soft_leave();
    return result != FRAG_CUDA_OK || is_right ? result : FRAG_CUDA_INVALID_VALUE;
}

int32_t frag_soft_graph_create(void **out)
{
    int32_t result = 0;
    bool may = frag_soft_enter(&result);
    *out = may ? handle_of(frag_soft_graph_new()) : NULL;
    return leave(result, true);
}

int32_t frag_soft_graph_destroy(const void *handle)
{
    int32_t result = 0;
    bool is_there = frag_soft_enter(&result) && find(number_of(handle)) != NULL;
    if (is_there)
        frag_soft_graph_give(number_of(handle));
    return leave(result, is_there);
}

int32_t frag_soft_graph_copy(void **out, const void *handle, bool is_executable)
{
    int32_t result = 0;
    bool is_there = frag_soft_enter(&result) && find(number_of(handle)) != NULL;
    *out = is_there ? handle_of(copy_of(number_of(handle), is_executable)) : NULL;
    return leave(result, is_there);
}

/* The executable's own contents go with the handle of a copy. */
int32_t frag_soft_graph_update(const void *executable, const void *handle)
{
    int32_t result = 0;
    bool is_there = frag_soft_enter(&result) && find(number_of(executable)) != NULL &&
                    find(number_of(handle)) != NULL;
    if (is_there) {
        uint64_t fresh = copy_of(number_of(handle), true);
        graph *to = find(number_of(executable));
        graph *from = find(fresh);
        graph before = *to;
        *to = *from;
        *from = before;
        frag_soft_graph_give(fresh);
    }
    return leave(result, is_there);
}

int32_t frag_soft_node_add(void **out, const void *handle, frag_soft_step step)
{
    int32_t result = 0;
    uint64_t node = frag_soft_enter(&result) ? frag_soft_graph_add(number_of(handle), step) : 0;
    if (node != 0)
        frag_soft_graph_count(number_of(handle));
    if (out != NULL)
        *out = handle_of(node);
    return leave(result, node != 0);
}

int32_t frag_soft_node_set(const void *executable, const void *node, frag_soft_step step)
{
    int32_t result = 0;
    bool may = frag_soft_enter(&result);
    frag_soft_step *set = may ? step_at(executable, node) : NULL;
    bool is_right = set != NULL && set->kind == step.kind;
    if (is_right && step.kind == FRAG_SOFT_STEP_GRAPH) {
        uint64_t before = set->graph;
        step.graph = copy_of(step.graph, executable != NULL); /* which may move the graphs */
        set = step_at(executable, node);
        set->graph = step.graph;
        frag_soft_graph_give(before);
    } else if (is_right) {
        step.node = set->node;
        step.node_of = set->node_of;
        step.is_disabled = set->is_disabled;
        *set = step;
    }
    return leave(result, is_right);
}

int32_t frag_soft_node_enable(const void *executable, const void *node, bool is_enabled)
{
    int32_t result = 0;
    bool may = frag_soft_enter(&result);
    frag_soft_step *set = may ? step_at(executable, node) : NULL;
    if (set != NULL)
        set->is_disabled = !is_enabled;
    return leave(result, set != NULL || node == NULL); /* NULL: a kernel that was captured */
}

int32_t frag_soft_node_destroy(const void *node)
{
    int32_t result = 0;
    graph *owner = NULL;
    bool may = frag_soft_enter(&result);
    frag_soft_step *gone = may ? step_of(number_of(node), &owner) : NULL;
    if (gone != NULL) {
        uint64_t child = gone->kind == FRAG_SOFT_STEP_GRAPH ? gone->graph : 0;
        size_t place = (size_t)(gone - owner->steps);
        owner->count--;
        owner->node_count--;
        memmove(gone, gone + 1, (owner->count - place) * sizeof *gone);
        frag_soft_graph_give(child);
    }
    return leave(result, gone != NULL || node == NULL);
}

int32_t frag_soft_node_kind(const void *node, int32_t *kind)
{
    int32_t result = 0;
    graph *owner = NULL;
    bool may = frag_soft_enter(&result);
    const frag_soft_step *step = may ? step_of(number_of(node), &owner) : NULL;
    *kind = step == NULL ? FRAG_SOFT_STEP_KERNEL : (int32_t)step->kind;
    return leave(result, true);
}

int32_t frag_soft_node_find_in(void **out, const void *node, const void *clone)
{
    int32_t result = 0;
    bool may = frag_soft_enter(&result);
    const graph *in = may ? find(number_of(clone)) : NULL;
    *out = NULL;
    for (size_t i = 0; in != NULL && i < in->count; i++)
        if (in->steps[i].node_of == number_of(node) && is_node(&in->steps[i]))
            *out = handle_of(in->steps[i].node);
    return leave(result, *out != NULL);
}

int32_t frag_soft_node_child(const void *node, void **out)
{
    int32_t result = 0;
    graph *owner = NULL;
    bool may = frag_soft_enter(&result);
    const frag_soft_step *step = may ? step_of(number_of(node), &owner) : NULL;
    bool is_right = step != NULL && step->kind == FRAG_SOFT_STEP_GRAPH;
    *out = is_right ? handle_of(step->graph) : NULL;
    return leave(result, is_right);
}

int32_t frag_soft_graph_nodes(const void *handle, void **nodes, size_t *count)
{
    int32_t result = 0;
    bool may = frag_soft_enter(&result);
    const graph *in = may ? find(number_of(handle)) : NULL;
    size_t given = 0;
    for (size_t i = 0; in != NULL && nodes != NULL && i < in->count && given < *count; i++)
        if (is_node(&in->steps[i]))
            nodes[given++] = handle_of(in->steps[i].node);
    while (nodes != NULL && given < *count)
        nodes[given++] = NULL;
    if (nodes == NULL)
        *count = in == NULL ? 0 : (size_t)in->node_count;
    return leave(result, true);
}

/* ---- launches */

/* Without the lock: functions may call CUDA, and copies may ask. Nobody changes a graph or gives it
 * back while it is being launched. */
static void carry_out(const frag_soft_step *steps, size_t count)
{
    for (const frag_soft_step *step = steps; step < steps + count; step++) {
        int32_t ignored = 0;
        if (step->is_disabled)
            continue;
        if (step->kind == FRAG_SOFT_STEP_COPY || step->kind == FRAG_SOFT_STEP_FILL) {
            frag_soft_area_carry_out(step->kind == FRAG_SOFT_STEP_COPY, &step->area,
                                     (frag_soft_filler){step->value, step->value_bytes},
                                     step->caller);
        } else if (step->kind == FRAG_SOFT_STEP_FORGET) {
            frag_soft_enter(&ignored);
            frag_soft_shadow_forget(step->area.to, step->area.width);
            frag_soft_leave();
        } else if (step->kind == FRAG_SOFT_STEP_GRAPH) {
            frag_soft_enter(&ignored);
            const graph *child = find(step->graph);
            graph inner = child == NULL ? (graph){0} : *child;
            frag_soft_leave();
            carry_out(inner.steps, inner.count);
        } else if (step->function != NULL) {
            step->function(step->data);
        }
    }
}

int32_t frag_soft_graph_launch(frag_soft_call_id id, const void *executable, const void *handle)
{
    frag_soft_call call;
    uint32_t stream = 0;
    graph launched = {0};
    bool may = frag_soft_begin(&call, id);
    if (frag_soft_call_stream(&call, may, handle, &stream)) {
        uint64_t captured = frag_soft_stream_graph(stream);
        const graph *found = find(number_of(executable));
        if (captured != 0) {
            frag_soft_step step = {.kind = FRAG_SOFT_STEP_GRAPH, .graph = number_of(executable)};
            frag_soft_graph_add(captured, step);
        } else {
            frag_soft_shadow_launch();
            launched = found == NULL ? launched : *found;
        }
        frag_soft_stream_work(stream);
    }
    int32_t result = frag_soft_end(&call);
    carry_out(launched.steps, launched.count);
    return result;
}

int frag_software_graph_note(const void *handle, void (*function)(void *), void *data)
{
    int32_t ignored = 0;
    int answer = 0;
    uint32_t stream = 0;
    bool is_found = frag_soft_enter(&ignored) && frag_soft_stream_find(number_of(handle), &stream);
    uint64_t captured = is_found ? frag_soft_stream_graph(stream) : 0;
    const graph *to = find(captured);
    if (to != NULL) {
        const frag_soft_step *last = to->count == 0 ? NULL : &to->steps[to->count - 1];
        bool goes_on =
            last != NULL && last->kind == FRAG_SOFT_STEP_NOTE && last->function == function;
        if (!goes_on)
            frag_soft_graph_add(
                captured,
                (frag_soft_step){.kind = FRAG_SOFT_STEP_NOTE, .function = function, .data = data});
        answer = goes_on ? 2 : 1;
    }
    frag_soft_leave();
    return answer;
}
