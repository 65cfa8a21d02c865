/* Tests of graphs: what is captured or added happens at each launch, and not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

enum { BY_ADDRESS = 4, INVALID_VALUE = 1 };

/* cudaMemsetParams */
typedef struct filling {
    void *address;
    size_t pitch;
    unsigned value, value_bytes;
    size_t width, height;
} filling;

/* cudaHostNodeParams */
typedef struct hosted {
    void (*function)(void *);
    void *data;
} hosted;

/* cudaGraphNodeParams, of a fill */
typedef struct node_parameters {
    int kind;
    int reserved[3];
    filling fill;
} node_parameters;

/* ENTRY(field, function of the runtime, parameters) */
#define ENTRIES(ENTRY)                                                                             \
    ENTRY(fill, cudaMemsetAsync, (void *, int, size_t, void *))                                    \
    ENTRY(copy, cudaMemcpyAsync, (void *, const void *, size_t, int, void *))                      \
    ENTRY(host, cudaLaunchHostFunc, (void *, void (*)(void *), void *))                            \
    ENTRY(create, cudaGraphCreate, (void **, unsigned))                                            \
    ENTRY(clone, cudaGraphClone, (void **, void *))                                                \
    ENTRY(nodes, cudaGraphGetNodes, (void *, void **, size_t *))                                   \
    ENTRY(instantiate, cudaGraphInstantiate, (void **, void *, uint64_t))                          \
    ENTRY(update, cudaGraphExecUpdate, (void *, void *, void *))                                   \
    ENTRY(give, cudaGraphExecDestroy, (void *))                                                    \
    ENTRY(launch, cudaGraphLaunch, (void *, void *))                                               \
    ENTRY(add_fill, cudaGraphAddMemsetNode, (void **, void *, void **, size_t, const filling *))   \
    ENTRY(add_row, cudaGraphAddMemcpyNode1D,                                                       \
          (void **, void *, void **, size_t, void *, const void *, size_t, int))                   \
    ENTRY(add_host, cudaGraphAddHostNode, (void **, void *, void **, size_t, const hosted *))      \
    ENTRY(add_child, cudaGraphAddChildGraphNode, (void **, void *, void **, size_t, void *))       \
    ENTRY(add, cudaGraphAddNode,                                                                   \
          (void **, void *, void **, void *, size_t, const node_parameters *))                     \
    ENTRY(set_fill, cudaGraphMemsetNodeSetParams, (void *, const filling *))                       \
    ENTRY(set_fill_of, cudaGraphExecMemsetNodeSetParams, (void *, void *, const filling *))        \
    ENTRY(set_row_of, cudaGraphExecMemcpyNodeSetParams1D,                                          \
          (void *, void *, void *, const void *, size_t, int))                                     \
    ENTRY(set_child_of, cudaGraphExecChildGraphNodeSetParams, (void *, void *, void *))            \
    ENTRY(enable, cudaGraphNodeSetEnabled, (void *, void *, unsigned))                             \
    ENTRY(destroy_node, cudaGraphDestroyNode, (void *))                                            \
    ENTRY(kind, cudaGraphNodeGetType, (void *, int *))                                             \
    ENTRY(in_clone, cudaGraphNodeFindInClone, (void **, void *, void *))

static struct {
#define FIELD(field, name, parameters) int(*field) parameters;
    ENTRIES(FIELD)
#undef FIELD
    void (*toggle)(uint64_t);
    int (*note)(const void *, void (*)(void *), void *);
} graph;

static void *start(unsigned char **device)
{
    software_start("");
    *device = (unsigned char *)(uintptr_t)software_take(PAGE);
    return software_stream();
}

static unsigned char at(const unsigned char *device)
{
    unsigned char got = 0xa5;
    assert_int_equal(cuda.memcpy(&got, device, 1, BY_ADDRESS), 0);
    return got;
}

static void *captured_by(void *stream, void (*work)(void *, unsigned char *), unsigned char *device)
{
    void *made = NULL;
    assert_int_equal(cuda.begin_capture(stream, 0), 0);
    work(stream, device);
    assert_int_equal(cuda.end_capture(stream, &made), 0);
    return made;
}

static void *executable_of(void *made)
{
    void *executable = NULL;
    assert_int_equal(graph.instantiate(&executable, made, 0), 0);
    return executable;
}

static void work(void *stream, unsigned char *device)
{
    assert_int_equal(graph.copy(device + 1, device, 1, BY_ADDRESS, stream), 0);
    assert_int_equal(graph.fill(device, 7, 1, stream), 0);
}

static void what_is_captured_happens_at_each_launch(void **state)
{
    unsigned char *device;
    size_t count = 0;
    (void)state;
    void *stream = start(&device);
    assert_int_equal(cuda.memset(device, 3, 2), 0);
    void *made = captured_by(stream, work, device);
    assert_int_equal(at(device), 3);
    assert_int_equal(graph.nodes(made, NULL, &count), 0);
    assert_int_equal(count, 2);
    void *first = executable_of(made);
    void *second = executable_of(made);
    assert_int_equal(cuda.graph_destroy(made), 0);
    assert_int_equal(graph.launch(first, stream), 0);
    assert_int_equal(at(device), 7);
    assert_int_equal(at(device + 1), 3);
    assert_int_equal(cuda.memset(device, 4, 1), 0);
    assert_int_equal(graph.launch(second, stream), 0);
    assert_int_equal(at(device + 1), 4);
    assert_int_equal(graph.launch(second, stream), 0);
    assert_int_equal(at(device + 1), 7);
    assert_int_equal(graph.give(first), 0);
    assert_int_equal(graph.give(first), INVALID_VALUE);
    assert_int_equal(graph.give(second), 0);
}

static void nodes_are_added_changed_and_taken_out(void **state)
{
    unsigned char *device;
    void *made, *child, *clone, *fill, *row, *inner, *other, *found;
    int kind = -1;
    (void)state;
    void *stream = start(&device);
    filling what = {device, 0, 0x0102, 2, 2, 1};
    assert_int_equal(graph.create(&made, 0), 0);
    assert_int_equal(graph.create(&child, 0), 0);
    assert_int_equal(graph.add_fill(&fill, made, NULL, 0, &what), 0);
    assert_int_equal(graph.add_row(&row, made, NULL, 0, device + 8, device, 1, BY_ADDRESS), 0);
    assert_int_equal(graph.kind(row, &kind), 0);
    assert_int_equal(kind, 1);
    node_parameters any = {2, {0}, {device + 16, 0, 9, 1, 1, 1}};
    assert_int_equal(graph.add(&other, child, NULL, NULL, 0, &any), 0);
    assert_int_equal(graph.add_child(&inner, made, NULL, 0, child), 0);
    assert_int_equal(graph.clone(&clone, made), 0);
    assert_int_equal(graph.in_clone(&found, fill, clone), 0);
    assert_ptr_not_equal(found, fill);
    void *executable = executable_of(made);
    assert_int_equal(graph.launch(executable, stream), 0);
    assert_int_equal(at(device + 2), 2);
    assert_int_equal(at(device + 3), 1);
    assert_int_equal(at(device + 8), 2);
    assert_int_equal(at(device + 16), 9);
    /* parameters of the executable alone, of the graph alone, and of the child */
    what.value = 0x0505;
    assert_int_equal(graph.set_fill_of(executable, fill, &what), 0);
    what.value = 0x0606;
    assert_int_equal(graph.set_fill(fill, &what), 0);
    assert_int_equal(graph.set_fill(row, &what), INVALID_VALUE);
    any.fill.value = 8;
    assert_int_equal(graph.set_fill(other, &any.fill), 0);
    assert_int_equal(graph.set_child_of(executable, inner, child), 0);
    assert_int_equal(graph.set_row_of(executable, row, device + 9, device, 1, BY_ADDRESS), 0);
    assert_int_equal(graph.launch(executable, stream), 0);
    assert_int_equal(at(device), 5);
    assert_int_equal(at(device + 8), 2);
    assert_int_equal(at(device + 9), 5);
    assert_int_equal(at(device + 16), 8);
    assert_int_equal(graph.update(executable, made, NULL), 0);
    assert_int_equal(graph.enable(executable, row, 0), 0);
    assert_int_equal(graph.launch(executable, stream), 0);
    assert_int_equal(at(device), 6);
    assert_int_equal(at(device + 8), 2);
    assert_int_equal(graph.destroy_node(fill), 0);
    assert_int_equal(graph.destroy_node(fill), INVALID_VALUE);
    void *less = executable_of(made);
    assert_int_equal(cuda.memset(device, 1, 1), 0);
    assert_int_equal(graph.launch(less, stream), 0);
    assert_int_equal(at(device + 8), 1);
    /* the clone is as the graph was */
    assert_int_equal(graph.launch(executable_of(clone), stream), 0);
    assert_int_equal(at(device), 2);
    assert_int_equal(graph.launch(NULL, stream), 0);
}

static void count_up(void *data)
{
    ++*(int *)data;
}

static void functions_of_the_host_are_called_by_launches(void **state)
{
    unsigned char *device;
    void *made, *outer;
    int count = 0;
    (void)state;
    void *stream = start(&device);
    assert_int_equal(graph.note(stream, count_up, &count), 0);
    assert_int_equal(graph.host(stream, count_up, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(cuda.begin_capture(stream, 0), 0);
    assert_int_equal(graph.host(stream, count_up, &count), 0);
    assert_int_equal(graph.note(stream, count_up, &count), 1);
    assert_int_equal(graph.note(stream, count_up, &count), 2);
    assert_int_equal(graph.fill(device, 1, 1, stream), 0);
    assert_int_equal(graph.note(stream, count_up, &count), 1);
    assert_int_equal(cuda.end_capture(stream, &made), 0);
    assert_int_equal(count, 1);
    void *executable = executable_of(made);
    assert_int_equal(graph.launch(executable, stream), 0);
    assert_int_equal(count, 4);
    hosted by_hand = {count_up, &count};
    assert_int_equal(graph.add_host(NULL, made, NULL, 0, &by_hand), 0);
    /* a launch that is captured is a node */
    assert_int_equal(cuda.begin_capture(stream, 0), 0);
    assert_int_equal(graph.launch(executable, stream), 0);
    assert_int_equal(cuda.end_capture(stream, &outer), 0);
    assert_int_equal(graph.give(executable), 0);
    assert_int_equal(count, 4);
    assert_int_equal(graph.launch(executable_of(outer), stream), 0);
    assert_int_equal(count, 7);
    assert_int_equal(graph.launch(executable_of(made), stream), 0);
    assert_int_equal(count, 11);
}

static void blocks_that_come_and_go_in_a_capture_are_unknown_in_each_launch(void **state)
{
    unsigned char *device;
    void *made;
    (void)state;
    void *stream = start(&device);
    assert_int_equal(cuda.begin_capture(stream, 0), 0);
    graph.toggle((uint64_t)(uintptr_t)device);
    graph.toggle((uint64_t)(uintptr_t)device + 512);
    assert_int_equal(graph.copy(device + 512, device, 1, BY_ADDRESS, stream), 0);
    assert_int_equal(cuda.end_capture(stream, &made), 0);
    assert_int_equal(cuda.memset(device, 7, 1024), 0);
    assert_int_equal(graph.launch(executable_of(made), stream), 0);
    assert_int_equal(at(device), 0);
    assert_int_equal(at(device + 512), 0);
}

static int find(void **state)
{
    (void)state;
    software_load_all();
#define FIND(field, name, parameters) software_find(cuda.library, #name, &graph.field);
    ENTRIES(FIND)
#undef FIND
    software_find(NULL, "frag_soft_shadow_toggle", &graph.toggle);
    software_find(NULL, "frag_software_graph_note", &graph.note);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_captured_happens_at_each_launch),
        cmocka_unit_test(nodes_are_added_changed_and_taken_out),
        cmocka_unit_test(functions_of_the_host_are_called_by_launches),
        cmocka_unit_test(blocks_that_come_and_go_in_a_capture_are_unknown_in_each_launch),
    };
    return cmocka_run_group_tests(tests, find, NULL);
}
