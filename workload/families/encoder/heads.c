/* Heads for classes and answers on the hidden states of encoders, as transformers 5 has them: of a
 * sequence a layer over its first token and one for its classes (BERT's pooler,
 * RobertaClassificationHead and their kin, models/.../modeling_*.py), of tokens one layer. */
#include "workload/families/family.h"

/* What comes between the first token and the classes of a sequence. */
typedef enum activation { TANH, GELU, RELU } activation;

/* What a family does between its hidden states and the layer of the classes. */
typedef struct style {
    uint64_t target; /* of the first layer, by which adapters name it */
    activation activation;
    bool is_whole;  /* both layers are one module, of which beside adapters all is copied */
    bool is_pooler; /* the first layer is in the model below, which returns what it makes besides */
    double before;  /* dropout before the first layer, */
    double behind;  /* and before that of the classes */
} style;

static style sequence_style(const frag_network *of)
{
    const double dropout = of->head_dropout;
    switch (of->family) {
    case FRAG_FAMILY_ROBERTA:
    case FRAG_FAMILY_XLM_ROBERTA:
        return (style){FRAG_LORA_REST, TANH, true, false, dropout, dropout};
    case FRAG_FAMILY_MPNET:
        return (style){FRAG_LORA_REST,      TANH, true, false, of->residual_dropout,
                       of->residual_dropout};
    case FRAG_FAMILY_ELECTRA:
        return (style){FRAG_LORA_REST, GELU, true, false, dropout, dropout};
    case FRAG_FAMILY_DEBERTA_V2:
        return (style){FRAG_LORA_DENSE, GELU, false, false, of->pooler_dropout, dropout};
    case FRAG_FAMILY_DISTILBERT:
        return (style){FRAG_LORA_REST, RELU, false, false, 0, dropout};
    case FRAG_FAMILY_MODERNBERT:
        return (style){FRAG_LORA_DENSE, GELU, false, false, 0, dropout};
    case FRAG_FAMILY_ALBERT:
        return (style){FRAG_LORA_REST, TANH, false, true, 0, dropout};
    default:
        return (style){FRAG_LORA_DENSE, TANH, false, true, 0, dropout};
    }
}

/* Of tokens and answers there is one layer alone, but with ModernBERT. */
static style style_of(const frag_workload *workload)
{
    const frag_network *of = &workload->network;
    style like = sequence_style(of);
    if (workload->head == FRAG_HEAD_SEQUENCE || of->family == FRAG_FAMILY_MODERNBERT)
        return like;
    bool has_own = of->family != FRAG_FAMILY_DISTILBERT && of->family != FRAG_FAMILY_DEBERTA_V2 &&
                   of->family != FRAG_FAMILY_MPNET;
    like.is_whole = like.is_pooler = false;
    like.behind = workload->head == FRAG_HEAD_ANSWER ? of->answer_dropout
                  : has_own                          ? of->head_dropout
                                                     : of->residual_dropout;
    return like;
}

static bool is_modern(const frag_network *of)
{
    return of->family == FRAG_FAMILY_MODERNBERT;
}

/* Has it a layer before that of the classes? */
static bool has_dense(const frag_workload *workload)
{
    return workload->head == FRAG_HEAD_SEQUENCE || is_modern(&workload->network);
}

/* One module with two layers, which beside adapters is copied as a whole. */
static frag_class_head walk_whole(frag_walk *at, frag_shape square, frag_shape classes)
{
    frag_class_head next = {.dense = {.columns = square.rows, .is_flat = true},
                            .classes = {.columns = classes.rows, .is_flat = true}};
    for (uint32_t i = 0; i < 2; i++) {
        frag_tensor (*walk)(frag_walk *, frag_shape) =
            i > 0 ? frag_walk_saved : frag_walk_parameter;
        next.dense.weight = walk(at, square);
        next.dense.bias = walk(at, (frag_shape){0, square.rows});
        next.classes.weight = walk(at, classes);
        next.classes.bias = walk(at, (frag_shape){0, classes.rows});
    }
    return next;
}

frag_class_head frag_walk_class_head(frag_walk *at, const frag_network *of)
{
    const frag_shape square = {of->width, of->width};
    const frag_shape classes = {at->workload->labels, of->width};
    const style like = style_of(at->workload);
    frag_class_head next = {.last = {0, 0}};
    bool is_dense = has_dense(at->workload);
    if (is_dense && like.is_whole && at->workload->lora_rank > 0)
        return walk_whole(at, square, classes);
    /* peft copies what is named "classifier" at its end, which pre_classifier is as well. */
    if (is_dense && of->family == FRAG_FAMILY_DISTILBERT)
        next.dense = frag_walk_classes(at, square, true);
    else if (is_dense)
        next.dense =
            frag_walk_linear(at, square, !is_modern(of) || of->has_dense_bias, like.target);
    if (is_modern(of))
        next.last = frag_walk_norm_with(at, of->width, of->has_norm_bias);
    next.classes = frag_walk_classes(at, classes, true);
    next.dense.is_flat = next.classes.is_flat = at->workload->head == FRAG_HEAD_SEQUENCE;
    next.dense.packed.is_flat = next.dense.is_flat;
    return next;
}

/* hidden[:, 0] */
static frag_tensor take_first(frag_tape *tape, const frag_batch *batch, frag_tensor hidden,
                              uint64_t width)
{
    frag_tensor first = frag_aten_slice(tape, hidden, batch->count * width);
    if (batch->count > 1)
        frag_tape_set_strided(tape, first);
    return first;
}

/* (hidden * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True), of a mask of ones */
static frag_tensor take_mean(frag_tape *tape, const frag_batch *batch, frag_tensor hidden,
                             uint64_t width, frag_tensor *mask)
{
    const uint64_t tokens = batch->tokens;
    *mask = frag_tape_empty(tape, batch->count * tokens, FRAG_BOOL);
    frag_tensor masked = frag_aten_mul(tape, hidden, *mask);
    const frag_reduction over = {batch->count * width, tokens, false,
                                 frag_dtype_bytes(frag_tape_dtype(tape, hidden))};
    frag_tensor sum = frag_aten_sum(tape, masked, &over);
    frag_tape_drop(tape, masked);
    frag_tensor counts = frag_aten_count(tape, batch->count, tokens);
    frag_tensor made = frag_aten_mul(tape, sum, counts);
    frag_tape_drop(tape, counts);
    frag_tape_drop(tape, sum);
    return made;
}

static frag_tensor activate(frag_tape *tape, frag_tensor x, activation by)
{
    return by == TANH   ? frag_aten_tanh(tape, x)
           : by == GELU ? frag_aten_gelu(tape, x)
                        : frag_aten_relu(tape, x);
}

/* activation(dense(dropout(first token))), and ModernBERT's norm. */
static frag_tensor run_dense(frag_tape *tape, const frag_model *model, const frag_class_head *at,
                             frag_tensor x)
{
    const frag_network *of = &model->workload->network;
    const style like = style_of(model->workload);
    frag_tensor input = frag_model_drop_out(tape, model, x, like.before);
    frag_tensor made = frag_walk_apply(tape, input, &at->dense);
    if (like.is_whole) /* x = dense(x) */
        frag_tape_clear(tape, &input);
    frag_tape_set(tape, &made, activate(tape, made, like.activation));
    frag_tape_drop(tape, input);
    if (at->last.weight != 0)
        frag_tape_set(tape, &made, frag_aten_layer_norm(tape, made, &at->last, of->width));
    return made;
}

frag_tensor frag_class_head_pool(frag_tape *tape, const frag_model *model,
                                 const frag_class_head *at, const frag_batch *batch,
                                 frag_tensor hidden)
{
    const frag_network *of = &model->workload->network;
    if (!style_of(model->workload).is_pooler)
        return 0;
    frag_tensor first = take_first(tape, batch, hidden, of->width);
    frag_tensor made = run_dense(tape, model, at, first);
    frag_tape_drop(tape, first);
    return made;
}

/* What goes into the layer of the classes; held: what has a name besides until the loss is there.
 */
static frag_tensor prepare(frag_tape *tape, const frag_model *model, const frag_class_head *at,
                           const frag_batch *batch, const frag_class_input *from,
                           frag_tensor held[2])
{
    const frag_workload *workload = model->workload;
    const frag_network *of = &workload->network;
    held[0] = held[1] = 0;
    frag_tensor made = frag_tape_keep(tape, from->pooled != 0 ? from->pooled : from->hidden);
    if (workload->head == FRAG_HEAD_SEQUENCE && from->pooled == 0) {
        bool is_mean = is_modern(of) && of->pooling == FRAG_POOLING_MEAN;
        frag_tape_set(tape, &made,
                      is_mean ? take_mean(tape, batch, from->hidden, of->width, &held[1])
                              : take_first(tape, batch, from->hidden, of->width));
    }
    if (is_modern(of))
        held[0] = frag_tape_keep(tape, made);
    if (has_dense(workload) && from->pooled == 0)
        frag_tape_set(tape, &made, run_dense(tape, model, at, made));
    frag_tape_set(tape, &made, frag_model_drop_out(tape, model, made, style_of(workload).behind));
    return made;
}

/* Cross entropy of where answers begin and of where they end, halved. */
static frag_tensor answer_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch)
{
    const frag_tensor targets[2] = {batch->labels, batch->ends};
    frag_tensor parts[2], clamped[2], losses[2];
    bool is_single = batch->count * batch->tokens == 1;
    frag_family_halve(tape, logits, parts);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tensor flat = frag_aten_view(tape, parts[i]);
        frag_tape_set(tape, &parts[i],
                      is_single ? frag_tape_keep(tape, flat) : frag_aten_contiguous(tape, flat));
        frag_tape_drop(tape, flat);
    }
    for (uint32_t i = 0; i < 2; i++)
        clamped[i] = frag_tape_empty_like(tape, targets[i]);
    for (uint32_t i = 0; i < 2; i++)
        losses[i] = frag_aten_cross_entropy(tape, parts[i], clamped[i]);
    frag_tensor sum = frag_aten_add(tape, losses[0], losses[1]);
    frag_tensor made = frag_aten_mul_scalar(tape, sum);
    frag_tape_drop(tape, sum);
    for (uint32_t i = 0; i < 2; i++)
        frag_family_return(tape, batch, parts[i]);
    frag_tape_drop_all(tape, losses, 2);
    frag_tape_drop_all(tape, clamped, 2);
    frag_tape_drop_all(tape, parts, 2);
    frag_tape_drop(tape, logits);
    return made;
}

/* DeBERTa's cross entropy, of sequences whose label is no less than 0. */
static frag_tensor chosen_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch)
{
    frag_tensor is_chosen = frag_tape_empty(tape, batch->count, FRAG_BOOL);
    frag_tensor chosen = frag_aten_nonzero(
        tape, &(frag_nonzero){.items = batch->count, .found = batch->count, .dimensions = 1});
    frag_tape_drop(tape, is_chosen);
    frag_tensor index = frag_tape_view(tape, chosen, frag_tape_count(tape, logits));
    frag_tensor gathered = frag_aten_choose(tape, logits, index);
    frag_tape_drop(tape, index);
    frag_tensor labels = frag_tape_empty(tape, batch->count, FRAG_I64);
    frag_tensor wide = frag_aten_view(tape, gathered);
    frag_tape_set(tape, &wide, frag_tape_to(tape, wide, FRAG_F32));
    frag_tensor loss = frag_aten_cross_entropy(tape, wide, labels);
    frag_family_return(tape, batch, logits);
    const frag_tensor names[] = {wide, labels, gathered, chosen, logits};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return loss;
}

frag_tensor frag_class_head_loss(frag_tape *tape, const frag_model *model,
                                 const frag_class_head *at, const frag_batch *batch,
                                 const frag_class_input *from)
{
    const frag_workload *workload = model->workload;
    frag_tensor held[2];
    frag_tensor input = prepare(tape, model, at, batch, from, held);
    frag_tensor logits = frag_walk_apply(tape, input, &at->classes);
    if (style_of(workload).is_whole) /* x = out_proj(x) */
        frag_tape_clear(tape, &input);
    bool is_chosen = workload->head == FRAG_HEAD_SEQUENCE &&
                     workload->problem_type == FRAG_PROBLEM_AUTO &&
                     workload->network.family == FRAG_FAMILY_DEBERTA_V2;
    if (is_chosen && workload->labels == 1) /* logits = logits.view(-1).to(labels.dtype) */
        frag_tape_set(tape, &logits,
                      frag_tape_to(tape, logits, frag_tape_dtype(tape, batch->labels)));
    frag_tensor loss = 0;
    if (workload->head == FRAG_HEAD_ANSWER)
        loss = answer_loss(tape, logits, batch);
    else if (is_chosen && workload->labels > 1)
        loss = chosen_loss(tape, logits, batch);
    else
        loss = frag_family_class_loss(tape, model, logits, batch);
    frag_tape_drop(tape, input);
    frag_tape_drop_all(tape, held, 2);
    frag_tape_drop(tape, from->pooled);
    frag_tape_drop(tape, from->hidden);
    return loss;
}
