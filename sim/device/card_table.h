/* The bundled descriptions of cards: devices/NAME.yaml. */
#ifndef FRAG_DEVICE_CARD_TABLE_H
#define FRAG_DEVICE_CARD_TABLE_H

#include "base/folder.h"
#include "sim/device/device_description.h"

/* Reads the description of a card by a name of it ("l4", "RTX 4090", "a100"), or from a file: what
 * has a slash, or ends in .yaml, or is "-". note (NULL: not asked for) gets a sentence where the
 * name is of several cards and one was taken. FRAG_E_USAGE when no card has that name; the nearest
 * is suggested. */
bool frag_card_load(const char *name, frag_device_description *description, frag_text *note,
                    frag_error *error);

/* The names of all bundled cards, ascending; frag_folder_names_destroy. */
char **frag_card_names(size_t *count, frag_error *error);

#endif
