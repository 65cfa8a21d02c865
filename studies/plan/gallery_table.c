#include "studies/plan/gallery_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/text_table.h"
#include "studies/plan/memory_plan.h"
#include "sim/version.h"

#define CONTEXT_BYTES (512 * FRAG_MIB)

typedef struct gallery_model {
    const char *name;
    const char *yaml;
    uint64_t tokens; /* 0: images */
} gallery_model;

/* peft names no layers for vit and mixtures of experts. */
#define ADAPTERS "run: {lora: {targets: [q_proj, v_proj]}}"

static const gallery_model models[] = {
    {"ResNet-50", "model: {family: resnet, classes: 1000}", 0},
    {"VGG-16", "model: {family: vgg}", 0},
    {"DenseNet-121", "model: {family: densenet}", 0},
    {"EfficientNet-B0", "model: {family: efficientnet}", 0},
    {"ViT-L/16",
     "model: {family: vit, layers: 24, heads: 16, width: 1024, inner: 4096, classes: "
     "1000}\n" ADAPTERS,
     0},
    {"SD 1.5 U-Net", "model: {family: unet, text_width: 768}", 0},
    {"SDXL U-Net",
     "model: {family: unet, image: 128, channels: [320, 640, 1280], down_attention: [0, 1, 1], "
     "up_attention: [1, 1, 0], heads: [5, 10, 20], depths: [1, 2, 10], text_width: 2048, "
     "linear_projection: true, added_width: 2816}",
     0},
    {"FLUX.1 dev", "model: {family: flux}", 0},
    {"BERT large", "model: {family: bert, layers: 24, heads: 16, width: 1024, inner: 4096}", 512},
    {"GPT-2 small", "model: {family: gpt2}", 1024},
    {"GPT-2 medium", "model: {family: gpt2, layers: 24, heads: 16, width: 1024}", 1024},
    {"GPT-2 large", "model: {family: gpt2, layers: 36, heads: 20, width: 1280}", 1024},
    {"GPT-2 XL", "model: {family: gpt2, layers: 48, heads: 25, width: 1600}", 1024},
    {"Llama 3.2 1B",
     "model: {family: llama, vocabulary: 128256, positions: 131072, width: 2048, inner: 8192, "
     "layers: 16, heads: 32, key_heads: 8, head_width: 64, tied: true}",
     1024},
    {"Llama 3.2 3B",
     "model: {family: llama, vocabulary: 128256, positions: 131072, width: 3072, inner: 8192, "
     "layers: 28, heads: 24, key_heads: 8, head_width: 128, tied: true}",
     1024},
    {"Llama 3.1 8B",
     "model: {family: llama, vocabulary: 128256, positions: 131072, width: 4096, inner: 14336, "
     "layers: 32, heads: 32, key_heads: 8}",
     1024},
    {"Llama 2 13B",
     "model: {family: llama, positions: 4096, width: 5120, inner: 13824, layers: 40, heads: 40}",
     1024},
    {"Llama 3.1 70B",
     "model: {family: llama, vocabulary: 128256, positions: 131072, width: 8192, inner: 28672, "
     "layers: 80, heads: 64, key_heads: 8}",
     1024},
    {"OLMoE 1B-7B", "model: {family: olmoe, inner: 1024}\n" ADAPTERS, 1024},
    {"Mixtral 8x7B", "model: {family: mixtral}\n" ADAPTERS, 1024},
};

static const struct {
    const char *name;
    const char *knobs[3][2];
} tasks[] = {
    {"inference", {{"task", "evaluate"}, {"precision", "bf16"}, {NULL, NULL}}},
    {"LoRA", {{"lora_rank", "16"}, {"precision", "bf16"}, {NULL, NULL}}},
    {"QLoRA", {{"lora_rank", "16"}, {"precision", "amp-bf16"}, {"quantize", "nf4-double"}}},
    {"full", {{"precision", "amp-bf16"}, {NULL}, {NULL, NULL}}},
};

static const uint64_t card_gib[] = {8, 12, 16, 24, 32, 48, 80};

enum {
    MODELS = sizeof models / sizeof *models,
    TASKS = sizeof tasks / sizeof *tasks,
    CARDS = sizeof card_gib / sizeof *card_gib
};

/* The largest batch of a model on a card: as it is, and with expandable segments and checkpointing
 * of blocks. */
typedef struct gallery_cell {
    const gallery_model *model;
    const char *task;
    uint64_t gib;
    uint64_t as_is;
    uint64_t fixed;
    bool is_training;
} gallery_cell;

/* false: the generator does not describe it. */
static bool describe(size_t model, size_t task, frag_workload *workload, frag_error *error)
{
    frag_workload_init(workload);
    bool ok =
        frag_workload_parse(models[model].yaml, strlen(models[model].yaml), workload, NULL, error);
    for (size_t i = 0; ok && i < 3 && tasks[task].knobs[i][0] != NULL; i++)
        ok = frag_workload_set(workload, tasks[task].knobs[i][0], tasks[task].knobs[i][1], error);
    if (models[model].tokens > 0)
        workload->tokens.values[0] = models[model].tokens;
    return ok && frag_workload_check(workload, error);
}

static bool find_cell(frag_fitter *fitter, const frag_workload *workload, gallery_cell *cell,
                      frag_error *error)
{
    frag_fit_setting setting;
    frag_dryrun_card memory = {cell->gib * FRAG_GIB, CONTEXT_BYTES};
    memset(&setting, 0, sizeof setting);
    memcpy(&setting.workload, workload, sizeof *workload);
    cell->is_training = workload->task == FRAG_TASK_TRAIN;
    if (!frag_plan_largest_batch(fitter, &setting, &memory, &cell->as_is, error))
        return false;
    cell->fixed = cell->as_is;
    setting.is_expandable = true;
    if (cell->is_training && !frag_families[workload->network.family].has_no_blocks)
        setting.workload.checkpoint = FRAG_CHECKPOINT_BLOCKS;
    return frag_plan_largest_batch(fitter, &setting, &memory, &cell->fixed, error);
}

typedef void take_cell(void *context, const gallery_cell *cell);

/* Every cell, line by line. What cannot be described has no line. */
static bool visit_cells(frag_fitter *fitter, take_cell *take, void *context, frag_error *error)
{
    for (size_t i = 0; i < (size_t)MODELS * TASKS; i++) {
        frag_workload workload;
        if (!describe(i / TASKS, i % TASKS, &workload, NULL))
            continue;
        for (size_t card = 0; card < CARDS; card++) {
            gallery_cell cell = {
                .model = &models[i / TASKS], .task = tasks[i % TASKS].name, .gib = card_gib[card]};
            if (!find_cell(fitter, &workload, &cell, error))
                return false;
            take(context, &cell);
        }
    }
    return true;
}

/* Of an input: tokens, or an image. */
static void add_size(frag_text *text, const gallery_model *model)
{
    if (model->tokens > 0)
        frag_text_add(text, "%" PRIu64 " tokens", model->tokens);
    else
        frag_text_add(text, "an image");
}

static void add_cell(void *context, const gallery_cell *cell)
{
    frag_text_table *table = context;
    if (cell->gib == card_gib[0]) {
        frag_text_add(frag_text_table_cell(table), "%s", cell->model->name);
        frag_text_add(frag_text_table_cell(table), "%s", cell->task);
        add_size(frag_text_table_cell(table), cell->model);
    }
    frag_text *text = frag_text_table_cell(table);
    if (cell->as_is == 0)
        frag_text_add(text, "–");
    else
        frag_text_add(text, "%" PRIu64, cell->as_is);
    if (cell->fixed != cell->as_is)
        frag_text_add(text, " / %" PRIu64, cell->fixed);
}

bool frag_gallery_print(frag_fitter *fitter, bool is_markdown, FILE *stream, frag_error *error)
{
    frag_text_table table = {.columns = 3 + CARDS};
    frag_text_add(frag_text_table_cell(&table), "model");
    frag_text_add(frag_text_table_cell(&table), "task");
    frag_text_add(frag_text_table_cell(&table), "each");
    for (size_t i = 0; i < CARDS; i++)
        frag_text_add(frag_text_table_cell(&table), "%" PRIu64 " GiB", card_gib[i]);
    if (!visit_cells(fitter, add_cell, &table, error))
        return false;
    if (!is_markdown)
        fprintf(stream, "the largest batch that fits / with expandable segments, and in training "
                        "checkpointing; –: not even 1\n");
    frag_text_table_print(&table, is_markdown, stream);
    if (!is_markdown)
        fprintf(stream,
                "inference: forward passes in bf16; LoRA: rank 16 beside weights in bf16; "
                "QLoRA: in 4 bits; "
                "full: AdamW, weights in fp32, autocast to bf16\n"
                "cards: as an A100 of that size, 512 MiB of it for the context; images of "
                "224 x 224 pixels, of SD 1.5 512 x 512, of SDXL and FLUX 1024 x 1024; adapters of "
                "ViT and of mixtures of experts beside queries and values\n");
    return true;
}

static void write_cell(void *context, const gallery_cell *cell)
{
    FILE *stream = context;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.plan-table/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "model", cell->model->name);
    frag_json_text(json, "task", cell->task);
    frag_json_number(json, "tokens",
                     cell->model->tokens > 0 ? cell->model->tokens : FRAG_UNLIMITED);
    frag_json_number(json, "capacity_bytes", cell->gib * FRAG_GIB);
    frag_json_number(json, "context_bytes", CONTEXT_BYTES);
    frag_json_number(json, "batch.as_is", cell->as_is);
    frag_json_number(json, "batch.fixed", cell->fixed);
    frag_json_write(json, stream, false);
}

bool frag_gallery_print_json(frag_fitter *fitter, FILE *stream, frag_error *error)
{
    return visit_cells(fitter, write_cell, stream, error);
}
