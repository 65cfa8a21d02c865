/* libcudart: graphs. What their nodes do is kept and carried out by each launch
 * (graphs/soft_graph.h). */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/graphs/soft_graph.h"
#include "gpu_replay/software/runtime/soft_runtime.h"

#define GRAPH(name) cudaGraph##name
#define GRAPH_LAUNCH FRAG_CALL_cudaGraphLaunch
#define RETURN frag_runtime_return
#define AREA_OF frag_runtime_area_of
#include "gpu_replay/software/graphs/soft_graph_entries.h"

FRAG_ENTRY(int32_t, cudaGraphInstantiate, (void **executable, void *graph))
{
    return frag_runtime_return(frag_soft_graph_copy(executable, graph, true));
}

FRAG_ENTRY(int32_t, cudaGraphInstantiateWithFlags, (void **executable, void *graph))
{
    return cudaGraphInstantiate(executable, graph);
}

FRAG_ENTRY(int32_t, cudaGraphInstantiateWithParams, (void **executable, void *graph))
{
    return cudaGraphInstantiate(executable, graph);
}

FRAG_ENTRY(int32_t, cudaGraphExecUpdate, (void *executable, void *graph, void *about))
{
    if (about != NULL)
        memset(about, 0, 24);
    return frag_runtime_return(frag_soft_graph_update(executable, graph));
}

FRAG_ENTRY(int32_t, cudaGraphAddKernelNode, (NODE, const void *parameters))
{
    IGNORED, (void)parameters;
    return add(node, graph, FRAG_CUDA_OK, (frag_soft_step){.kind = FRAG_SOFT_STEP_KERNEL});
}

#if FRAG_CUDART >= 13
FRAG_ENTRY(int32_t, cudaGraphAddNode,
           (void **node, void *graph, const void *dependencies, const void *edges, size_t count,
            const node_parameters *parameters))
{
    return cudaGraphAddNode_v2(node, graph, dependencies, edges, count, parameters);
}
#else
FRAG_ENTRY(int32_t, cudaGraphAddNode, (NODE, const node_parameters *parameters))
{
    return cudaGraphAddNode_v2(node, graph, dependencies, NULL, count, parameters);
}
#endif

/* ---- copies of rows */

static frag_soft_step step_of_row(frag_soft_area area, const void *caller)
{
    return (frag_soft_step){.kind = FRAG_SOFT_STEP_COPY, .area = area, .caller = caller};
}

static frag_soft_area row_of(const void *to, const void *from, size_t bytes)
{
    return frag_soft_row(frag_soft_number(to), frag_soft_number(from), bytes);
}

FRAG_ENTRY(int32_t, cudaGraphAddMemcpyNode1D,
           (NODE, void *to, const void *from, size_t bytes, int32_t way))
{
    IGNORED, (void)way;
    return add(node, graph, FRAG_CUDA_OK, step_of_row(row_of(to, from, bytes), FRAG_CALLER()));
}

FRAG_ENTRY(int32_t, cudaGraphMemcpyNodeSetParams1D,
           (void *node, void *to, const void *from, size_t bytes, int32_t way))
{
    (void)way;
    return set(NULL, node, FRAG_CUDA_OK, step_of_row(row_of(to, from, bytes), FRAG_CALLER()));
}

FRAG_ENTRY(int32_t, cudaGraphExecMemcpyNodeSetParams1D,
           (void *executable, void *node, void *to, const void *from, size_t bytes, int32_t way))
{
    (void)way;
    return set(executable, node, FRAG_CUDA_OK, step_of_row(row_of(to, from, bytes), FRAG_CALLER()));
}

/* Copies to and from variables of device code. */
static int32_t step_of_symbol(const void *symbol, frag_soft_area area, size_t offset,
                              frag_soft_step *step)
{
    uint64_t place = frag_runtime_part_of(symbol, area.width, offset);
    *step = step_of_row(area, NULL);
    if (step->area.to == 0)
        step->area.to = place;
    else
        step->area.from = place;
    return place == 0 ? FRAG_RUNTIME_INVALID_SYMBOL : FRAG_CUDA_OK;
}

#define SYMBOL_NODE(name, first, second, to, from)                                                 \
    FRAG_ENTRY(int32_t, cudaGraphAddMemcpyNode##name,                                              \
               (NODE, first, second, size_t bytes, size_t offset, int32_t way))                    \
    {                                                                                              \
        frag_soft_step step;                                                                       \
        int32_t made = step_of_symbol(symbol, row_of(to, from, bytes), offset, &step);             \
        IGNORED, (void)way;                                                                        \
        return add(node, graph, made, step);                                                       \
    }                                                                                              \
    FRAG_ENTRY(int32_t, cudaGraphMemcpyNodeSetParams##name,                                        \
               (void *node, first, second, size_t bytes, size_t offset, int32_t way))              \
    {                                                                                              \
        frag_soft_step step;                                                                       \
        int32_t made = step_of_symbol(symbol, row_of(to, from, bytes), offset, &step);             \
        (void)way;                                                                                 \
        return set(NULL, node, made, step);                                                        \
    }                                                                                              \
    FRAG_ENTRY(                                                                                    \
        int32_t, cudaGraphExecMemcpyNodeSetParams##name,                                           \
        (void *executable, void *node, first, second, size_t bytes, size_t offset, int32_t way))   \
    {                                                                                              \
        frag_soft_step step;                                                                       \
        int32_t made = step_of_symbol(symbol, row_of(to, from, bytes), offset, &step);             \
        (void)way;                                                                                 \
        return set(executable, node, made, step);                                                  \
    }

SYMBOL_NODE(ToSymbol, const void *symbol, const void *from, NULL, from)
SYMBOL_NODE(FromSymbol, void *to, const void *symbol, to, NULL)

FRAG_ENTRY(int32_t, cudaGraphNodeGetDependencies,
           (void *node, void **dependencies, void *edges_or_count, size_t *count))
{
    (void)node, (void)dependencies, (void)edges_or_count, (void)count;
    return frag_runtime_return(FRAG_CUDA_NOT_SUPPORTED);
}

/* Graphs have no memory of their own here. */
FRAG_ENTRY(int32_t, cudaDeviceGetGraphMemAttribute,
           (int32_t device, int32_t attribute, uint64_t *value))
{
    (void)device, (void)attribute;
    *value = 0;
    return FRAG_CUDA_OK;
}
