/* What is said of a card in JSON. */
#ifndef FRAG_DEVICE_CARD_JSON_H
#define FRAG_DEVICE_CARD_JSON_H

#include <stdio.h>

#include "sim/device/device_description.h"

/* One object on a line. name: what --gpu takes. */
void frag_card_write_json(const char *name, const frag_device_description *card, FILE *stream);

#endif
