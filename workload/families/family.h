/* Networks over the tape: each family builds its parameters in the order in which PyTorch moves
 * them to the GPU, and runs a forward pass operator by operator, names and all, as its Python does.
 */
#ifndef FRAG_FAMILIES_FAMILY_H
#define FRAG_FAMILIES_FAMILY_H

#include "workload/description/description.h"
#include "workload/tape/aten.h"

typedef struct frag_model {
    const frag_workload *workload;
    frag_tensor *parameters; /* in the order of model.parameters() */
    size_t parameters_capacity;
    uint32_t parameter_count;
    frag_dtype dtype; /* of parameters */
} frag_model;

typedef struct frag_batch {
    frag_tensor ids;    /* what the program made of it: token ids, or images and their labels */
    frag_tensor labels; /* the same tensor where the task has no others */
    uint64_t count;
    uint64_t tokens;
} frag_batch;

typedef struct frag_family {
    /* Allocates parameters and buffers. */
    void (*build)(frag_tape *tape, frag_model *model);
    /* The batch as the program makes it, on the GPU. */
    void (*load)(frag_tape *tape, const frag_model *model, frag_batch *batch);
    /* model(batch).loss: what the model returned besides is gone. */
    frag_tensor (*loss)(frag_tape *tape, const frag_model *model, const frag_batch *batch);
} frag_family;

extern const frag_family frag_family_gpt2;
extern const frag_family frag_family_llama;
extern const frag_family frag_family_bert;

/* ---- shared by families */
frag_tensor frag_model_add(frag_tape *tape, frag_model *model, uint64_t count);
bool frag_model_has_checkpoints(const frag_model *model);
/* ids of tokens made on the host and copied; name = ..., so that the old ones go afterwards. */
void frag_family_load_tokens(frag_tape *tape, const frag_model *model, frag_batch *batch);
/* transformers' ForCausalLMLoss: logits in fp32, labels moved by one. Borrowed arguments. */
frag_tensor frag_family_causal_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch);
frag_tensor frag_family_activate(frag_tape *tape, frag_tensor x, frag_activation activation);
/* torch.arange(tokens) + past, as int64. */
frag_tensor frag_family_positions(frag_tape *tape, uint64_t tokens);

/* transformers' find_packed_sequence_indices, which is asked where no cache is used: none are
 * packed. */
void frag_family_find_packed(frag_tape *tape, const frag_batch *batch);

#endif
