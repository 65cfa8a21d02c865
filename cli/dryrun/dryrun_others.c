/* What a recording of a dry run says without another run: other settings, allocators and cards, and
 * the peaks of an earlier run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/formats/lines.h"
#include "base/memory.h"
#include "base/text_table.h"
#include "cli/dryrun/dryrun_state.h"
#include "sim/device/card_table.h"

/* ---- settings and allocators */

static void start_table(frag_text_table *table, const char *first)
{
    const char *const titles[] = {first, "reserved", "left", ""};
    *table = (frag_text_table){.columns = 4, .is_last_text = true};
    frag_text_table_add_line(table, titles);
}

static void add_row(frag_text_table *table, const char *name, const frag_dryrun_card *card,
                    const frag_dryrun_level *level)
{
    uint64_t used = level->peak.reserved_bytes + card->context_bytes;
    uint64_t left = used < card->capacity_bytes ? card->capacity_bytes - used : 0;
    frag_text_table_add(table, name);
    frag_text_table_add(table, FRAG_BYTES(level->peak.reserved_bytes));
    frag_text_table_add(table, level->fits ? FRAG_BYTES(left) : "-");
    frag_text *last = frag_text_table_cell(table);
    if (level->fits)
        frag_text_add(last, "fits");
    else
        frag_text_add(last, "out of memory at event %s (needs %s)", FRAG_COUNT(level->oom.event),
                      FRAG_BYTES(level->oom.requested_bytes));
}

typedef struct other_replays {
    const frag_dryrun *dryrun;
    const frag_dryrun_process *process;
    frag_text_table table;
} other_replays;

static bool add_policy(other_replays *all, const char *text, const char *name, frag_error *error)
{
    const frag_recording *recording = &all->process->recording;
    frag_policy_spec *specs = NULL;
    size_t count = 0;
    bool ok = frag_policy_specs_parse(text, &specs, &count, error);
    for (size_t i = 0; ok && i < count; i++) {
        frag_policy_spec spec;
        frag_dryrun_level level;
        ok = frag_policy_resolve(all->dryrun->context, &specs[i], recording, &spec, error);
        if (!ok)
            break;
        ok = frag_dryrun_replay(all->dryrun->context, recording, all->process->main, &spec,
                                &all->dryrun->gpu.memory, &level, error);
        if (ok)
            add_row(&all->table, name != NULL ? name : specs[i].text, &all->dryrun->gpu.memory,
                    &level);
        frag_policy_spec_destroy(&spec);
    }
    frag_policy_specs_destroy(specs, count);
    return ok;
}

/* --compare takes a settings string of the script's own release. */
static bool add_conf(other_replays *all, const char *conf, frag_error *error)
{
    frag_text text = {0};
    char release[FRAG_DRYRUN_RELEASE_BYTES];
    frag_text_add(&text, "pytorch:%s", conf);
    if (frag_dryrun_release(all->process->facts.release, release))
        frag_text_add(&text, ",version=%s", release);
    bool ok = add_policy(all, text.bytes, conf, error);
    frag_text_destroy(&text);
    return ok || frag_error_in(error, "--compare");
}

static bool print_settings(const frag_dryrun *dryrun, const frag_dryrun_process *process,
                           FILE *stream, frag_error *error)
{
    const frag_arguments *arguments = dryrun->arguments;
    size_t confs = frag_arguments_value_count(arguments, "compare");
    size_t policies = frag_arguments_value_count(arguments, "policy");
    other_replays all = {.dryrun = dryrun, .process = process};
    if (confs + policies == 0)
        return true;
    start_table(&all.table, "the same requests with");
    add_row(&all.table, "as it was run", &dryrun->gpu.memory, &process->answer->run);
    bool ok = true;
    for (size_t i = 0; ok && i < confs; i++)
        ok = add_conf(&all, frag_arguments_value_at(arguments, "compare", i), error);
    for (size_t i = 0; ok && i < policies; i++)
        ok = add_policy(&all, frag_arguments_value_at(arguments, "policy", i), NULL, error) ||
             frag_error_in(error, "--policy");
    fprintf(stream, "\n");
    frag_text_table_print(&all.table, false, stream);
    if (process->answer->has_failed)
        fprintf(stream, "memory ran out in the run itself: what the script would have requested "
                        "after that is not known\n");
    return ok;
}

/* ---- cards */

static bool add_card(other_replays *all, const char *name, const frag_policy_spec *policy,
                     frag_error *error)
{
    frag_device_description card;
    frag_dryrun_level level;
    frag_device_description_clear(&card);
    if (!frag_card_load(name, &card, NULL, error))
        return frag_error_in(error, "--matrix");
    frag_dryrun_card memory = {.capacity_bytes = card.total_bytes,
                               .context_bytes = card.context_bytes};
    if (card.total_bytes == 0 || strncmp(card.compute.capability, "gfx", 3) == 0)
        return true;
    if (!frag_dryrun_replay(all->dryrun->context, &all->process->recording, all->process->main,
                            policy, &memory, &level, error))
        return false;
    add_row(&all->table, card.name, &memory, &level);
    return true;
}

static bool add_cards(other_replays *all, const char *list, const frag_policy_spec *policy,
                      frag_error *error)
{
    if (strcmp(list, "all") == 0) {
        size_t count = 0;
        char **names = frag_card_names(&count, error);
        bool ok = names != NULL;
        for (size_t i = 0; ok && i < count; i++)
            ok = add_card(all, names[i], policy, error);
        if (names != NULL)
            frag_folder_names_destroy(names, count);
        return ok;
    }
    char *copy = frag_copy_text(list);
    char *rest = NULL;
    bool ok = true;
    for (char *name = strtok_r(copy, ",", &rest); ok && name != NULL;
         name = strtok_r(NULL, ",", &rest))
        ok = add_card(all, name, policy, error);
    frag_free(copy);
    return ok;
}

static bool print_matrix(const frag_dryrun *dryrun, const frag_dryrun_process *process,
                         FILE *stream, frag_error *error)
{
    const char *list = frag_arguments_value(dryrun->arguments, "matrix");
    other_replays all = {.dryrun = dryrun, .process = process};
    frag_policy_spec policy;
    if (list == NULL)
        return true;
    if (!frag_dryrun_policy(dryrun->context, &process->recording, process->facts.release, &policy,
                            error))
        return false;
    start_table(&all.table, "the same requests on");
    bool ok = add_cards(&all, list, &policy, error);
    frag_policy_spec_destroy(&policy);
    fprintf(stream, "\n");
    frag_text_table_print(&all.table, false, stream);
    fprintf(stream, "by replay: the requests are taken as the same on every card; workspaces of "
                    "cuBLAS and buffers of reductions differ with compute capability and "
                    "multiprocessors\n");
    return ok;
}

bool frag_dryrun_print_others(const frag_dryrun *dryrun, const frag_dryrun_process *process,
                              FILE *stream, frag_error *error)
{
    return print_settings(dryrun, process, stream, error) &&
           print_matrix(dryrun, process, stream, error);
}

/* ---- the baseline */

typedef struct baseline {
    const frag_dryrun_result *result;
    size_t at; /* line: processes come in the same order */
    double fail_above;
    FILE *stream;
    bool is_above;
} baseline;

static void compare_peak(baseline *base, const frag_json *json, const char *name, uint64_t now)
{
    uint64_t before = 0;
    frag_text path = {0};
    frag_text_add(&path, "peak.%s_bytes", name);
    bool is_known = frag_json_find_number(json, path.bytes, &before);
    frag_text_destroy(&path);
    if (!is_known)
        return;
    double change = before == now ? 0
                    : before == 0 ? INFINITY
                                  : 100.0 * ((double)now - (double)before) / (double)before;
    bool is_above = now > before && change > base->fail_above;
    base->is_above = base->is_above || is_above;
    fprintf(base->stream, "baseline   peak %-9s  %s bytes, then %s: %+.3f %%%s\n", name,
            FRAG_COUNT(before), FRAG_COUNT(now), change, is_above ? "  ABOVE" : "");
}

static bool compare_line(void *context, const char *line, size_t length, frag_error *error)
{
    baseline *base = context;
    frag_json *json = frag_json_parse(line, length, error);
    const char *kind = "";
    if (json == NULL)
        return false;
    bool ok = frag_json_find_text(json, "kind", &kind) && strcmp(kind, "dryrun") == 0;
    if (!ok)
        frag_fail(error, FRAG_E_INPUT, "expected an answer of a dry run, as --report writes");
    else if (base->at < base->result->count) {
        const frag_dryrun_answer *answer = base->result->processes[base->at].answer;
        const frag_level nothing = {.requested_bytes = 0};
        const frag_level *peak = answer != NULL ? &answer->run.peak : &nothing;
        compare_peak(base, json, "requested", peak->requested_bytes);
        compare_peak(base, json, "allocated", peak->allocated_bytes);
        compare_peak(base, json, "reserved", peak->reserved_bytes);
    }
    base->at++;
    frag_json_destroy(json);
    return ok;
}

bool frag_dryrun_check_baseline(const frag_dryrun *dryrun, const frag_dryrun_result *result,
                                FILE *stream, bool *is_above, frag_error *error)
{
    const char *path = frag_arguments_value(dryrun->arguments, "baseline");
    const char *limit = frag_arguments_value(dryrun->arguments, "fail-above");
    baseline base = {.result = result, .stream = stream};
    *is_above = false;
    if (path == NULL)
        return true;
    if (limit != NULL && !frag_ratio_parse(limit, 0, 1e6, &base.fail_above, error))
        return frag_error_in(error, "--fail-above");
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    bool ok = frag_each_line(input, compare_line, &base, error);
    frag_input_close(input);
    if (ok && base.at != result->count) {
        frag_fail(error, FRAG_E_INPUT,
                  "it has %zu processes, this run %zu; write it anew with --report", base.at,
                  result->count);
        ok = false;
    }
    *is_above = base.is_above;
    return ok || frag_error_in(error, path);
}
