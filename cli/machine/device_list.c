/* `fraglab device list`: the bundled device descriptions, as a table and as JSON. */
#include "cli/machine/device_command.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/text_table.h"
#include "sim/device/card_json.h"
#include "sim/device/card_table.h"

/* Unknown is nothing, as everywhere. */
static void add_bytes(frag_text_table *table, uint64_t bytes)
{
    char text[FRAG_BYTES_TEXT_MAX] = "";
    frag_text_table_add(table, bytes > 0 ? frag_bytes_text(bytes, text) : "");
}

static void add_count(frag_text_table *table, uint64_t count)
{
    char text[FRAG_BYTES_TEXT_MAX] = "";
    frag_text_table_add(table, count > 0 ? frag_count_text(count, text) : "");
}

static void add_headers(frag_text_table *table)
{
    static const char *const headers[] = {"--gpu", "memory",     "figures", "data sheet", "context",
                                          "SMs",   "capability", "times",   "card"};
    table->columns = sizeof headers / sizeof headers[0];
    table->is_last_text = true;
    frag_text_table_add_line(table, headers);
}

static void add_line(frag_text_table *table, const char *name, const frag_device_description *card)
{
    frag_text_table_add(table, name);
    add_bytes(table, card->total_bytes);
    frag_text_table_add(table, frag_origin_name(card->origin));
    add_bytes(table, card->nominal_bytes);
    add_bytes(table, card->context_bytes);
    add_count(table, card->compute.multiprocessor_count);
    frag_text_table_add(table, card->compute.capability);
    frag_text_table_add(table, card->has_latency ? "yes" : "");
    frag_text_table_add(table, card->name);
}

static const frag_command_option options[] = {
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "for people (the default), or one JSON object a line"},
    {.name = NULL},
};

static int run_device_list(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    bool is_json = frag_arguments_is(arguments, "format", "jsonl");
    size_t count = 0;
    char **names = frag_card_names(&count, &error);
    if (names == NULL)
        return frag_report(&error);
    int code = 0;
    frag_text_table table = {.columns = 0};
    if (!is_json)
        add_headers(&table);
    for (size_t i = 0; i < count; i++) {
        frag_device_description card;
        error = (frag_error){.code = FRAG_E_NONE};
        if (!frag_card_load(names[i], &card, NULL, &error)) {
            int failure = frag_report(&error);
            code = code != 0 ? code : failure;
        } else if (is_json) {
            frag_card_write_json(names[i], &card, stdout);
        } else {
            add_line(&table, names[i], &card);
        }
    }
    frag_folder_names_destroy(names, count);
    if (!is_json)
        frag_text_table_print(&table, false, stdout);
    return code;
}

const frag_command frag_command_device_list = {
    .name = "list",
    .summary = "the bundled descriptions of cards",
    .description = "Lists the cards that --gpu knows by name: memory, the source of that figure, "
                   "how much of it a program's context takes, multiprocessors, compute "
                   "capability, and whether times of device calls are known. Figures are measured "
                   "(by 'fraglab device probe' on the card), reported (what the driver reports on "
                   "such cards, published with its source), or nominal (a data sheet: no program "
                   "can have that much). Names may be written in any usual way: rtx4090, 'RTX "
                   "4090' and 4090 are one card.",
    .examples =
        "fraglab device list\n"
        "fraglab device list --format jsonl  # with sources, other names, caches, bandwidth\n"
        "fraglab run train.pickle --policy all --gpu l4  # would it fit on that card?",
    .options = options,
    .run = run_device_list,
};
