/* The descriptions of cards that come along: devices/NAME.yaml. */
#ifndef FRAG_CLI_CARD_TABLE_H
#define FRAG_CLI_CARD_TABLE_H

#include "sim/device_description.h"

/* Reads the description of a card by name ("l4"), or from a file: what has a slash, or ends in
 * .yaml, or is "-". FRAG_E_USAGE when no card has that name; the nearest is suggested. */
bool frag_card_load(const char *name, frag_device_description *description, frag_error *error);

/* The names of all cards that come along, ascending. The caller frees each and the list. */
char **frag_card_names(size_t *count, frag_error *error);
void frag_card_names_destroy(char **names, size_t count);

#endif
