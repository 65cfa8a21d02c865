/* What PyTorch asks a card when it chooses sizes, out of the description of the card. */
#ifndef FRAG_WORKLOAD_TAPE_CARD_H
#define FRAG_WORKLOAD_TAPE_CARD_H

#include "sim/device/device_description.h"
#include "workload/tape/tape.h"

/* An A100's answers, for where no card is named. */
extern const frag_tape_card frag_tape_card_usual;

/* name: as the user wrote it. FRAG_E_USAGE: the description tells no compute capability of CUDA. */
bool frag_tape_card_read(const frag_device_description *description, const char *name,
                         frag_tape_card *card, frag_error *error);

#endif
