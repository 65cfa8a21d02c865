#include "workload/rlhf.h"

#include "base/memory.h"

struct frag_rlhf {
    const frag_family *family;
    frag_model *model;
    frag_workload acting;   /* the model in eval(), */
    frag_workload learning; /* in train(), */
    frag_workload resting;  /* without its adapters, */
    frag_workload judging;  /* without its head */
    frag_model reference;
    frag_model judge;
    frag_tensor reward; /* the judge's head */
    bool is_apart;      /* the reference has weights of its own */
};

static void build_beside(frag_tape *tape, const frag_rlhf *rlhf, frag_model *model,
                         const frag_workload *workload)
{
    *model = (frag_model){.workload = workload,
                          .stage = rlhf->model->stage,
                          .dtype = rlhf->model->dtype,
                          .is_frozen = true};
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    frag_model_build(tape, rlhf->family, model);
    frag_tape_set_kind(tape, was);
}

frag_rlhf *frag_rlhf_create(frag_tape *tape, const frag_family *family, frag_model *model)
{
    const frag_workload *workload = model->workload;
    frag_rlhf *rlhf = frag_alloc(1, sizeof *rlhf);
    rlhf->family = family;
    rlhf->model = model;
    rlhf->acting = rlhf->learning = rlhf->resting = rlhf->judging = *workload;
    rlhf->learning.task = FRAG_TASK_TRAIN;
    rlhf->resting.skips_adapters = true;
    rlhf->judging.network.is_tied = true; /* it has no head */
    rlhf->judging.network.has_head_bias = false;
    rlhf->judging.lora_rank = 0;
    rlhf->judging.quantize = FRAG_QUANTIZE_NONE;
    rlhf->is_apart = workload->has_reference && workload->lora_rank == 0;
    rlhf->reference = *model;
    rlhf->reference.workload = &rlhf->resting;
    if (rlhf->is_apart)
        build_beside(tape, rlhf, &rlhf->reference, &rlhf->resting);
    if (workload->has_reward) {
        build_beside(tape, rlhf, &rlhf->judge, &rlhf->judging);
        rlhf->reward =
            frag_model_add(tape, &rlhf->judge, (frag_shape){1, workload->network.embedding_width});
    }
    return rlhf;
}

void frag_rlhf_destroy(frag_rlhf *rlhf)
{
    if (rlhf == NULL)
        return;
    if (rlhf->is_apart)
        frag_model_free(&rlhf->reference);
    frag_model_free(&rlhf->judge);
    frag_free(rlhf);
}

void frag_rlhf_rest(frag_rlhf *rlhf)
{
    rlhf->model->workload = &rlhf->acting;
}

static frag_tensor score(frag_tape *tape, const frag_rlhf *rlhf, const frag_model *model,
                         const frag_batch *batch)
{
    return frag_decoder_score(tape, rlhf->family, model, batch, rlhf->acting.new_tokens);
}

/* Names of the program that last until the loss is there. */
enum { OLD, REFERENCE, REWARDS, ADVANTAGES, NOW, RATIO, GAIN, AWAY, NAME_COUNT };

/* head(model(ids).last_hidden_state[:, -1]), or numbers of the program's own */
static frag_tensor find_rewards(frag_tape *tape, const frag_rlhf *rlhf, const frag_batch *batch)
{
    if (rlhf->reward == 0)
        return frag_tape_empty(tape, batch->count, FRAG_F32);
    frag_tensor hidden = rlhf->family->hidden(tape, &rlhf->judge, batch, NULL);
    frag_tensor last = frag_tape_view(tape, hidden, frag_tape_count(tape, hidden) / batch->tokens);
    frag_tensor made = frag_aten_linear(tape, last, rlhf->reward, 0, 1);
    frag_tape_drop(tape, last);
    frag_tape_drop(tape, hidden);
    return made;
}

static frag_tensor find_mean(frag_tape *tape, frag_tensor of)
{
    return frag_aten_mean_last(tape, of, frag_tape_count(tape, of));
}

/* rewards - rewards.mean() */
static frag_tensor find_advantages(frag_tape *tape, frag_tensor rewards)
{
    frag_tensor mean = find_mean(tape, rewards);
    frag_tensor made = frag_aten_sub(tape, rewards, mean);
    frag_tape_drop(tape, mean);
    return made;
}

static void score_all(frag_tape *tape, const frag_rlhf *rlhf, const frag_batch *batch,
                      frag_tensor *names)
{
    frag_tape_begin(tape, "score");
    names[OLD] = score(tape, rlhf, rlhf->model, batch);
    if (rlhf->acting.has_reference)
        names[REFERENCE] = score(tape, rlhf, &rlhf->reference, batch);
    names[REWARDS] = find_rewards(tape, rlhf, batch);
    names[ADVANTAGES] = find_advantages(tape, names[REWARDS]);
    frag_tape_end(tape, "score");
}

/* exp(now - old) */
static frag_tensor find_ratio(frag_tape *tape, const frag_tensor *names)
{
    frag_tensor difference = frag_aten_sub(tape, names[NOW], names[OLD]);
    frag_tensor made = frag_aten_exp(tape, difference);
    frag_tape_drop(tape, difference);
    return made;
}

/* min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages) */
static frag_tensor find_gain(frag_tape *tape, const frag_tensor *names)
{
    frag_tensor free = frag_aten_mul(tape, names[RATIO], names[ADVANTAGES]);
    frag_tensor bound = frag_aten_clamp(tape, names[RATIO], 0, 0);
    frag_tape_set(tape, &bound, frag_aten_mul(tape, bound, names[ADVANTAGES]));
    frag_tensor made = frag_aten_minimum(tape, free, bound);
    frag_tape_drop(tape, bound);
    frag_tape_drop(tape, free);
    return made;
}

/* (0.04 * (exp(away) - away - 1) - gain).mean(); away = reference - now. Without a reference:
 * -gain.mean() */
static frag_tensor find_loss(frag_tape *tape, frag_tensor *names)
{
    if (names[REFERENCE] == 0) {
        frag_tensor mean = find_mean(tape, names[GAIN]);
        frag_tensor loss = frag_aten_mul_scalar(tape, mean);
        frag_tape_drop(tape, mean);
        return loss;
    }
    names[AWAY] = frag_aten_sub(tape, names[REFERENCE], names[NOW]);
    frag_tensor loss = frag_aten_exp(tape, names[AWAY]);
    frag_tape_set(tape, &loss, frag_aten_sub(tape, loss, names[AWAY]));
    frag_tape_set(tape, &loss, frag_aten_add_scalar(tape, loss));
    frag_tape_set(tape, &loss, frag_aten_mul_scalar(tape, loss));
    frag_tape_set(tape, &loss, frag_aten_sub(tape, loss, names[GAIN]));
    frag_tape_set(tape, &loss, find_mean(tape, loss));
    return loss;
}

/* What needs no gradients comes first, under one autocast; then the loss under another. */
frag_tensor frag_rlhf_loss(frag_tape *tape, frag_rlhf *rlhf, const frag_batch *batch)
{
    frag_tensor names[NAME_COUNT] = {0};
    frag_dtype autocast = frag_tape_autocast(tape);
    bool was_recording = frag_tape_set_recording(tape, false);
    score_all(tape, rlhf, batch, names);
    frag_tape_set_autocast(tape, FRAG_F32);
    frag_tape_set_autocast(tape, autocast);
    frag_tape_set_recording(tape, was_recording);
    rlhf->model->workload = &rlhf->learning;
    frag_tape_begin(tape, "forward");
    frag_tape_begin_checkpoints(tape, rlhf->learning.checkpoint_every, 0);
    names[NOW] = score(tape, rlhf, rlhf->model, batch);
    names[RATIO] = find_ratio(tape, names);
    names[GAIN] = find_gain(tape, names);
    frag_tensor loss = find_loss(tape, names);
    frag_tape_end(tape, "forward");
    frag_tape_drop_all(tape, names, NAME_COUNT);
    return loss;
}
