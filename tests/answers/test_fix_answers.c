/* What `plan` says of small models with knobs that are drawn at random, on cards that they nearly
 * fit on: the plan as JSON and in words, and each fix explained. What was changed on purpose is
 * pinned anew:
 *
 *   test_fix_answers            compares with tests/data/answers/fixes.txt.zst
 *   test_fix_answers --write    prints what that file should hold (make answers-golden);
 *                               with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "studies/plan/memory_plan.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { SETTINGS = 3, KNOBS_MAX = 8 };

static const char *const models[] = {"bart",     "bert", "distilbert", "gemma",        "gemma2",
                                     "gpt-neox", "gpt2", "llama",      "mistral",      "mixtral",
                                     "opt",      "phi3", "qwen2",      "qwen3",        "vit",
                                     "resnet",   "unet", "roberta",    "resnet-basic", "unet-xl"};

/* A knob and one of its values; many do not go with many models. */
static const char *const knobs[][2] = {{"task", "train"},
                                       {"task", "evaluate"},
                                       {"task", "generate"},
                                       {"batch", "3"},
                                       {"batch", "16"},
                                       {"batch", "64"},
                                       {"tokens", "48"},
                                       {"tokens", "100"},
                                       {"tokens", "8..96"},
                                       {"steps", "2"},
                                       {"steps", "4"},
                                       {"seed", "7"},
                                       {"precision", "bf16"},
                                       {"precision", "amp-bf16"},
                                       {"precision", "amp-fp16"},
                                       {"precision", "fp16"},
                                       {"optimizer", "sgd"},
                                       {"optimizer", "adam"},
                                       {"optimizer", "momentum"},
                                       {"optimizer", "adamw-8bit"},
                                       {"optimizer_loop", "single"},
                                       {"optimizer_loop", "fused"},
                                       {"checkpoint", "blocks"},
                                       {"lora_rank", "8"},
                                       {"quantize", "nf4"},
                                       {"quantize", "int8"},
                                       {"accumulate", "4"},
                                       {"checkpoint_every", "2"},
                                       {"keep_gradients", "true"},
                                       {"amsgrad", "true"},
                                       {"offload", "activations"},
                                       {"leak", "losses"},
                                       {"new_tokens", "20"},
                                       {"no_grad", "false"},
                                       {"empty_cache", "1"},
                                       {"lora_dropout", "0.1"},
                                       {"devices", "2"},
                                       {"parallel", "ddp"},
                                       {"parallel", "zero1"},
                                       {"parallel", "fsdp"},
                                       {"parallel", "pipeline"},
                                       {"loss", "chunked"},
                                       {"target_tokens", "24"}};

static void draw_knobs(frag_workload *workload, uint64_t *bits, frag_text *out)
{
    uint64_t count = xorshift_next(bits) % KNOBS_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const char *const *knob = knobs[xorshift_next(bits) % (sizeof knobs / sizeof *knobs)];
        frag_error error = {0};
        frag_workload was = *workload;
        bool ok = frag_workload_set(workload, knob[0], knob[1], &error) &&
                  frag_workload_check(workload, &error);
        frag_text_add(out, " %s=%s%s", knob[0], knob[1], ok ? "" : " refused");
        if (!ok)
            *workload = was;
    }
}

static void tell(frag_text *out, const char *what, frag_text_stream *stream)
{
    size_t from = out->length;
    static const char named[] = "\"commit\":\"";
    char *printed = frag_text_stream_close(stream, NULL);
    char *commit = strstr(printed, named);
    if (commit != NULL) { /* it differs from build to build */
        char *end = strchr(commit + sizeof named - 1, '"');
        memmove(commit, end, strlen(end) + 1);
    }
    frag_text_add(out, "%s\n", printed);
    frag_free(printed);
    pinned_fold(out, from, what);
}

static void tell_plan(frag_text *out, const frag_workload *workload, uint64_t bytes,
                      const char *conf, frag_memory_plan *plan)
{
    frag_error error = {0};
    frag_dryrun_gpu gpu;
    char size[32];
    snprintf(size, sizeof size, "%" PRIu64 "MiB", bytes / FRAG_MIB);
    assert_true(frag_dryrun_gpu_find(size, &gpu, NULL, &error));
    frag_fitter *fitter = frag_fitter_create(NULL, conf, &error);
    assert_non_null(fitter);
    if (!frag_memory_plan_make(fitter, workload, conf, &gpu, "model", plan, &error)) {
        frag_text_add(out, "    %s: %s\n", size, error.sentence);
        frag_fitter_destroy(fitter);
        return;
    }
    const char *doubt = frag_plan_doubt(plan, &plan->as_is, &plan->verdict);
    frag_text_add(out,
                  "    %s %s: fits %d, %s, reserved %" PRIu64 ", %zu fixes, largest %" PRIu64
                  " and %" PRIu64 "\n",
                  size, conf != NULL ? conf : "", (int)plan->verdict.fits,
                  doubt != NULL ? doubt : "sure", plan->as_is.result.peak.reserved_bytes,
                  plan->fix_count, plan->largest.batch, plan->largest.tokens);
    frag_text_stream *stream = frag_text_stream_open();
    frag_memory_plan_print(plan, frag_text_stream_file(stream));
    tell(out, "      words", stream);
    stream = frag_text_stream_open();
    frag_memory_plan_print_json(plan, frag_text_stream_file(stream));
    tell(out, "      json", stream);
    stream = frag_text_stream_open();
    for (size_t i = 0; i < frag_fix_count(); i++)
        frag_memory_plan_explain(plan, fitter, &frag_fixes[i], frag_text_stream_file(stream));
    tell(out, "      fixes", stream);
    frag_fitter_destroy(fitter);
}

static void tell_all(frag_text *out)
{
    static const char *const confs[] = {NULL, "expandable_segments:True", "max_split_size_mb:64"};
    frag_memory_plan *plan = frag_alloc(1, sizeof *plan);
    uint64_t bits = 5;
    for (size_t i = 0; i < SETTINGS * sizeof models / sizeof *models; i++) {
        const char *model = models[i / SETTINGS];
        char path[128];
        frag_error error = {0};
        frag_workload workload;
        frag_workload_init(&workload);
        snprintf(path, sizeof path, "tests/workload/models/%s-tiny.json", model);
        assert_true(frag_workload_load(path, &workload, NULL, &error));
        frag_text_add(out, "%s", model);
        draw_knobs(&workload, &bits, out);
        frag_text_add(out, "\n");
        const char *conf = confs[xorshift_next(&bits) % 5 % 3];
        tell_plan(out, &workload, FRAG_GIB, conf, plan);
        /* A card that it does not fit on, or nearly. */
        uint64_t reserved = plan->as_is.result.peak.reserved_bytes;
        uint64_t bytes = reserved * (50 + xorshift_next(&bits) % 60) / 100;
        tell_plan(out, &workload, bytes > 16 * FRAG_MIB ? bytes : 16 * FRAG_MIB, conf, plan);
    }
    frag_free(plan);
}

static const pinned_lines pinned = {"tests/data/answers/fixes.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
