/* The backend interface: descriptors are lists of attributes that can be set and read back. One
 * that is an attribute of another lives as long as that one does. What the library itself would
 * find out (engines, notes, sizes of workspaces) is answered from the operations in the graph. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_BACKEND_DESCRIPTOR = 15,

    DESCRIPTOR_ENGINE = 2,
    DESCRIPTOR_ENGINE_CONFIGURATION = 3,
    DESCRIPTOR_CONVOLUTION_FORWARD = 10,
    DESCRIPTOR_CONVOLUTION_BACKWARD_FILTER = 11,
    DESCRIPTOR_CONVOLUTION_BACKWARD_DATA = 12,
    DESCRIPTOR_MATMUL = 19,

    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_FILTER_STRIDES = 103,
    HEURISTICS_GRAPH = 201,
    HEURISTICS_RESULTS = 202,
    CONFIGURATION_ENGINE = 300,
    CONFIGURATION_WORKSPACE_SIZE = 303,
    CONFIGURATION_SHARED_MEMORY_USED = 304,
    PLAN_CONFIGURATION = 401,
    PLAN_WORKSPACE_SIZE = 402,
    PLAN_JSON = 405,
    FORWARD_DESCRIPTION = 702,
    FORWARD_W = 703,
    FORWARD_X = 704,
    FORWARD_Y = 705,
    BACKWARD_DATA_DESCRIPTION = 708,
    BACKWARD_DATA_W = 709,
    BACKWARD_DATA_DX = 710,
    BACKWARD_DATA_DY = 711,
    BACKWARD_FILTER_DESCRIPTION = 714,
    BACKWARD_FILTER_DW = 715,
    BACKWARD_FILTER_X = 716,
    BACKWARD_FILTER_DY = 717,
    GRAPH_OPERATIONS = 801,
    GRAPH_ENGINE_COUNT = 802,
    GRAPH_IS_SAME_TOPOLOGY = 804,
    TENSOR_DATA_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_STRIDES = 903,
    ENGINE_GRAPH = 1300,
    ENGINE_INDEX = 1301,
    ENGINE_NUMERICAL_NOTE = 1303,
    MATMUL_A = 1520,

    NOTE_TENSOR_CORE = 0,
};

/* Engine 1 may use tensor cores, engine 0 does not: PyTorch drops the first for numbers of 32 bits
 * where TF32 is not allowed. */
#define ENGINE_COUNT 2

typedef struct frag_cudnn_attribute {
    struct frag_cudnn_attribute *next;
    int name, type;
    int64_t count;
    unsigned char values[];
} frag_cudnn_attribute;

typedef struct frag_cudnn_descriptor {
    frag_cudnn_kind kind;
    int type;
    atomic_int reference_count;
    bool is_finalized;
    bool has_size; /* size_bytes was asked for once and is kept */
    uint64_t size_bytes;
    frag_cudnn_attribute *attributes;
} frag_cudnn_descriptor;

/* Of one element of each attribute type; the enumerations are ints. */
static size_t type_bytes(int type)
{
    switch (type) {
    case 0:                       /* handle */
    case 3:                       /* int64 */
    case 5:                       /* double */
    case 6:                       /* pointer */
    case TYPE_BACKEND_DESCRIPTOR: /* pointer */
        return 8;
    case 2:  /* boolean */
    case 24: /* char */
        return 1;
    case 26: /* fraction */
        return 16;
    default:
        return 4;
    }
}

static void drop(frag_cudnn_descriptor *descriptor);

static void free_attribute(frag_cudnn_attribute *attribute)
{
    if (attribute->type == TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++)
            drop(((frag_cudnn_descriptor **)(void *)attribute->values)[i]);
    free(attribute);
}

static void clear(frag_cudnn_descriptor *descriptor)
{
    while (descriptor->attributes != NULL) {
        frag_cudnn_attribute *attribute = descriptor->attributes;
        descriptor->attributes = attribute->next;
        free_attribute(attribute);
    }
}

static void drop(frag_cudnn_descriptor *descriptor)
{
    if (descriptor == NULL || atomic_fetch_sub(&descriptor->reference_count, 1) > 1)
        return;
    clear(descriptor);
    frag_cudnn_end(descriptor, FRAG_CUDNN_BACKEND);
}

static frag_cudnn_attribute *find(const frag_cudnn_descriptor *descriptor, int name)
{
    frag_cudnn_attribute *attribute = descriptor != NULL ? descriptor->attributes : NULL;
    while (attribute != NULL && attribute->name != name)
        attribute = attribute->next;
    return attribute;
}

/* false: there is no host memory. */
static bool set(frag_cudnn_descriptor *descriptor, int name, int type, int64_t count,
                const void *values)
{
    size_t bytes = (size_t)count * type_bytes(type);
    frag_cudnn_attribute *attribute = calloc(1, sizeof *attribute + bytes + 8);
    if (attribute == NULL)
        return false;
    attribute->name = name;
    attribute->type = type;
    attribute->count = count;
    if (bytes > 0)
        memcpy(attribute->values, values, bytes);
    if (type == TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++) {
            frag_cudnn_descriptor *value = ((frag_cudnn_descriptor *const *)values)[i];
            if (value != NULL)
                atomic_fetch_add(&value->reference_count, 1);
        }
    frag_cudnn_attribute **place = &descriptor->attributes;
    while (*place != NULL && (*place)->name != name)
        place = &(*place)->next;
    frag_cudnn_attribute *old = *place;
    attribute->next = old != NULL ? old->next : NULL;
    *place = attribute;
    if (old != NULL)
        free_attribute(old);
    return true;
}

/* The descriptors of an attribute: the i-th, or NULL. */
static frag_cudnn_descriptor *get_descriptor(const frag_cudnn_descriptor *descriptor, int name,
                                             int64_t i)
{
    const frag_cudnn_attribute *attribute = find(descriptor, name);
    if (attribute == NULL || attribute->type != TYPE_BACKEND_DESCRIPTOR || i >= attribute->count)
        return NULL;
    return ((frag_cudnn_descriptor *const *)(const void *)attribute->values)[i];
}

static int64_t get_number(const frag_cudnn_descriptor *descriptor, int name, int64_t i)
{
    const frag_cudnn_attribute *attribute = find(descriptor, name);
    if (attribute == NULL || i >= attribute->count)
        return 0;
    size_t bytes = type_bytes(attribute->type);
    int64_t wide = 0;
    int32_t narrow = 0;
    if (bytes == 8) {
        memcpy(&wide, attribute->values + 8 * i, 8);
        return wide;
    }
    memcpy(&narrow, attribute->values + (size_t)i * bytes, bytes < 4 ? bytes : 4);
    return narrow;
}

static int64_t get_count(const frag_cudnn_descriptor *descriptor, int name)
{
    const frag_cudnn_attribute *attribute = find(descriptor, name);
    return attribute != NULL ? attribute->count : 0;
}

/* ---- what a graph needs */

typedef struct frag_cudnn_convolution_names {
    int type;
    frag_convolution_pass pass;
    int description, input, filter, output;
} frag_cudnn_convolution_names;

static const frag_cudnn_convolution_names convolution_names[] = {
    {DESCRIPTOR_CONVOLUTION_FORWARD, FRAG_CONVOLUTION_FORWARD, FORWARD_DESCRIPTION, FORWARD_X,
     FORWARD_W, FORWARD_Y},
    {DESCRIPTOR_CONVOLUTION_BACKWARD_DATA, FRAG_CONVOLUTION_BACKWARD_DATA,
     BACKWARD_DATA_DESCRIPTION, BACKWARD_DATA_DX, BACKWARD_DATA_W, BACKWARD_DATA_DY},
    {DESCRIPTOR_CONVOLUTION_BACKWARD_FILTER, FRAG_CONVOLUTION_BACKWARD_FILTER,
     BACKWARD_FILTER_DESCRIPTION, BACKWARD_FILTER_X, BACKWARD_FILTER_DW, BACKWARD_FILTER_DY},
};

static uint64_t get_dimension(const frag_cudnn_descriptor *tensor, int64_t i)
{
    int64_t dimension = get_number(tensor, TENSOR_DIMENSIONS, i);
    return dimension > 0 ? (uint64_t)dimension : 1;
}

static uint64_t get_pixels(const frag_cudnn_descriptor *tensor)
{
    uint64_t pixels = 1;
    for (int64_t i = 2; i < get_count(tensor, TENSOR_DIMENSIONS); i++)
        pixels *= get_dimension(tensor, i);
    return pixels;
}

static bool is_channels_last(const frag_cudnn_descriptor *tensor)
{
    int64_t count = get_count(tensor, TENSOR_STRIDES);
    return count > 2 && get_dimension(tensor, 1) > 1 &&
           get_number(tensor, TENSOR_STRIDES, 1) == 1 &&
           get_number(tensor, TENSOR_STRIDES, count - 1) != 1;
}

static bool is_winograd_shape(const frag_cudnn_descriptor *description,
                              const frag_cudnn_descriptor *filter, uint64_t group_count)
{
    bool is = group_count == 1 && get_count(filter, TENSOR_DIMENSIONS) == 4;
    for (int64_t i = 0; i < 2 && is; i++)
        is = get_dimension(filter, i + 2) == 3 &&
             get_number(description, CONVOLUTION_FILTER_STRIDES, i) == 1 &&
             get_number(description, CONVOLUTION_DILATIONS, i) == 1;
    return is;
}

static frag_cudnn_range convolution_size(const frag_cudnn_descriptor *operation,
                                         const frag_cudnn_convolution_names *names,
                                         bool may_use_tensor_cores)
{
    const frag_cudnn_descriptor *input = get_descriptor(operation, names->input, 0);
    const frag_cudnn_descriptor *filter = get_descriptor(operation, names->filter, 0);
    const frag_cudnn_descriptor *output = get_descriptor(operation, names->output, 0);
    /* A group's filters see its own channels only; the interface does not name the groups. */
    uint64_t group_count = get_dimension(input, 1) / get_dimension(filter, 1);
    if (group_count == 0)
        group_count = 1;
    frag_convolution problem = {
        .pass = names->pass,
        .element_bytes = frag_cudnn_element_bytes((int)get_number(input, TENSOR_DATA_TYPE, 0)),
        .is_channels_last = is_channels_last(input) || is_channels_last(output),
        .may_use_tensor_cores = may_use_tensor_cores,
        .batch_count = get_dimension(input, 0),
        .group_count = group_count,
        .input_channels = get_dimension(input, 1),
        .output_channels = get_dimension(output, 1),
        .input_pixels = get_pixels(input),
        .output_pixels = get_pixels(output),
        .filter_pixels = get_pixels(filter),
        .is_winograd_shape = is_winograd_shape(get_descriptor(operation, names->description, 0),
                                               filter, group_count),
    };
    return frag_cudnn_convolution_range(&problem);
}

/* Backward attention sums the gradient of the queries in 32-bit numbers, with one number for each
 * row beside it; the frontend takes these from its own workspace where it knows of them. Forward
 * needs nothing. Five products of matrices mean backward, two forward. */
static frag_cudnn_range attention_size(const frag_cudnn_descriptor *graph)
{
    int64_t count = get_count(graph, GRAPH_OPERATIONS), products = 0;
    const frag_cudnn_descriptor *queries = NULL;
    for (int64_t i = 0; i < count; i++) {
        const frag_cudnn_descriptor *operation = get_descriptor(graph, GRAPH_OPERATIONS, i);
        if (operation == NULL || operation->type != DESCRIPTOR_MATMUL)
            continue;
        products++;
        if (queries == NULL)
            queries = get_descriptor(operation, MATMUL_A, 0);
    }
    if (products < 4 || queries == NULL)
        return (frag_cudnn_range){0};
    uint64_t elements = 1, dimensions = (uint64_t)get_count(queries, TENSOR_DIMENSIONS);
    for (uint64_t i = 0; i < dimensions; i++)
        elements *= get_dimension(queries, (int64_t)i);
    uint64_t rows = dimensions > 0 ? elements / get_dimension(queries, (int64_t)dimensions - 1) : 0;
    return (frag_cudnn_range){.low_bytes = 0, .high_bytes = 4 * (elements + rows)};
}

static uint64_t graph_size(const frag_cudnn_descriptor *graph, bool may_use_tensor_cores)
{
    for (int64_t i = 0; i < get_count(graph, GRAPH_OPERATIONS); i++) {
        const frag_cudnn_descriptor *operation = get_descriptor(graph, GRAPH_OPERATIONS, i);
        for (size_t k = 0; k < sizeof convolution_names / sizeof *convolution_names; k++) {
            if (operation == NULL || operation->type != convolution_names[k].type)
                continue;
            char what[64];
            snprintf(what, sizeof what, "workspace of a convolution, %s",
                     frag_cudnn_pass_name(convolution_names[k].pass));
            return frag_cudnn_choose(
                "cudnnBackendGetAttribute", what,
                convolution_size(operation, &convolution_names[k], may_use_tensor_cores));
        }
    }
    return frag_cudnn_choose("cudnnBackendGetAttribute", "workspace of attention, backward",
                             attention_size(graph));
}

/* Once for each plan or configuration, so that it does not change between two questions. */
static uint64_t get_size(frag_cudnn_descriptor *descriptor,
                         const frag_cudnn_descriptor *configuration)
{
    const frag_cudnn_descriptor *engine = get_descriptor(configuration, CONFIGURATION_ENGINE, 0);
    if (!descriptor->has_size) {
        descriptor->size_bytes = graph_size(get_descriptor(engine, ENGINE_GRAPH, 0),
                                            get_number(engine, ENGINE_INDEX, 0) == 1);
        descriptor->has_size = true;
    }
    return descriptor->size_bytes;
}

/* ---- the interface */

FRAG_CUDNN_CALL(int, cudnnBackendCreateDescriptor, (int type, frag_cudnn_descriptor **descriptor))
{
    int status = frag_cudnn_make((void **)descriptor, FRAG_CUDNN_BACKEND, sizeof **descriptor);
    if (status != FRAG_CUDNN_SUCCESS)
        return status;
    (*descriptor)->type = type;
    (*descriptor)->reference_count = 1;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnBackendDestroyDescriptor, (frag_cudnn_descriptor * descriptor))
{
    if (descriptor != NULL && !frag_cudnn_is(descriptor, FRAG_CUDNN_BACKEND))
        return FRAG_CUDNN_BAD_PARAM;
    drop(descriptor);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnBackendInitialize, (frag_cudnn_descriptor * descriptor))
{
    return frag_cudnn_is(descriptor, FRAG_CUDNN_BACKEND) ? FRAG_CUDNN_SUCCESS
                                                         : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnBackendFinalize, (frag_cudnn_descriptor * descriptor))
{
    if (!frag_cudnn_is(descriptor, FRAG_CUDNN_BACKEND))
        return FRAG_CUDNN_BAD_PARAM;
    if (descriptor->type == DESCRIPTOR_ENGINE &&
        get_number(descriptor, ENGINE_INDEX, 0) >= ENGINE_COUNT)
        return FRAG_CUDNN_NOT_SUPPORTED;
    descriptor->is_finalized = true;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnBackendSetAttribute,
                (frag_cudnn_descriptor * descriptor, int name, int type, int64_t count,
                 const void *values))
{
    if (!frag_cudnn_is(descriptor, FRAG_CUDNN_BACKEND) || count < 0 || count > INT32_MAX)
        return FRAG_CUDNN_BAD_PARAM;
    if (values == NULL && count > 0)
        return FRAG_CUDNN_NULL_POINTER;
    if (type == TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++) {
            const void *value = ((void *const *)values)[i];
            if (value != NULL && !frag_cudnn_is(value, FRAG_CUDNN_BACKEND))
                return FRAG_CUDNN_BAD_PARAM;
        }
    return set(descriptor, name, type, count, values) ? FRAG_CUDNN_SUCCESS
                                                      : FRAG_CUDNN_HOST_ALLOCATION_FAILED;
}

/* to becomes what from is; false: there is no host memory. */
static bool assign(frag_cudnn_descriptor *to, const frag_cudnn_descriptor *from)
{
    if (to == from)
        return true;
    clear(to);
    to->is_finalized = from->is_finalized;
    for (const frag_cudnn_attribute *a = from->attributes; a != NULL; a = a->next)
        if (!set(to, a->name, a->type, a->count, a->values))
            return false;
    return true;
}

/* Writes count values, as many as are wanted, and nothing beyond: callers name the number that
 * there could be and have room for the number that there are. Where there is none and one was
 * wanted, it is 0. Descriptors were made by the caller and are filled. */
static int give(int type, int64_t count, const void *values, int64_t wanted, int64_t *found,
                void *room)
{
    if (found != NULL)
        *found = count;
    if (room == NULL || wanted <= 0)
        return FRAG_CUDNN_SUCCESS;
    int64_t given = count < wanted ? count : wanted;
    if (type == TYPE_BACKEND_DESCRIPTOR) {
        frag_cudnn_descriptor *const *from = values;
        frag_cudnn_descriptor *const *to = room;
        for (int64_t i = 0; i < given; i++)
            if (to[i] != NULL && from[i] != NULL && !assign(to[i], from[i]))
                return FRAG_CUDNN_HOST_ALLOCATION_FAILED;
        return FRAG_CUDNN_SUCCESS;
    }
    size_t bytes = type_bytes(type);
    if (given > 0)
        memcpy(room, values, (size_t)given * bytes);
    else if (wanted == 1)
        memset(room, 0, bytes);
    return FRAG_CUDNN_SUCCESS;
}

/* The configurations that the heuristics suggest for a graph: one for each engine, the one with
 * tensor cores first. */
static int give_configurations(const frag_cudnn_descriptor *heuristics, int64_t wanted,
                               int64_t *found, frag_cudnn_descriptor *const *room)
{
    const frag_cudnn_attribute *graph = find(heuristics, HEURISTICS_GRAPH);
    if (found != NULL)
        *found = room != NULL && wanted > 0 && wanted < ENGINE_COUNT ? wanted : ENGINE_COUNT;
    for (int64_t i = 0; room != NULL && i < wanted && i < ENGINE_COUNT; i++) {
        frag_cudnn_descriptor *engine = NULL;
        int64_t index = ENGINE_COUNT - 1 - i;
        const int32_t note = NOTE_TENSOR_CORE;
        if (room[i] == NULL)
            return FRAG_CUDNN_NULL_POINTER;
        if (cudnnBackendCreateDescriptor(DESCRIPTOR_ENGINE, &engine) != FRAG_CUDNN_SUCCESS)
            return FRAG_CUDNN_HOST_ALLOCATION_FAILED;
        bool is_set = set(engine, ENGINE_INDEX, 3, 1, &index) &&
                      (index == 0 || set(engine, ENGINE_NUMERICAL_NOTE, 11, 1, &note)) &&
                      (graph == NULL || set(engine, ENGINE_GRAPH, TYPE_BACKEND_DESCRIPTOR,
                                            graph->count, graph->values)) &&
                      set(room[i], CONFIGURATION_ENGINE, TYPE_BACKEND_DESCRIPTOR, 1, &engine);
        engine->is_finalized = true;
        room[i]->is_finalized = true;
        drop(engine);
        if (!is_set)
            return FRAG_CUDNN_HOST_ALLOCATION_FAILED;
    }
    return FRAG_CUDNN_SUCCESS;
}

static int give_json(const frag_cudnn_descriptor *plan, int64_t wanted, int64_t *found, void *room)
{
    char text[64];
    const frag_cudnn_descriptor *engine =
        get_descriptor(get_descriptor(plan, PLAN_CONFIGURATION, 0), CONFIGURATION_ENGINE, 0);
    int length =
        snprintf(text, sizeof text, "{\"engine\":%d}", (int)get_number(engine, ENGINE_INDEX, 0));
    return give(24, length + 1, text, wanted, found, room);
}

FRAG_CUDNN_CALL(int, cudnnBackendGetAttribute,
                (frag_cudnn_descriptor * descriptor, int name, int type, int64_t wanted,
                 int64_t *found, void *room))
{
    static const int64_t one = 1, zero = 0;
    if (!frag_cudnn_is(descriptor, FRAG_CUDNN_BACKEND) || wanted < 0) {
        give(type, 0, &zero, wanted, found, type == TYPE_BACKEND_DESCRIPTOR ? NULL : room);
        return FRAG_CUDNN_BAD_PARAM;
    }
    const frag_cudnn_attribute *attribute = find(descriptor, name);
    if (attribute != NULL && name != PLAN_WORKSPACE_SIZE)
        return give(attribute->type, attribute->count, attribute->values, wanted, found, room);
    int64_t bytes;
    switch (name) {
    case HEURISTICS_RESULTS:
        return give_configurations(descriptor, wanted, found, room);
    case PLAN_WORKSPACE_SIZE:
        bytes = (int64_t)get_size(descriptor, get_descriptor(descriptor, PLAN_CONFIGURATION, 0));
        return give(type, 1, &bytes, wanted, found, room);
    case CONFIGURATION_WORKSPACE_SIZE:
        bytes = (int64_t)get_size(descriptor, descriptor);
        return give(type, 1, &bytes, wanted, found, room);
    case PLAN_JSON:
        return give_json(descriptor, wanted, found, room);
    case GRAPH_ENGINE_COUNT:
        bytes = ENGINE_COUNT;
        return give(type, 1, &bytes, wanted, found, room);
    case GRAPH_IS_SAME_TOPOLOGY:
        return give(type, 1, &one, wanted, found, room);
    case CONFIGURATION_SHARED_MEMORY_USED:
        return give(type, 1, &zero, wanted, found, room);
    default:
        return give(type, 0, &zero, wanted, found, room);
    }
}

FRAG_CUDNN_CALL(int, cudnnBackendExecute,
                (frag_cudnn_handle * handle, frag_cudnn_descriptor *plan,
                 frag_cudnn_descriptor *variant_pack))
{
    bool is_right = frag_cudnn_is(handle, FRAG_CUDNN_HANDLE) &&
                    frag_cudnn_is(plan, FRAG_CUDNN_BACKEND) &&
                    frag_cudnn_is(variant_pack, FRAG_CUDNN_BACKEND);
    return is_right ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnBackendPopulateCudaGraph,
                (frag_cudnn_handle * handle, frag_cudnn_descriptor *plan,
                 frag_cudnn_descriptor *variant_pack, void *graph))
{
    (void)graph;
    return cudnnBackendExecute(handle, plan, variant_pack);
}

FRAG_CUDNN_CALL(int, cudnnBackendUpdateCudaGraph,
                (frag_cudnn_handle * handle, frag_cudnn_descriptor *plan,
                 frag_cudnn_descriptor *variant_pack, void *graph))
{
    (void)graph;
    return cudnnBackendExecute(handle, plan, variant_pack);
}
