/* The options of policies that take PyTorch's settings, and the settings that their values make. */
#ifndef FRAG_PYTORCH_PYTORCH_OPTIONS_H
#define FRAG_PYTORCH_PYTORCH_OPTIONS_H

#include "allocators/pytorch/pytorch_settings.h"
#include "base/error.h"

extern const frag_option frag_pytorch_options[];

/* "auto" is the recorded version ("2.9"; "" when nothing is known), else the newest. FRAG_E_USAGE
 * when the version is not known. */
bool frag_pytorch_version(const char *text, const char *recorded, uint32_t *version,
                          frag_error *error);

/* Reads the option values: first the settings string (conf), then what is given besides it.
 * FRAG_E_USAGE when PyTorch of that version would refuse them too. recorded_version: what a
 * recording says ("2.9"), "" when nothing is known. */
bool frag_pytorch_settings_create(frag_pytorch_settings *settings, const frag_option_value *values,
                                  const char *recorded_version, frag_error *error);

/* Are the options of a policy these, so that its values can be read as settings? */
bool frag_pytorch_is_set_by(const frag_policy_ops *ops);
/* The settings of any policy whose options are these, for a recording of that version (NULL: not
 * known). false: they are not, or PyTorch would refuse the values. */
bool frag_pytorch_settings_of(frag_pytorch_settings *settings, const frag_policy_ops *ops,
                              const frag_option_value *values, const char *recorded_version);

#endif
