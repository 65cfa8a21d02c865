/* The functions of graphs that runtime and driver have alike, as text: a file that includes it says
 * before by macros how they are called, GRAPH(name) and GRAPH_LAUNCH, what returns a result,
 * RETURN, and what reads the parameters of a copy, AREA_OF. The driver's also take a context at
 * their end, which nothing here needs. */
#ifndef FRAG_GRAPHS_SOFT_GRAPH_ENTRIES_H
#define FRAG_GRAPHS_SOFT_GRAPH_ENTRIES_H

/* ---- parameters of nodes */

/* cudaHostNodeParams, CUDA_HOST_NODE_PARAMS */
typedef struct hosted {
    void (*function)(void *data);
    void *data;
} hosted;

/* cudaGraphNodeParams, CUgraphNodeParams */
typedef struct node_parameters {
    int32_t kind;
    int32_t reserved[3];
    union {
        struct {
            int32_t reserved[4];
            char box[1];
        } copy;
        frag_soft_filling fill;
        hosted host;
        void *graph;
    } of;
} node_parameters;

static int32_t step_of_box(const void *box, const void *caller, frag_soft_step *step)
{
    *step = (frag_soft_step){.kind = FRAG_SOFT_STEP_COPY, .caller = caller};
    return AREA_OF(box, &step->area);
}

static int32_t step_of_filling(const frag_soft_filling *what, frag_soft_step *step)
{
    if (what == NULL ||
        (what->value_bytes != 1 && what->value_bytes != 2 && what->value_bytes != 4))
        return FRAG_CUDA_INVALID_VALUE;
    *step = (frag_soft_step){.kind = FRAG_SOFT_STEP_FILL,
                             .area = frag_soft_filled(what),
                             .value = what->value,
                             .value_bytes = what->value_bytes};
    return FRAG_CUDA_OK;
}

static int32_t step_of_host(const hosted *what, frag_soft_step *step)
{
    if (what == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    *step = (frag_soft_step){
        .kind = FRAG_SOFT_STEP_HOST, .function = what->function, .data = what->data};
    return FRAG_CUDA_OK;
}

static int32_t step_of_any(const node_parameters *what, const void *caller, frag_soft_step *step)
{
    if (what == NULL)
        return FRAG_CUDA_INVALID_VALUE;
    if (what->kind == FRAG_SOFT_STEP_COPY)
        return step_of_box(what->of.copy.box, caller, step);
    if (what->kind == FRAG_SOFT_STEP_FILL)
        return step_of_filling(&what->of.fill, step);
    if (what->kind == FRAG_SOFT_STEP_HOST)
        return step_of_host(&what->of.host, step);
    *step = (frag_soft_step){.kind = what->kind == FRAG_SOFT_STEP_GRAPH    ? FRAG_SOFT_STEP_GRAPH
                                     : what->kind == FRAG_SOFT_STEP_KERNEL ? FRAG_SOFT_STEP_KERNEL
                                                                           : FRAG_SOFT_STEP_EMPTY};
    if (step->kind == FRAG_SOFT_STEP_GRAPH)
        step->graph = frag_soft_number(what->of.graph);
    return FRAG_CUDA_OK;
}

/* A node is added or set with what was made of its parameters. */
static int32_t add(void **node, const void *graph, int32_t made, frag_soft_step step)
{
    return RETURN(made == FRAG_CUDA_OK ? frag_soft_node_add(node, graph, step) : made);
}

static int32_t set(const void *executable, const void *node, int32_t made, frag_soft_step step)
{
    return RETURN(made == FRAG_CUDA_OK ? frag_soft_node_set(executable, node, step) : made);
}

/* ---- graphs */

FRAG_ENTRY(int32_t, GRAPH(Create), (void **graph, unsigned flags))
{
    (void)flags;
    return RETURN(frag_soft_graph_create(graph));
}

FRAG_ENTRY(int32_t, GRAPH(Destroy), (void *graph))
{
    return RETURN(frag_soft_graph_destroy(graph));
}

FRAG_ENTRY(int32_t, GRAPH(Clone), (void **clone, void *graph))
{
    return RETURN(frag_soft_graph_copy(clone, graph, false));
}

FRAG_ENTRY(int32_t, GRAPH(GetNodes), (void *graph, void **nodes, size_t *count))
{
    return RETURN(frag_soft_graph_nodes(graph, nodes, count));
}

/* None of the nodes is known apart from the others: all are roots, without edges. */
FRAG_ENTRY(int32_t, GRAPH(GetRootNodes), (void *graph, void **nodes, size_t *count))
{
    return GRAPH(GetNodes)(graph, nodes, count);
}

FRAG_ENTRY(int32_t, GRAPH(ExecDestroy), (void *executable))
{
    return RETURN(frag_soft_graph_destroy(executable));
}

FRAG_ENTRY(int32_t, GRAPH(Launch), (void *executable, void *stream))
{
    return RETURN(frag_soft_graph_launch(GRAPH_LAUNCH, executable, stream));
}

/* ---- nodes */

#define NODE void **node, void *graph, const void *dependencies, size_t count
#define IGNORED (void)dependencies, (void)count

FRAG_ENTRY(int32_t, GRAPH(AddMemcpyNode), (NODE, const void *box))
{
    frag_soft_step step;
    int32_t made = step_of_box(box, FRAG_CALLER(), &step);
    IGNORED;
    return add(node, graph, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(AddMemsetNode), (NODE, const frag_soft_filling *what))
{
    frag_soft_step step;
    int32_t made = step_of_filling(what, &step);
    IGNORED;
    return add(node, graph, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(AddHostNode), (NODE, const hosted *what))
{
    frag_soft_step step;
    int32_t made = step_of_host(what, &step);
    IGNORED;
    return add(node, graph, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(AddChildGraphNode), (NODE, void *child))
{
    IGNORED;
    return add(node, graph, FRAG_CUDA_OK,
               (frag_soft_step){.kind = FRAG_SOFT_STEP_GRAPH, .graph = frag_soft_number(child)});
}

FRAG_ENTRY(int32_t, GRAPH(AddEmptyNode), (NODE))
{
    IGNORED;
    return add(node, graph, FRAG_CUDA_OK, (frag_soft_step){.kind = FRAG_SOFT_STEP_EMPTY});
}

FRAG_ENTRY(int32_t, GRAPH(AddNode_v2),
           (void **node, void *graph, const void *dependencies, const void *edges, size_t count,
            const node_parameters *parameters))
{
    frag_soft_step step;
    int32_t made = step_of_any(parameters, FRAG_CALLER(), &step);
    (void)edges, IGNORED;
    return add(node, graph, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(MemcpyNodeSetParams), (void *node, const void *box))
{
    frag_soft_step step;
    int32_t made = step_of_box(box, FRAG_CALLER(), &step);
    return set(NULL, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(ExecMemcpyNodeSetParams), (void *executable, void *node, const void *box))
{
    frag_soft_step step;
    int32_t made = step_of_box(box, FRAG_CALLER(), &step);
    return set(executable, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(MemsetNodeSetParams), (void *node, const frag_soft_filling *what))
{
    frag_soft_step step;
    int32_t made = step_of_filling(what, &step);
    return set(NULL, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(ExecMemsetNodeSetParams),
           (void *executable, void *node, const frag_soft_filling *what))
{
    frag_soft_step step;
    int32_t made = step_of_filling(what, &step);
    return set(executable, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(HostNodeSetParams), (void *node, const hosted *what))
{
    frag_soft_step step;
    int32_t made = step_of_host(what, &step);
    return set(NULL, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(ExecHostNodeSetParams),
           (void *executable, void *node, const hosted *what))
{
    frag_soft_step step;
    int32_t made = step_of_host(what, &step);
    return set(executable, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(ExecChildGraphNodeSetParams), (void *executable, void *node, void *child))
{
    return set(executable, node, FRAG_CUDA_OK,
               (frag_soft_step){.kind = FRAG_SOFT_STEP_GRAPH, .graph = frag_soft_number(child)});
}

FRAG_ENTRY(int32_t, GRAPH(NodeSetParams), (void *node, const node_parameters *parameters))
{
    frag_soft_step step;
    int32_t made = step_of_any(parameters, FRAG_CALLER(), &step);
    return set(NULL, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(ExecNodeSetParams),
           (void *executable, void *node, const node_parameters *parameters))
{
    frag_soft_step step;
    int32_t made = step_of_any(parameters, FRAG_CALLER(), &step);
    return set(executable, node, made, step);
}

FRAG_ENTRY(int32_t, GRAPH(NodeSetEnabled), (void *executable, void *node, unsigned is_enabled))
{
    return RETURN(frag_soft_node_enable(executable, node, is_enabled != 0));
}

FRAG_ENTRY(int32_t, GRAPH(DestroyNode), (void *node))
{
    return RETURN(frag_soft_node_destroy(node));
}

FRAG_ENTRY(int32_t, GRAPH(NodeGetType), (void *node, int32_t *kind))
{
    return RETURN(frag_soft_node_kind(node, kind));
}

FRAG_ENTRY(int32_t, GRAPH(NodeFindInClone), (void **node, void *original, void *clone))
{
    return RETURN(frag_soft_node_find_in(node, original, clone));
}

FRAG_ENTRY(int32_t, GRAPH(ChildGraphNodeGetGraph), (void *node, void **graph))
{
    return RETURN(frag_soft_node_child(node, graph));
}

#endif
