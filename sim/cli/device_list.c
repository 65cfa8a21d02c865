#include "sim/cli/device_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/base/bytes.h"
#include "sim/base/json.h"
#include "sim/cli/card_table.h"

static void print_line(const char *name, const frag_device_description *card)
{
    char total[FRAG_BYTES_TEXT_MAX];
    char context[FRAG_BYTES_TEXT_MAX] = "";
    if (card->context_bytes > 0)
        frag_bytes_text(card->context_bytes, context);
    printf("%-14s %12s  %12s  %-9s %-5s  %s\n", name, frag_bytes_text(card->total_bytes, total),
           context, frag_origin_name(card->origin), card->has_latency ? "yes" : "", card->name);
}

static void print_object(const char *name, const frag_device_description *card)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "gpu", name);
    frag_json_text(json, "name", card->name);
    frag_json_text(json, "origin", frag_origin_name(card->origin));
    frag_json_text(json, "source", card->source[0] != '\0' ? card->source : NULL);
    frag_json_text(json, "driver", card->driver[0] != '\0' ? card->driver : NULL);
    frag_json_text(json, "date", card->date[0] != '\0' ? card->date : NULL);
    frag_json_number(json, "total_bytes", card->total_bytes);
    frag_json_number(json, "context_bytes",
                     card->context_bytes > 0 ? card->context_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "page_bytes", frag_device_description_page(card));
    frag_json_flag(json, "has_latency", card->has_latency);
    frag_json_text(json, "digest", card->digest);
    frag_json_write(json, stdout, false);
}

static const frag_command_option options[] = {
    {.name = "format",
     .argument = "FORMAT",
     .choices = "table|jsonl",
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
    if (!is_json)
        printf("%-14s %12s  %12s  %-9s %-5s  %s\n", "--gpu", "memory", "context", "figures",
               "times", "card");
    for (size_t i = 0; i < count; i++) {
        frag_device_description card;
        error = (frag_error){.code = FRAG_E_NONE};
        if (!frag_card_load(names[i], &card, &error)) {
            int failure = frag_report(&error);
            code = code != 0 ? code : failure;
        } else if (is_json) {
            print_object(names[i], &card);
        } else {
            print_line(names[i], &card);
        }
    }
    frag_card_names_destroy(names, count);
    return code;
}

const frag_command frag_command_device_list = {
    .name = "list",
    .summary = "the cards whose descriptions come along",
    .description = "Lists what --gpu knows by name: memory, what a program's context takes of it, "
                   "and whether the figures were measured on the card or are those of a data "
                   "sheet (nominal: capacity alone, no context, no times).",
    .examples = "fraglab device list\n"
                "fraglab run train.pickle --policy all --gpu l4  # would it fit on that card?",
    .options = options,
    .run = run_device_list,
};
