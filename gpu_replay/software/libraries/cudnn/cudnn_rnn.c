/* Recurrent networks: where each weight lies, and how much room a pass takes.
 *
 * The weights of all pseudo-layers (layers times directions) come first, for each the matrices of
 * the input, then the recurrent ones, then the projection; then the biases in the same order.
 * Nothing lies between them, so the whole is the sum of its parts, as PyTorch's check of its views
 * wants it. */
#include "gpu_replay/software/libraries/cudnn/cudnn_types.h"

#include <stdlib.h>
#include <string.h>

enum { MODE_RELU, MODE_TANH, MODE_LSTM, MODE_GRU };
enum { BIAS_NONE, BIAS_INPUT, BIAS_DOUBLE, BIAS_RECURRENT };
enum { INPUT_LINEAR, INPUT_SKIP };
enum { FORWARD_INFERENCE, FORWARD_TRAINING };
#define PROJECTION_ID 8

typedef struct frag_cudnn_rnn {
    frag_cudnn_kind kind;
    int algorithm, cell_mode, bias_mode, direction_mode, input_mode;
    int data_type, math_precision, math_type;
    int input_size, hidden_size, projection_size, layer_count;
    void *dropout;
    uint32_t flags;
    int padding_mode, clip_mode, clip_propagation;
    double clip_low, clip_high;
} frag_cudnn_rnn;

typedef struct frag_cudnn_rnn_data {
    frag_cudnn_kind kind;
    int data_type, layout, step_count, batch_count, vector_size;
    int *lengths;
    unsigned char padding[8];
} frag_cudnn_rnn_data;

static int gate_count(const frag_cudnn_rnn *rnn)
{
    return rnn->cell_mode == MODE_LSTM ? 4 : rnn->cell_mode == MODE_GRU ? 3 : 1;
}

static int direction_count(const frag_cudnn_rnn *rnn)
{
    return rnn->direction_mode == 1 ? 2 : 1;
}

static int output_size(const frag_cudnn_rnn *rnn)
{
    return rnn->projection_size > 0 ? rnn->projection_size : rnn->hidden_size;
}

typedef struct frag_cudnn_matrix {
    uint64_t rows, columns;
} frag_cudnn_matrix;

/* No rows: that pseudo-layer has no such matrix. */
static frag_cudnn_matrix get_matrix(const frag_cudnn_rnn *rnn, int pseudo_layer, int id)
{
    int gates = gate_count(rnn);
    uint64_t hidden = (uint64_t)rnn->hidden_size, output = (uint64_t)output_size(rnn);
    bool is_first = pseudo_layer < direction_count(rnn);
    if (id == PROJECTION_ID && output != hidden)
        return (frag_cudnn_matrix){output, hidden};
    if (id < 0 || id >= 2 * gates)
        return (frag_cudnn_matrix){0, 0};
    if (id >= gates)
        return (frag_cudnn_matrix){hidden, output};
    if (!is_first)
        return (frag_cudnn_matrix){hidden, output * (uint64_t)direction_count(rnn)};
    if (rnn->input_mode == INPUT_SKIP)
        return (frag_cudnn_matrix){0, 0};
    return (frag_cudnn_matrix){hidden, (uint64_t)rnn->input_size};
}

static uint64_t bias_rows(const frag_cudnn_rnn *rnn, int id)
{
    int gates = gate_count(rnn);
    bool is_input = id >= 0 && id < gates, is_recurrent = id >= gates && id < 2 * gates;
    bool is_there =
        (is_input && (rnn->bias_mode == BIAS_DOUBLE || rnn->bias_mode == BIAS_INPUT)) ||
        (is_recurrent && (rnn->bias_mode == BIAS_DOUBLE || rnn->bias_mode == BIAS_RECURRENT));
    return is_there ? (uint64_t)rnn->hidden_size : 0;
}

/* Elements before the matrix (or bias) of that pseudo-layer and id; with ids out of range, of all
 * that come before the pseudo-layer. */
static uint64_t elements_before(const frag_cudnn_rnn *rnn, bool is_bias, int pseudo_layer, int id)
{
    uint64_t elements = 0;
    for (int layer = 0; layer <= pseudo_layer; layer++) {
        for (int i = 0; i <= PROJECTION_ID; i++) {
            if (layer == pseudo_layer && i >= id)
                break;
            frag_cudnn_matrix matrix = get_matrix(rnn, layer, i);
            elements += is_bias ? bias_rows(rnn, i) : matrix.rows * matrix.columns;
        }
    }
    return elements;
}

static int pseudo_layer_count(const frag_cudnn_rnn *rnn)
{
    return rnn->layer_count * direction_count(rnn);
}

static uint64_t matrix_elements(const frag_cudnn_rnn *rnn)
{
    return elements_before(rnn, false, pseudo_layer_count(rnn), 0);
}

FRAG_CUDNN_CALL(int, cudnnCreateRNNDescriptor, (frag_cudnn_rnn * *rnn))
{
    return frag_cudnn_make((void **)rnn, FRAG_CUDNN_RNN, sizeof **rnn);
}

FRAG_CUDNN_CALL(int, cudnnDestroyRNNDescriptor, (frag_cudnn_rnn * rnn))
{
    return frag_cudnn_end(rnn, FRAG_CUDNN_RNN);
}

FRAG_CUDNN_CALL(int, cudnnSetRNNDescriptor_v8,
                (frag_cudnn_rnn * rnn, int algorithm, int cell_mode, int bias_mode,
                 int direction_mode, int input_mode, int data_type, int math_precision,
                 int math_type, int32_t input_size, int32_t hidden_size, int32_t projection_size,
                 int32_t layer_count, void *dropout, uint32_t flags))
{
    if (!frag_cudnn_is(rnn, FRAG_CUDNN_RNN) || cell_mode < 0 || cell_mode > MODE_GRU ||
        input_size < 0 || hidden_size < 1 || projection_size < 0 || projection_size > hidden_size ||
        layer_count < 1 || frag_cudnn_element_bytes(data_type) == 0)
        return FRAG_CUDNN_BAD_PARAM;
    *rnn = (frag_cudnn_rnn){
        .kind = FRAG_CUDNN_RNN,
        .algorithm = algorithm,
        .cell_mode = cell_mode,
        .bias_mode = bias_mode,
        .direction_mode = direction_mode,
        .input_mode = input_mode,
        .data_type = data_type,
        .math_precision = math_precision,
        .math_type = math_type,
        .input_size = input_size,
        .hidden_size = hidden_size,
        .projection_size = projection_size,
        .layer_count = layer_count,
        .dropout = dropout,
        .flags = flags,
    };
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetRNNDescriptor_v8,
                (const frag_cudnn_rnn *rnn, int *algorithm, int *cell_mode, int *bias_mode,
                 int *direction_mode, int *input_mode, int *data_type, int *math_precision,
                 int *math_type, int32_t *input_size, int32_t *hidden_size,
                 int32_t *projection_size, int32_t *layer_count, void **dropout, uint32_t *flags))
{
    static const frag_cudnn_rnn none;
    bool is_rnn = frag_cudnn_is(rnn, FRAG_CUDNN_RNN);
    if (!is_rnn)
        rnn = &none;
    int *const places[] = {algorithm,  cell_mode,   bias_mode,       direction_mode,
                           input_mode, data_type,   math_precision,  math_type,
                           input_size, hidden_size, projection_size, layer_count};
    const int values[] = {rnn->algorithm,      rnn->cell_mode,       rnn->bias_mode,
                          rnn->direction_mode, rnn->input_mode,      rnn->data_type,
                          rnn->math_precision, rnn->math_type,       rnn->input_size,
                          rnn->hidden_size,    rnn->projection_size, rnn->layer_count};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (places[i] != NULL)
            *places[i] = values[i];
    if (dropout != NULL)
        *dropout = rnn->dropout;
    if (flags != NULL)
        *flags = rnn->flags;
    return is_rnn ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

FRAG_CUDNN_CALL(int, cudnnGetRNNWeightSpaceSize,
                (frag_cudnn_handle * handle, const frag_cudnn_rnn *rnn, size_t *bytes))
{
    (void)handle;
    if (bytes == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *bytes = 0;
    if (!frag_cudnn_is(rnn, FRAG_CUDNN_RNN))
        return FRAG_CUDNN_BAD_PARAM;
    uint64_t elements =
        matrix_elements(rnn) + elements_before(rnn, true, pseudo_layer_count(rnn), 0);
    *bytes = elements * frag_cudnn_element_bytes(rnn->data_type);
    return FRAG_CUDNN_SUCCESS;
}

/* Describes rows x columns at an offset; without rows there is nothing, and no address. */
static void give_weight(const frag_cudnn_rnn *rnn, frag_cudnn_matrix matrix, uint64_t elements,
                        const void *space, frag_cudnn_tensor *tensor, void **address)
{
    int rows = (int)matrix.rows, columns = (int)matrix.columns;
    bool is_there = rows > 0 && columns > 0;
    if (frag_cudnn_is(tensor, FRAG_CUDNN_TENSOR)) {
        *tensor = (frag_cudnn_tensor){.kind = FRAG_CUDNN_TENSOR, .data_type = rnn->data_type};
        if (is_there)
            frag_cudnn_tensor_set(tensor, rnn->data_type, 3, (int[]){1, rows, columns}, NULL);
    }
    if (address != NULL)
        *address =
            is_there
                ? (void *)((uintptr_t)space + elements * frag_cudnn_element_bytes(rnn->data_type))
                : NULL;
}

FRAG_CUDNN_CALL(int, cudnnGetRNNWeightParams,
                (frag_cudnn_handle * handle, const frag_cudnn_rnn *rnn, int32_t pseudo_layer,
                 size_t space_bytes, const void *space, int32_t id, frag_cudnn_tensor *matrix,
                 void **matrix_address, frag_cudnn_tensor *bias, void **bias_address))
{
    (void)handle, (void)space_bytes;
    static const frag_cudnn_rnn no_rnn;
    bool is_rnn = frag_cudnn_is(rnn, FRAG_CUDNN_RNN);
    if (!is_rnn)
        rnn = &no_rnn;
    bool is_known = is_rnn && pseudo_layer >= 0 && pseudo_layer < pseudo_layer_count(rnn) &&
                    id >= 0 && id <= PROJECTION_ID;
    frag_cudnn_matrix none = {0, 0};
    if (!is_known) {
        give_weight(rnn, none, 0, space, matrix, matrix_address);
        give_weight(rnn, none, 0, space, bias, bias_address);
        return FRAG_CUDNN_BAD_PARAM;
    }
    give_weight(rnn, get_matrix(rnn, pseudo_layer, id),
                elements_before(rnn, false, pseudo_layer, id), space, matrix, matrix_address);
    give_weight(rnn, (frag_cudnn_matrix){bias_rows(rnn, id), 1},
                matrix_elements(rnn) + elements_before(rnn, true, pseudo_layer, id), space, bias,
                bias_address);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnCreateRNNDataDescriptor, (frag_cudnn_rnn_data * *data))
{
    return frag_cudnn_make((void **)data, FRAG_CUDNN_RNN_DATA, sizeof **data);
}

FRAG_CUDNN_CALL(int, cudnnDestroyRNNDataDescriptor, (frag_cudnn_rnn_data * data))
{
    if (frag_cudnn_is(data, FRAG_CUDNN_RNN_DATA))
        free(data->lengths);
    return frag_cudnn_end(data, FRAG_CUDNN_RNN_DATA);
}

FRAG_CUDNN_CALL(int, cudnnSetRNNDataDescriptor,
                (frag_cudnn_rnn_data * data, int data_type, int layout, int step_count,
                 int batch_count, int vector_size, const int *lengths, void *padding))
{
    uint64_t element_bytes = frag_cudnn_element_bytes(data_type);
    if (!frag_cudnn_is(data, FRAG_CUDNN_RNN_DATA) || element_bytes == 0 || step_count < 1 ||
        batch_count < 1 || vector_size < 1 || lengths == NULL)
        return FRAG_CUDNN_BAD_PARAM;
    int *copy = malloc((size_t)batch_count * sizeof *copy);
    if (copy == NULL)
        return FRAG_CUDNN_HOST_ALLOCATION_FAILED;
    memcpy(copy, lengths, (size_t)batch_count * sizeof *copy);
    free(data->lengths);
    *data = (frag_cudnn_rnn_data){
        .kind = FRAG_CUDNN_RNN_DATA,
        .data_type = data_type,
        .layout = layout,
        .step_count = step_count,
        .batch_count = batch_count,
        .vector_size = vector_size,
        .lengths = copy,
    };
    if (padding != NULL)
        memcpy(data->padding, padding, element_bytes < 8 ? element_bytes : 8);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnGetRNNDataDescriptor,
                (const frag_cudnn_rnn_data *data, int *data_type, int *layout, int *step_count,
                 int *batch_count, int *vector_size, int wanted, int *lengths, void *padding))
{
    static const frag_cudnn_rnn_data none;
    bool is_data = frag_cudnn_is(data, FRAG_CUDNN_RNN_DATA);
    if (!is_data)
        data = &none;
    int *const places[] = {data_type, layout, step_count, batch_count, vector_size};
    const int values[] = {data->data_type, data->layout, data->step_count, data->batch_count,
                          data->vector_size};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (places[i] != NULL)
            *places[i] = values[i];
    for (int i = 0; lengths != NULL && i < wanted; i++)
        lengths[i] = i < data->batch_count ? data->lengths[i] : 0;
    if (padding != NULL)
        memcpy(padding, data->padding, frag_cudnn_element_bytes(data->data_type) % 9);
    return is_data ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}

/* What the gates of all steps take in all pseudo-layers. */
static uint64_t gate_bytes(const frag_cudnn_rnn *rnn, const frag_cudnn_rnn_data *input, int gates)
{
    return (uint64_t)input->step_count * (uint64_t)input->batch_count * (uint64_t)rnn->hidden_size *
           (uint64_t)gates * (uint64_t)pseudo_layer_count(rnn) *
           frag_cudnn_element_bytes(rnn->data_type);
}

/* Not measured. Backward needs the gates of every step and what the cell held: that is the least
 * that can be kept. At most it is kept twice, once before and once after the activation. The
 * workspace holds the gates of one layer, at most those of all and their gradients. */
FRAG_CUDNN_CALL(int, cudnnGetRNNTempSpaceSizes,
                (frag_cudnn_handle * handle, const frag_cudnn_rnn *rnn, int forward_mode,
                 const frag_cudnn_rnn_data *input, size_t *workspace_bytes, size_t *reserve_bytes))
{
    (void)handle;
    if (workspace_bytes != NULL)
        *workspace_bytes = 0;
    if (reserve_bytes != NULL)
        *reserve_bytes = 0;
    if (!frag_cudnn_is(rnn, FRAG_CUDNN_RNN) || !frag_cudnn_is(input, FRAG_CUDNN_RNN_DATA))
        return FRAG_CUDNN_BAD_PARAM;
    if (rnn->layer_count < 1 || input->step_count < 1)
        return FRAG_CUDNN_BAD_PARAM;
    int gates = gate_count(rnn), kept = rnn->cell_mode == MODE_LSTM ? gates + 1 : gates;
    frag_cudnn_range workspace = {gate_bytes(rnn, input, gates) / (uint64_t)rnn->layer_count,
                                  2 * gate_bytes(rnn, input, gates)};
    frag_cudnn_range reserve = {gate_bytes(rnn, input, kept), 2 * gate_bytes(rnn, input, kept)};
    if (workspace_bytes != NULL)
        *workspace_bytes = frag_cudnn_choose("cudnnGetRNNTempSpaceSizes",
                                             "workspace of a recurrent network", workspace);
    if (reserve_bytes != NULL && forward_mode == FORWARD_TRAINING)
        *reserve_bytes = frag_cudnn_choose("cudnnGetRNNTempSpaceSizes",
                                           "reserve of a recurrent network", reserve);
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnRNNSetClip_v8,
                (frag_cudnn_rnn * rnn, int mode, int propagation, double low, double high))
{
    if (!frag_cudnn_is(rnn, FRAG_CUDNN_RNN))
        return FRAG_CUDNN_BAD_PARAM;
    rnn->clip_mode = mode;
    rnn->clip_propagation = propagation;
    rnn->clip_low = low;
    rnn->clip_high = high;
    return FRAG_CUDNN_SUCCESS;
}

FRAG_CUDNN_CALL(int, cudnnRNNGetClip_v8,
                (const frag_cudnn_rnn *rnn, int *mode, int *propagation, double *low, double *high))
{
    static const frag_cudnn_rnn none;
    bool is_rnn = frag_cudnn_is(rnn, FRAG_CUDNN_RNN);
    if (!is_rnn)
        rnn = &none;
    if (mode == NULL || propagation == NULL || low == NULL || high == NULL)
        return FRAG_CUDNN_NULL_POINTER;
    *mode = rnn->clip_mode, *propagation = rnn->clip_propagation;
    *low = rnn->clip_low, *high = rnn->clip_high;
    return is_rnn ? FRAG_CUDNN_SUCCESS : FRAG_CUDNN_BAD_PARAM;
}
