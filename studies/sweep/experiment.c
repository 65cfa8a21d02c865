#include "studies/sweep/experiment.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/formats/yaml.h"
#include "base/memory.h"
#include "base/text.h"

#define VALUES_MAX 100000u
#define COMBINATIONS_MAX 1000000u
#define BROKEN_MAX 1e9 /* no option takes a number that is not whole, and greater or negative */

/* ---- lists of values: one, several, or a range */

typedef struct values {
    char **texts;
    size_t count;
    size_t capacity;
} values;

static void add_value(values *list, const char *text)
{
    *FRAG_APPEND(list->texts, list->count, list->capacity) = frag_copy_text(text);
}

static void free_values(values *list)
{
    for (size_t i = 0; i < list->count; i++)
        frag_free(list->texts[i]);
    frag_free(list->texts);
    *list = (values){0};
}

/* Whole numbers and sizes are counted exactly; anything else as it is written: 0.5. */
static bool read_numbers(const frag_yaml_node *const *nodes, size_t count, uint64_t *whole,
                         double *broken, bool *is_whole, frag_error *error)
{
    *is_whole = true;
    for (size_t i = 0; i < count; i++) {
        frag_error unused = {0};
        *is_whole = *is_whole && nodes[i]->kind == FRAG_YAML_SCALAR &&
                    frag_bytes_parse(nodes[i]->text, &whole[i], &unused) &&
                    whole[i] != FRAG_UNLIMITED;
    }
    for (size_t i = 0; i < count && !*is_whole; i++)
        if (!frag_yaml_ratio(nodes[i], 0, BROKEN_MAX, &broken[i], error))
            return false;
    return true;
}

static bool add_whole_range(values *list, const frag_yaml_node *node, const uint64_t *numbers,
                            bool is_factor, frag_error *error)
{
    uint64_t from = numbers[0];
    uint64_t to = numbers[1];
    uint64_t by = numbers[2];
    if (by < (is_factor ? 2 : 1) || from > to || (is_factor && from == 0))
        return frag_fail_line(
            error, node->line, node->column,
            "the range does not ascend; expected from <= to and a step of 1 or more "
            "or a factor of 2 or more");
    for (uint64_t at = from;;) {
        char text[32];
        snprintf(text, sizeof text, "%" PRIu64, at);
        if (list->count >= VALUES_MAX)
            return frag_fail_line(error, node->line, node->column,
                                  "the range has more than 100000 values");
        add_value(list, text);
        if (is_factor ? at > to / by : by > to - at)
            return true;
        at = is_factor ? at * by : at + by;
    }
}

static bool add_broken_range(values *list, const frag_yaml_node *node, const double *numbers,
                             bool is_factor, frag_error *error)
{
    double from = numbers[0];
    double to = numbers[1];
    double by = numbers[2];
    if (from > to || (is_factor ? by <= 1 || from <= 0 : by <= 0))
        return frag_fail_line(
            error, node->line, node->column,
            "the range does not ascend; expected from <= to and a step above 0 or a "
            "factor above 1");
    double steps = is_factor ? log(to / from) / log(by) : (to - from) / by;
    if (!(steps < VALUES_MAX))
        return frag_fail_line(error, node->line, node->column,
                              "the range has more than 100000 values");
    /* Counted, so that rounding neither adds nor loses the last one. */
    for (uint64_t i = 0; (double)i <= steps + 1e-9; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.12g",
                 is_factor ? from * pow(by, (double)i) : from + by * (double)i);
        add_value(list, text);
    }
    return true;
}

static bool add_range(values *list, const frag_yaml_node *node, frag_error *error)
{
    static const char *const keys[] = {"from", "to", "step", "factor", NULL};
    if (!frag_yaml_check_keys(node, keys, error))
        return false;
    const frag_yaml_node *step = frag_yaml_find(node, "step");
    const frag_yaml_node *factor = frag_yaml_find(node, "factor");
    const frag_yaml_node *parts[] = {frag_yaml_find(node, "from"), frag_yaml_find(node, "to"),
                                     step != NULL ? step : factor};
    if (parts[0] == NULL || parts[1] == NULL || parts[2] == NULL ||
        (step != NULL) == (factor != NULL))
        return frag_fail_line(error, node->line, node->column,
                              "a range needs from, to, and either step or factor; write {from: 64, "
                              "to: 512, factor: 2}");
    uint64_t whole[3] = {0};
    double broken[3] = {0};
    bool is_whole = false;
    if (!read_numbers(parts, 3, whole, broken, &is_whole, error))
        return false;
    return is_whole ? add_whole_range(list, node, whole, factor != NULL, error)
                    : add_broken_range(list, node, broken, factor != NULL, error);
}

static bool add_values(values *list, const frag_yaml_node *node, frag_error *error)
{
    const char *text = NULL;
    if (node->kind == FRAG_YAML_MAPPING)
        return add_range(list, node, error);
    if (node->kind == FRAG_YAML_SCALAR) {
        if (!frag_yaml_text(node, &text, error))
            return false;
        add_value(list, text);
        return true;
    }
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next)
        if (item->kind == FRAG_YAML_SEQUENCE
                ? !frag_fail_line(error, item->line, item->column,
                                  "is a list in a list; expected a value or a range")
                : !add_values(list, item, error))
            return false;
    if (node->first == NULL)
        return frag_fail_line(error, node->line, node->column,
                              "is an empty list; expected at least one value");
    return true;
}

/* ---- policies */

typedef struct grid {
    const frag_yaml_node **options;
    values *choices;
    size_t count;
    uint64_t combinations;
} grid;

static bool read_grid(const frag_yaml_node *node, grid *into, frag_error *error)
{
    into->combinations = 1;
    if (node == NULL)
        return true;
    if (!frag_yaml_expect(node, FRAG_YAML_MAPPING, "options", error))
        return false;
    into->options = frag_alloc(node->count, sizeof *into->options);
    into->choices = frag_alloc(node->count, sizeof *into->choices);
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next) {
        values *list = &into->choices[into->count];
        into->options[into->count++] = item;
        if (!add_values(list, item, error))
            return false;
        if (list->count > COMBINATIONS_MAX / into->combinations)
            return frag_fail_line(error, node->line, node->column,
                                  "has more than 1000000 combinations");
        into->combinations *= list->count;
    }
    return true;
}

static void free_grid(grid *from)
{
    for (size_t i = 0; i < from->count; i++)
        free_values(&from->choices[i]);
    frag_free(from->choices);
    frag_free(from->options);
}

/* Which combinations of the grid: all, or some of them drawn without replacement, ascending. */
static bool choose(const frag_yaml_node *random, uint64_t combinations, uint64_t **chosen,
                   uint64_t *count, frag_error *error)
{
    static const char *const keys[] = {"count", "seed", NULL};
    uint64_t seed = 0;
    *count = combinations;
    if (random != NULL) {
        const frag_yaml_node *wanted = NULL;
        if (!frag_yaml_expect(random, FRAG_YAML_MAPPING, "random", error) ||
            !frag_yaml_check_keys(random, keys, error))
            return false;
        wanted = frag_yaml_find(random, "count");
        if (wanted == NULL)
            return frag_fail_line(error, random->line, random->column, "random needs a count");
        if (!frag_yaml_count(wanted, 1, COMBINATIONS_MAX, count, error) ||
            (frag_yaml_find(random, "seed") != NULL &&
             !frag_yaml_count(frag_yaml_find(random, "seed"), 0, UINT64_MAX, &seed, error)))
            return false;
        *count = *count < combinations ? *count : combinations;
    }
    /* The first part of a shuffle. */
    *chosen = frag_alloc(combinations, sizeof **chosen);
    for (uint64_t i = 0; i < combinations; i++)
        (*chosen)[i] = i;
    for (uint64_t i = 0; i < *count && *count < combinations; i++) {
        uint64_t other = i + frag_random_next(&seed) % (combinations - i);
        uint64_t kept = (*chosen)[i];
        (*chosen)[i] = (*chosen)[other];
        (*chosen)[other] = kept;
    }
    qsort(*chosen, *count, sizeof **chosen, frag_compare_numbers);
    return true;
}

/* One combination: the last option changes fastest. */
static bool combine(const char *base, const char *label, const grid *from, uint64_t number,
                    frag_policy_spec *spec, frag_error *error)
{
    if (!frag_policy_spec_parse(base, spec, error))
        return false;
    frag_text name = {0};
    frag_text_add(&name, "%s", label != NULL ? label : base);
    bool has_options = strchr(base, ':') != NULL && label == NULL;
    for (size_t i = 0; i < from->count; i++) {
        uint64_t below = 1;
        for (size_t j = i + 1; j < from->count; j++)
            below *= from->choices[j].count;
        const char *text = from->choices[i].texts[number / below % from->choices[i].count];
        if (!frag_policy_spec_set(spec, from->options[i]->key, text, error)) {
            error->line = from->options[i]->line;
            error->column = from->options[i]->column;
            frag_text_destroy(&name);
            return false;
        }
        frag_text_add(&name, "%s%s=%s", i == 0 && !has_options ? ":" : ",", from->options[i]->key,
                      text);
    }
    frag_policy_spec_label(spec, name.bytes);
    frag_text_destroy(&name);
    return true;
}

static bool add_combinations(frag_experiment *into, size_t *capacity, const char *base,
                             const char *label, const grid *from, const frag_yaml_node *random,
                             frag_error *error)
{
    uint64_t *chosen = NULL;
    uint64_t count = 0;
    bool ok = choose(random, from->combinations, &chosen, &count, error);
    for (uint64_t i = 0; ok && i < count; i++) {
        into->policies =
            frag_grow(into->policies, capacity, into->policy_count + 1, sizeof *into->policies);
        into->policies[into->policy_count] = (frag_policy_spec){0};
        ok = combine(base, label, from, chosen[i], &into->policies[into->policy_count], error);
        into->policy_count++;
    }
    frag_free(chosen);
    return ok;
}

static bool add_policy(const frag_yaml_node *node, frag_experiment *into, size_t *capacity,
                       frag_error *error)
{
    static const char *const keys[] = {"policy", "label", "options", "random", NULL};
    const frag_yaml_node *policy = node;
    const frag_yaml_node *label = NULL;
    const frag_yaml_node *options = NULL;
    const frag_yaml_node *random = NULL;
    if (node->kind == FRAG_YAML_MAPPING) {
        if (!frag_yaml_check_keys(node, keys, error))
            return false;
        policy = frag_yaml_find(node, "policy");
        label = frag_yaml_find(node, "label");
        options = frag_yaml_find(node, "options");
        random = frag_yaml_find(node, "random");
        if (policy == NULL)
            return frag_fail_line(error, node->line, node->column,
                                  "names no policy; expected policy: NAME");
    }
    const char *base = NULL;
    const char *name = NULL;
    if (!frag_yaml_text(policy, &base, error) ||
        (label != NULL && !frag_yaml_text(label, &name, error)))
        return false;
    grid combinations = {0};
    bool ok = read_grid(options, &combinations, error) &&
              add_combinations(into, capacity, base, name, &combinations, random, error);
    free_grid(&combinations);
    /* The error of a policy is worded for the command line, but its place is in this file. */
    if (!ok)
        error->where[0] = '\0';
    if (!ok && error->line == 0) {
        error->line = policy->line;
        error->column = policy->column;
    }
    return ok;
}

static bool read_policies(const frag_yaml_node *node, frag_experiment *into, frag_error *error)
{
    size_t capacity = 0;
    if (!frag_yaml_expect(node, FRAG_YAML_SEQUENCE, "policies", error))
        return false;
    if (node->first == NULL)
        return frag_fail_line(error, node->line, node->column,
                              "policies is empty; expected at least one");
    for (const frag_yaml_node *item = node->first; item != NULL; item = item->next)
        if (!add_policy(item, into, &capacity, error))
            return false;
    return true;
}

/* ---- the rest */

static bool read_capacities(const frag_yaml_node *node, frag_experiment *into, frag_error *error)
{
    values list = {0};
    bool ok = true;
    if (node == NULL)
        add_value(&list, "unlimited");
    else
        ok = add_values(&list, node, error);
    into->capacities = frag_alloc(list.count, sizeof *into->capacities);
    for (size_t i = 0; ok && i < list.count; i++) {
        uint64_t bytes = 0;
        ok = frag_bytes_parse(list.texts[i], &bytes, error) &&
             (bytes > 0 || frag_fail(error, FRAG_E_INPUT,
                                     "a device without memory serves nothing; write a size such "
                                     "as 24GiB"));
        into->capacities[into->capacity_count++] = bytes;
    }
    if (!ok && error->line == 0 && node != NULL) {
        error->line = node->line;
        error->column = node->column;
    }
    free_values(&list);
    return ok;
}

/* A relative path goes on behind the folder, which ends in a slash or is "". */
static char *path_from(const char *folder, const char *path)
{
    frag_text text = {0};
    frag_text_add(&text, "%s%s", path[0] == '/' ? "" : folder, path);
    return text.bytes;
}

static bool read_traces(const char *folder, const frag_yaml_node *node, frag_experiment *into,
                        frag_error *error)
{
    values list = {0};
    bool ok = node->kind != FRAG_YAML_MAPPING
                  ? add_values(&list, node, error)
                  : frag_fail_line(error, node->line, node->column,
                                   "traces is a mapping; expected a list of files");
    into->traces = frag_alloc(list.count, sizeof *into->traces);
    for (size_t i = 0; ok && i < list.count; i++)
        into->traces[into->trace_count++] = path_from(folder, list.texts[i]);
    free_values(&list);
    return ok;
}

static bool read_root(const char *folder, const frag_yaml_node *root, frag_experiment *into,
                      frag_error *error)
{
    static const char *const keys[] = {"name",   "traces", "policies", "capacities",
                                       "on_oom", "bounds", NULL};
    if (!frag_yaml_expect(root, FRAG_YAML_MAPPING, "an experiment", error) ||
        !frag_yaml_check_keys(root, keys, error))
        return false;
    const frag_yaml_node *traces = frag_yaml_find(root, "traces");
    const frag_yaml_node *policies = frag_yaml_find(root, "policies");
    const frag_yaml_node *on_oom = frag_yaml_find(root, "on_oom");
    const frag_yaml_node *bounds = frag_yaml_find(root, "bounds");
    const char *what = "stop";
    if (traces == NULL || policies == NULL)
        return frag_fail_line(error, root->line, root->column,
                              "has no %s; an experiment needs traces and policies",
                              traces == NULL ? "traces" : "policies");
    if (!read_traces(folder, traces, into, error) || !read_policies(policies, into, error) ||
        !read_capacities(frag_yaml_find(root, "capacities"), into, error) ||
        (on_oom != NULL && !frag_yaml_text(on_oom, &what, error)) ||
        (bounds != NULL && !frag_yaml_flag(bounds, &into->has_bounds, error)))
        return false;
    if (strcmp(what, "stop") != 0 && strcmp(what, "skip") != 0)
        return frag_fail_line(error, on_oom->line, on_oom->column,
                              "on_oom is '%s'; expected stop or skip", what);
    into->is_oom_skipped = strcmp(what, "skip") == 0;
    return true;
}

static bool read_experiment(frag_yaml_node *root, const char *folder, frag_experiment *experiment,
                            frag_error *error)
{
    bool ok = read_root(folder, root, experiment, error);
    frag_yaml_destroy(root);
    if (!ok && error->code == FRAG_E_USAGE)
        error->code = FRAG_E_INPUT;
    return ok;
}

bool frag_experiment_load(const char *path, frag_experiment *experiment, frag_error *error)
{
    *experiment = (frag_experiment){0};
    frag_yaml_node *root = frag_yaml_load(path, error);
    if (root == NULL)
        return false;
    frag_text folder = {0};
    frag_text_add(&folder, "%.*s", (int)frag_path_folder_bytes(path), path);
    bool ok = read_experiment(root, folder.bytes, experiment, error);
    frag_text_destroy(&folder);
    return ok || frag_error_in(error, path);
}

bool frag_experiment_parse(const char *text, size_t length, const char *folder,
                           frag_experiment *experiment, frag_error *error)
{
    *experiment = (frag_experiment){0};
    frag_yaml_node *root = frag_yaml_parse(text, length, error);
    return (root != NULL && read_experiment(root, folder, experiment, error)) ||
           frag_error_in(error, "experiment");
}

void frag_experiment_destroy(frag_experiment *experiment)
{
    for (size_t i = 0; i < experiment->trace_count; i++)
        frag_free(experiment->traces[i]);
    frag_free(experiment->traces);
    frag_policy_specs_destroy(experiment->policies, experiment->policy_count);
    frag_free(experiment->capacities);
    *experiment = (frag_experiment){0};
}
