/* The stand-in of cuDNN: what was set is given back, dimensions are the real ones, weights lie
 * where they should, sizes follow the recording that sim/device/convolution_workspace.c names, and
 * nothing is left unwritten. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

#define PATTERN 0x5a5a5a5a
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { FLOAT = 0, HALF = 2, LSTM = 2, BAD_PARAM = 2000 };
enum { DESCRIPTOR = 15, INT64 = 3, INT = 1, NOTE = 11 };

typedef int make_call(void **);
typedef int end_call(void *);

static void *library;
static void *handle;

static struct {
    size_t (*version)(void);
    int (*property)(int, int *);
    make_call *create, *create_tensor, *create_filter, *create_convolution, *create_pooling;
    make_call *create_rnn, *create_data;
    end_call *end_tensor, *end_convolution, *end_rnn;
    int (*set_tensor)(void *, int, int, const int *, const int *);
    int (*get_tensor)(const void *, int, int *, int *, int *, int *);
    int (*set_filter)(void *, int, int, int, const int *);
    int (*set_convolution)(void *, int, const int *, const int *, const int *, int, int);
    int (*set_groups)(void *, int);
    int (*output)(const void *, const void *, const void *, int, int *);
    int (*forward_size)(void *, void *, void *, void *, void *, int, size_t *);
    int (*data_size)(void *, void *, void *, void *, void *, int, size_t *);
    int (*forward_algorithm)(void *, void *, void *, void *, void *, int, int *, void *);
    int (*set_pooling)(void *, int, int, int, const int *, const int *, const int *);
    int (*pooling_output)(const void *, const void *, int, int *);
    int (*set_rnn)(void *, int, int, int, int, int, int, int, int, int, int, int, int, void *,
                   unsigned);
    int (*weight_space)(void *, void *, size_t *);
    int (*weight)(void *, void *, int, size_t, const void *, int, void *, void **, void *, void **);
    int (*set_data)(void *, int, int, int, int, int, const int *, void *);
    int (*temporary)(void *, void *, int, void *, size_t *, size_t *);
    int (*backend_create)(int, void **);
    int (*backend_end)(void *);
    int (*backend_set)(void *, int, int, int64_t, const void *);
    int (*backend_get)(void *, int, int, int64_t, int64_t *, void *);
    int (*backend_finalize)(void *);
} cudnn;

static void find_all(void)
{
    const struct {
        const char *name;
        void *field;
    } functions[] = {
        {"cudnnGetVersion", &cudnn.version},
        {"cudnnGetProperty", &cudnn.property},
        {"cudnnCreate", &cudnn.create},
        {"cudnnCreateTensorDescriptor", &cudnn.create_tensor},
        {"cudnnCreateFilterDescriptor", &cudnn.create_filter},
        {"cudnnCreateConvolutionDescriptor", &cudnn.create_convolution},
        {"cudnnCreatePoolingDescriptor", &cudnn.create_pooling},
        {"cudnnCreateRNNDescriptor", &cudnn.create_rnn},
        {"cudnnCreateRNNDataDescriptor", &cudnn.create_data},
        {"cudnnDestroyTensorDescriptor", &cudnn.end_tensor},
        {"cudnnDestroyConvolutionDescriptor", &cudnn.end_convolution},
        {"cudnnDestroyRNNDescriptor", &cudnn.end_rnn},
        {"cudnnSetTensorNdDescriptor", &cudnn.set_tensor},
        {"cudnnGetTensorNdDescriptor", &cudnn.get_tensor},
        {"cudnnSetFilterNdDescriptor", &cudnn.set_filter},
        {"cudnnSetConvolutionNdDescriptor", &cudnn.set_convolution},
        {"cudnnSetConvolutionGroupCount", &cudnn.set_groups},
        {"cudnnGetConvolutionNdForwardOutputDim", &cudnn.output},
        {"cudnnGetConvolutionForwardWorkspaceSize", &cudnn.forward_size},
        {"cudnnGetConvolutionBackwardDataWorkspaceSize", &cudnn.data_size},
        {"cudnnGetConvolutionForwardAlgorithm_v7", &cudnn.forward_algorithm},
        {"cudnnSetPoolingNdDescriptor", &cudnn.set_pooling},
        {"cudnnGetPoolingNdForwardOutputDim", &cudnn.pooling_output},
        {"cudnnSetRNNDescriptor_v8", &cudnn.set_rnn},
        {"cudnnGetRNNWeightSpaceSize", &cudnn.weight_space},
        {"cudnnGetRNNWeightParams", &cudnn.weight},
        {"cudnnSetRNNDataDescriptor", &cudnn.set_data},
        {"cudnnGetRNNTempSpaceSizes", &cudnn.temporary},
        {"cudnnBackendCreateDescriptor", &cudnn.backend_create},
        {"cudnnBackendDestroyDescriptor", &cudnn.backend_end},
        {"cudnnBackendSetAttribute", &cudnn.backend_set},
        {"cudnnBackendGetAttribute", &cudnn.backend_get},
        {"cudnnBackendFinalize", &cudnn.backend_finalize},
    };
    for (size_t i = 0; i < COUNT(functions); i++)
        software_find(library, functions[i].name, functions[i].field);
}

static int load_cudnn(void **state)
{
    char folder[4096], path[4200];
    (void)state;
    setenv("FRAGLAB_SOFTWARE_CUDNN", "9.10.2.21", 1);
    software_load_all();
    cuda_entries_software_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/12/libcudnn.so.9", folder);
    library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        fail_msg("%s", dlerror());
    find_all();
    software_start("compute-capability=7.5");
    return cudnn.create(&handle);
}

/* Descriptors stay until the end of the program, where a leak checker sees them. */
static void *kept[64];
static size_t kept_count;

static void *make(make_call *call)
{
    void *made = NULL;
    assert_int_equal(call(&made), 0);
    assert_non_null(made);
    assert_true(kept_count < COUNT(kept));
    kept[kept_count++] = made;
    return made;
}

static void *make_tensor(int type, int n, int c, int h, int w)
{
    void *tensor = make(cudnn.create_tensor);
    int dimensions[] = {n, c, h, w}, strides[] = {c * h * w, h * w, w, 1};
    assert_int_equal(cudnn.set_tensor(tensor, type, 4, dimensions, strides), 0);
    return tensor;
}

static void *make_filter(int type, int k, int c, int h, int w)
{
    void *filter = make(cudnn.create_filter);
    assert_int_equal(cudnn.set_filter(filter, type, 0, 4, (int[]){k, c, h, w}), 0);
    return filter;
}

static void *make_convolution(int pad, int stride, int dilation)
{
    void *convolution = make(cudnn.create_convolution);
    int pads[] = {pad, pad}, strides[] = {stride, stride}, dilations[] = {dilation, dilation};
    assert_int_equal(cudnn.set_convolution(convolution, 2, pads, strides, dilations, 1, FLOAT), 0);
    return convolution;
}

static void says_the_version_that_was_set(void **state)
{
    int value = PATTERN;
    (void)state;
    assert_int_equal(cudnn.version(), 91002);
    assert_int_equal(cudnn.property(1, &value), 0);
    assert_int_equal(value, 10);
    value = PATTERN;
    assert_int_not_equal(cudnn.property(7, &value), 0);
    assert_int_equal(value, 0);
}

static void gives_back_what_was_set(void **state)
{
    int type = PATTERN, count = PATTERN, dimensions[6], strides[6];
    (void)state;
    memset(dimensions, 0x5a, sizeof dimensions);
    memset(strides, 0x5a, sizeof strides);
    void *tensor = make_tensor(HALF, 2, 3, 5, 7);
    assert_int_equal(cudnn.get_tensor(tensor, 5, &type, &count, dimensions, strides), 0);
    assert_int_equal(type, HALF);
    assert_int_equal(count, 4);
    assert_memory_equal(dimensions, ((int[]){2, 3, 5, 7, 0, PATTERN}), sizeof dimensions);
    assert_memory_equal(strides, ((int[]){105, 35, 7, 1, 0, PATTERN}), sizeof strides);
    assert_int_not_equal(
        cudnn.set_tensor(tensor, FLOAT, 9, (int[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, dimensions), 0);
    assert_int_equal(cudnn.end_tensor(tensor), 0);
}

static void refuses_what_is_no_descriptor_and_writes_zeros(void **state)
{
    uint64_t other[64] = {0};
    int type = PATTERN, count = PATTERN, dimensions[2] = {PATTERN, PATTERN};
    size_t bytes = PATTERN;
    (void)state;
    assert_int_not_equal(cudnn.get_tensor(other, 2, &type, &count, dimensions, dimensions), 0);
    assert_int_equal(type | count | dimensions[0] | dimensions[1], 0);
    assert_int_not_equal(cudnn.forward_size(handle, other, other, other, other, 0, &bytes), 0);
    assert_int_equal(bytes, 0);
    bytes = PATTERN;
    assert_int_not_equal(cudnn.weight_space(handle, other, &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_int_not_equal(cudnn.end_rnn(make(cudnn.create_tensor)), 0);
}

static void computes_dimensions_of_outputs(void **state)
{
    int dimensions[4] = {PATTERN, PATTERN, PATTERN, PATTERN};
    (void)state;
    void *input = make_tensor(FLOAT, 8, 3, 224, 225), *filter = make_filter(FLOAT, 64, 3, 7, 7);
    assert_int_equal(cudnn.output(make_convolution(3, 2, 1), input, filter, 4, dimensions), 0);
    assert_memory_equal(dimensions, ((int[]){8, 64, 112, 113}), sizeof dimensions);
    assert_int_equal(cudnn.output(make_convolution(0, 1, 4), input, filter, 4, dimensions), 0);
    assert_memory_equal(dimensions, ((int[]){8, 64, 200, 201}), sizeof dimensions);
    void *pooling = make(cudnn.create_pooling);
    assert_int_equal(
        cudnn.set_pooling(pooling, 0, 0, 2, (int[]){3, 3}, (int[]){1, 0}, (int[]){2, 2}), 0);
    assert_int_equal(cudnn.pooling_output(pooling, input, 4, dimensions), 0);
    assert_memory_equal(dimensions, ((int[]){8, 3, 112, 112}), sizeof dimensions);
}

/* A size is changed within its block of 512 so that it can be recognised. */
static void assert_same_block(uint64_t bytes, uint64_t wanted)
{
    if ((bytes + 511) / 512 != (wanted + 511) / 512)
        fail_msg("%llu bytes, not %llu", (unsigned long long)bytes, (unsigned long long)wanted);
}

static void takes_the_workspaces_of_the_recording(void **state)
{
    static const struct {
        int in, out, side;
        uint64_t forward, backward;
    } layers[] = {
        {30, 16, 256, 82880, 50168}, {16, 32, 128, 51328, 84032}, {32, 64, 64, 205056, 204928}};
    (void)state;
    software_start("compute-capability=7.5");
    for (size_t i = 0; i < COUNT(layers); i++) {
        int side = layers[i].side;
        void *input = make_tensor(FLOAT, 1, layers[i].in, side, side);
        void *output = make_tensor(FLOAT, 1, layers[i].out, side, side);
        void *filter = make_filter(FLOAT, layers[i].out, layers[i].in, 3, 3);
        void *convolution = make_convolution(1, 1, 1);
        size_t bytes = PATTERN;
        assert_int_equal(cudnn.forward_size(handle, input, filter, convolution, output, 1, &bytes),
                         0);
        assert_same_block(bytes, layers[i].forward);
        assert_int_equal(cudnn.data_size(handle, filter, output, convolution, input, 1, &bytes), 0);
        assert_same_block(bytes, layers[i].backward);
    }
}

static void answers_the_low_end_when_told(void **state)
{
    size_t bytes = PATTERN;
    unsigned char results[3 * 48];
    int found = PATTERN;
    (void)state;
    software_start("compute-capability=8.0,workspaces=low");
    void *input = make_tensor(HALF, 4, 64, 56, 56), *filter = make_filter(HALF, 64, 64, 3, 3);
    void *convolution = make_convolution(1, 1, 1);
    assert_int_equal(cudnn.forward_size(handle, input, filter, convolution, input, 1, &bytes), 0);
    assert_int_equal(bytes, 0);
    memset(results, 0x5a, sizeof results);
    assert_int_equal(
        cudnn.forward_algorithm(handle, input, filter, convolution, input, 3, &found, results), 0);
    assert_int_equal(found, 1);
    for (size_t i = 48; i < sizeof results; i++)
        assert_int_equal(results[i], 0);
}

/* Every element of the weights belongs to one matrix or bias, and to one only. */
static void lays_weights_without_gap_or_overlap(void **state)
{
    enum { INPUT = 5, HIDDEN = 6, PROJECTION = 3, LAYERS = 2, PSEUDO_LAYERS = 4 };
    char owned[16384] = {0};
    size_t bytes = PATTERN;
    (void)state;
    void *rnn = make(cudnn.create_rnn);
    void *matrix = make(cudnn.create_tensor), *bias = make(cudnn.create_tensor);
    assert_int_equal(cudnn.set_rnn(rnn, 0, LSTM, 2, 1, 0, FLOAT, FLOAT, 0, INPUT, HIDDEN,
                                   PROJECTION, LAYERS, NULL, 0),
                     0);
    assert_int_equal(cudnn.weight_space(handle, rnn, &bytes), 0);
    assert_true(bytes <= sizeof owned);
    for (int layer = 0; layer < PSEUDO_LAYERS; layer++)
        for (int id = 0; id <= 8; id++) {
            void *address[2] = {&bytes, &bytes};
            assert_int_equal(cudnn.weight(handle, rnn, layer, bytes, owned, id, matrix, &address[0],
                                          bias, &address[1]),
                             0);
            for (int part = 0; part < 2; part++) {
                int type, count, d[3], s[3];
                assert_int_equal(cudnn.get_tensor(part ? bias : matrix, 3, &type, &count, d, s), 0);
                assert_int_equal(address[part] == NULL, count == 0);
                for (int i = 0; i < 4 * d[0] * d[1] * d[2]; i++)
                    assert_int_equal(((char *)address[part])[i]++, 0);
            }
        }
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(owned[i], 1);
    /* Gates x hidden x (input or output of both directions, output) and biases and projections. */
    assert_int_equal(bytes, 4 * 2 * (4 * 6 * (5 + 3) + 3 * 6 + 48 + 4 * 6 * (6 + 3) + 3 * 6 + 48));
    assert_int_not_equal(cudnn.weight(handle, rnn, PSEUDO_LAYERS, bytes, owned, 0, matrix,
                                      &(void *){owned}, bias, &(void *){owned}),
                         0);
}

static void keeps_nothing_of_a_recurrent_network_in_inference(void **state)
{
    size_t workspace = PATTERN, reserve = PATTERN;
    (void)state;
    software_start("");
    void *rnn = make(cudnn.create_rnn), *data = make(cudnn.create_data);
    assert_int_equal(cudnn.set_rnn(rnn, 0, LSTM, 2, 0, 0, FLOAT, FLOAT, 0, 32, 64, 0, 1, NULL, 0),
                     0);
    assert_int_equal(cudnn.set_data(data, FLOAT, 0, 10, 2, 32, (int[]){10, 7}, NULL), 0);
    assert_int_equal(cudnn.temporary(handle, rnn, 0, data, &workspace, &reserve), 0);
    assert_int_equal(reserve, 0);
    assert_int_equal(cudnn.temporary(handle, rnn, 1, data, &workspace, &reserve), 0);
    assert_true(reserve >= 10 * 2 * 64 * 5 * 4);
    assert_true(workspace > 0);
}

static void *make_backend(int type)
{
    void *made = NULL;
    assert_int_equal(cudnn.backend_create(type, &made), 0);
    return made;
}

static void set(void *descriptor, int name, int type, int64_t count, const void *values)
{
    assert_int_equal(cudnn.backend_set(descriptor, name, type, count, values), 0);
}

/* The descriptor of a convolution's graph, as a frontend builds it: what it consists of is given up
 * by its maker before it is used. */
static void *make_graph(int64_t batch, int64_t in, int64_t out, int64_t side)
{
    enum { TENSOR = 17, CONVOLUTION = 1, FORWARD = 10, GRAPH = 15 };
    const int64_t shapes[3][4] = {
        {batch, in, side, side}, {out, in, 3, 3}, {batch, out, side, side}};
    static const int names[] = {704, 703, 705};
    const int64_t ones[] = {1, 1};
    const int32_t type = FLOAT;
    void *operation = make_backend(FORWARD), *convolution = make_backend(CONVOLUTION);
    set(convolution, 102, INT64, 2, ones);
    set(convolution, 103, INT64, 2, ones);
    set(operation, 702, DESCRIPTOR, 1, &convolution);
    assert_int_equal(cudnn.backend_end(convolution), 0);
    for (int i = 0; i < 3; i++) {
        const int64_t *d = shapes[i];
        const int64_t strides[] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
        void *tensor = make_backend(TENSOR);
        set(tensor, 901, INT, 1, &type);
        set(tensor, 902, INT64, 4, d);
        set(tensor, 903, INT64, 4, strides);
        set(operation, names[i], DESCRIPTOR, 1, &tensor);
        assert_int_equal(cudnn.backend_end(tensor), 0);
    }
    void *graph = make_backend(GRAPH);
    set(graph, 801, DESCRIPTOR, 1, &operation);
    assert_int_equal(cudnn.backend_end(operation), 0);
    return graph;
}

/* The workspace of the i-th plan that the heuristics suggest, and whether it uses tensor cores. */
static int64_t plan_size(void *graph, int i, bool *uses_tensor_cores)
{
    int64_t found = PATTERN, again = PATTERN, bytes = PATTERN;
    void *configurations[3] = {make_backend(3), make_backend(3), make_backend(3)};
    void *heuristics = make_backend(4), *engine = make_backend(2), *plan = make_backend(5);
    int32_t notes[2] = {PATTERN, PATTERN};
    set(heuristics, 201, DESCRIPTOR, 1, &graph);
    assert_int_equal(cudnn.backend_finalize(heuristics), 0);
    assert_int_equal(cudnn.backend_get(heuristics, 202, DESCRIPTOR, 0, &found, NULL), 0);
    assert_int_equal(found, 2);
    assert_int_equal(cudnn.backend_get(heuristics, 202, DESCRIPTOR, 3, &found, configurations), 0);
    assert_int_equal(found, 2);
    assert_int_equal(cudnn.backend_end(heuristics), 0);
    assert_int_equal(cudnn.backend_get(configurations[i], 300, DESCRIPTOR, 1, &found, &engine), 0);
    /* More notes may be asked for than there is room for; what there is not, is not written. */
    assert_int_equal(cudnn.backend_get(engine, 1303, NOTE, 10, &found, notes), 0);
    assert_int_equal(notes[1], PATTERN);
    assert_int_equal(notes[0], found == 0 ? PATTERN : 0);
    *uses_tensor_cores = found == 1;
    set(plan, 401, DESCRIPTOR, 1, &configurations[i]);
    for (int k = 0; k < 3; k++)
        assert_int_equal(cudnn.backend_end(configurations[k]), 0);
    assert_int_equal(cudnn.backend_finalize(plan), 0);
    assert_int_equal(cudnn.backend_get(plan, 402, INT64, 1, &found, &bytes), 0);
    assert_int_equal(cudnn.backend_get(plan, 402, INT64, 1, NULL, &again), 0);
    assert_int_equal(bytes, again);
    assert_int_equal(cudnn.backend_end(plan), 0);
    assert_int_equal(cudnn.backend_end(engine), 0);
    return bytes;
}

static void plans_take_the_same_workspaces(void **state)
{
    bool uses_tensor_cores = false;
    (void)state;
    software_start("compute-capability=7.5");
    void *graph = make_graph(1, 30, 16, 256);
    assert_same_block((uint64_t)plan_size(graph, 0, &uses_tensor_cores), 82880);
    assert_true(uses_tensor_cores);
    software_start("compute-capability=8.0");
    assert_true(plan_size(graph, 0, &uses_tensor_cores) > 256 * 256 * 4 * (32 + 16));
    assert_same_block((uint64_t)plan_size(graph, 1, &uses_tensor_cores), 82880);
    assert_false(uses_tensor_cores);
    assert_int_equal(cudnn.backend_end(graph), 0);
}

static void an_unknown_attribute_is_zero(void **state)
{
    int64_t found = PATTERN;
    int32_t value[2] = {PATTERN, PATTERN};
    (void)state;
    void *engine = make_backend(2);
    assert_int_equal(cudnn.backend_get(engine, 9999, INT, 1, &found, value), 0);
    assert_int_equal(found, 0);
    assert_int_equal(value[0], 0);
    assert_int_equal(value[1], PATTERN);
    assert_int_not_equal(cudnn.backend_set(engine, 1300, DESCRIPTOR, 1, &(void *){value}), 0);
    assert_int_equal(cudnn.backend_end(engine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_the_version_that_was_set),
        cmocka_unit_test(gives_back_what_was_set),
        cmocka_unit_test(refuses_what_is_no_descriptor_and_writes_zeros),
        cmocka_unit_test(computes_dimensions_of_outputs),
        cmocka_unit_test(takes_the_workspaces_of_the_recording),
        cmocka_unit_test(answers_the_low_end_when_told),
        cmocka_unit_test(lays_weights_without_gap_or_overlap),
        cmocka_unit_test(keeps_nothing_of_a_recurrent_network_in_inference),
        cmocka_unit_test(plans_take_the_same_workspaces),
        cmocka_unit_test(an_unknown_attribute_is_zero),
    };
    return cmocka_run_group_tests_name("cudnn", tests, load_cudnn, NULL);
}
