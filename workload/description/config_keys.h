/* What a config.json of Hugging Face says beside the fields of a network: its head, how its weights
 * are stored, and which layers have a window. */
#ifndef FRAG_DESCRIPTION_CONFIG_KEYS_H
#define FRAG_DESCRIPTION_CONFIG_KEYS_H

#include "base/json.h"
#include "workload/description/description.h"

/* One field by its hf_key, in base. What is not there, or null where nothing follows from that,
 * stays as it is. (read.c) */
bool frag_config_read_field(const frag_json *json, const frag_field *field, void *base,
                            frag_error *error);

/* The network is complete. Weights in 4 or 8 bits of bitsandbytes are the knob quantize, and a
 * window is taken from layer_types; what is not described is refused. */
bool frag_config_read_keys(const frag_json *json, frag_workload *workload, frag_error *error);

#endif
