/* libcuda.so.1: graphs. What their nodes do is kept and carried out by each launch
 * (graphs/soft_graph.h). */
#include <string.h>

#include "base/bits.h"
#include "gpu_replay/software/driver/soft_driver.h"
#include "gpu_replay/software/graphs/soft_graph.h"

#define GRAPH(name) cuGraph##name
#define GRAPH_LAUNCH FRAG_CALL_cuGraphLaunch
#define RETURN(result) (result)
#define AREA_OF frag_driver_area_of
#include "gpu_replay/software/graphs/soft_graph_entries.h"

FRAG_ENTRY(int32_t, cuGraphInstantiateWithFlags,
           (void **executable, void *graph, unsigned long long flags))
{
    (void)flags;
    return frag_soft_graph_copy(executable, graph, true);
}

FRAG_ENTRY(int32_t, cuGraphInstantiateWithParams,
           (void **executable, void *graph, void *parameters))
{
    (void)parameters;
    return frag_soft_graph_copy(executable, graph, true);
}

FRAG_ENTRY(int32_t, cuGraphInstantiate_v2, (void **executable, void *graph))
{
    return frag_soft_graph_copy(executable, graph, true);
}

FRAG_ENTRY(int32_t, cuGraphInstantiate, (void **executable, void *graph))
{
    return frag_soft_graph_copy(executable, graph, true);
}

FRAG_ENTRY(int32_t, cuGraphUpload, (void *executable, void *stream))
{
    (void)executable, (void)stream;
    return FRAG_CUDA_OK;
}

FRAG_ENTRY(int32_t, cuGraphExecUpdate_v2, (void *executable, void *graph, void *about))
{
    if (about != NULL)
        memset(about, 0, 24);
    return frag_soft_graph_update(executable, graph);
}

FRAG_ENTRY(int32_t, cuGraphAddKernelNode_v2, (NODE, const void *parameters))
{
    IGNORED, (void)parameters;
    return add(node, graph, FRAG_CUDA_OK, (frag_soft_step){.kind = FRAG_SOFT_STEP_KERNEL});
}

FRAG_ENTRY(int32_t, cuGraphAddNode, (NODE, const node_parameters *parameters))
{
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, parameters);
}
