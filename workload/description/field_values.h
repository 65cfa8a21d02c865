/* Values of fields: as text, and as the keys of a YAML mapping. */
#ifndef FRAG_DESCRIPTION_FIELD_VALUES_H
#define FRAG_DESCRIPTION_FIELD_VALUES_H

#include "base/formats/yaml.h"
#include "base/text.h"
#include "workload/description/description.h"

/* Which of "a|b|c", from 0. */
bool frag_choices_find(const char *choices, const char *text, uint64_t *index);
/* The one of that index, set as text, of which it returns the bytes. */
const char *frag_choices_name(const char *choices, uint64_t index, frag_text *text);
/* "a|b|c" for people, "a, b or c", added to text, of which it returns the bytes. */
const char *frag_choices_list(const char *choices, frag_text *text);

/* The field of that key; NULL: the table has none. */
const frag_field *frag_field_find(const frag_field *fields, const char *key);
/* base: of the struct that the field is in. */
void frag_field_set_number(const frag_field *field, void *base, double value);
/* The error has no place. */
bool frag_field_set_text(const frag_field *field, void *base, const char *text, frag_error *error);
/* Every field of the table at its initial value, but lengths. */
void frag_fields_set_initial(const frag_field *fields, void *base);

/* A table and the struct that it is of. */
typedef struct frag_field_group {
    const frag_field *fields;
    void *base;
} frag_field_group;

bool frag_field_read_node(const frag_field *field, void *base, const frag_yaml_node *node,
                          frag_error *error);
/* The keys of a mapping by tables; also: other keys, which are read elsewhere. Both end with NULL.
 */
bool frag_fields_read(const frag_yaml_node *mapping, const frag_field_group *groups,
                      const char *const *also, frag_error *error);

#endif
