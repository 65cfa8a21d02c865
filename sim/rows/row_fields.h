/* The fields of every kind of result row, in one table for each kind: what a field is called, its
 * type, which direction is better, where a run keeps it, what it means. Rows are written, read
 * back, compared and described by these tables alone: a new metric is one entry there. */
#ifndef FRAG_ROWS_ROW_FIELDS_H
#define FRAG_ROWS_ROW_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/json.h"
#include "sim/rows/row.h"

#define FRAG_SCHEMA_RUN "fraglab.run/1"
#define FRAG_SCHEMA_COMPARISON "fraglab.comparison/1"
#define FRAG_SCHEMA_MIN_CAPACITY "fraglab.min-capacity/1"
#define FRAG_SCHEMA_REFUSED "fraglab.refused/1"

typedef enum frag_row_type {
    FRAG_ROW_TEXT,
    FRAG_ROW_COUNT,
    FRAG_ROW_BYTES,
    FRAG_ROW_NS,
    FRAG_ROW_SIGNED,       /* a count that may be below zero */
    FRAG_ROW_SIGNED_BYTES, /* bytes, likewise */
    FRAG_ROW_RATIO,
    FRAG_ROW_FLAG,
    FRAG_ROW_NULL /* reserved: always null */
} frag_row_type;

/* What a field says about quality. */
typedef enum frag_direction {
    FRAG_NO_METRIC, /* names, places and limits: never compared */
    FRAG_LESS_IS_BETTER,
    FRAG_MORE_IS_BETTER,
    FRAG_EQUAL_IS_BETTER, /* a fact of the trace: any change is for the worse */
    FRAG_LESS_IF_ASKED,   /* noise, such as wall time: compared only when it is named */
    FRAG_MORE_IF_ASKED
} frag_direction;

/* The value of a field in one row. */
typedef struct frag_row_value {
    bool is_known;    /* false: null */
    const char *text; /* of texts; NULL: own */
    char own[16];
    uint64_t number; /* of counts, bytes and times; of flags 0 or 1 */
    double ratio;
} frag_row_value;

static inline frag_row_value frag_row_of_text(const char *text)
{
    return (frag_row_value){.is_known = text != NULL, .text = text};
}

/* FRAG_UNLIMITED: unknown or without limit. */
static inline frag_row_value frag_row_of_number(uint64_t number)
{
    return (frag_row_value){.is_known = number != FRAG_UNLIMITED, .number = number};
}

static inline frag_row_value frag_row_of_flag(bool flag)
{
    return (frag_row_value){.is_known = true, .number = flag ? 1 : 0};
}

static inline frag_row_value frag_row_of_ratio(double ratio)
{
    return (frag_row_value){.is_known = true, .ratio = ratio};
}

/* What of a row keeps a value. */
typedef enum frag_row_part {
    FRAG_PART_NONE,
    FRAG_PART_ROW, /* the frag_row itself */
    FRAG_PART_POLICY,
    FRAG_PART_TRACE,
    FRAG_PART_DEVICE,
    FRAG_PART_DESCRIPTION, /* of the card that is simulated */
    FRAG_PART_CARD,        /* the real one */
    FRAG_PART_RESULT,
    FRAG_PART_PACKING,
    FRAG_PART_COUNT
} frag_row_part;

typedef enum frag_row_store {
    FRAG_STORE_NONE,
    FRAG_STORE_NUMBER, /* uint64_t; FRAG_UNLIMITED is null */
    FRAG_STORE_SHORT,  /* uint32_t, or an enum */
    FRAG_STORE_REAL,   /* double */
    FRAG_STORE_FLAG,   /* bool */
    FRAG_STORE_TEXT,   /* const char *; NULL is null */
    FRAG_STORE_CHARS   /* an array of char; where the field may be null, "" is */
} frag_row_store;

/* Where the value is: a member of a part, or computed from the row, or both: then the member is
 * only where it goes when a row is read. */
typedef struct frag_row_place {
    frag_row_part part;
    frag_row_store store;
    size_t offset; /* of the member */
    size_t size;
    size_t flag;                          /* offset of a bool: is there a value? 0: always */
    bool is_0_null;                       /* 0 says that there is none */
    const char *(*name)(uint32_t number); /* of an enum: its values in words, NULL behind them */
    frag_row_value (*compute)(const frag_row *row);
} frag_row_place;

typedef struct frag_row_field {
    const char *path; /* "peak.reserved_bytes": at most one object deep */
    frag_row_type type;
    bool is_nullable;
    frag_direction better;
    frag_row_place place; /* rows of a run only; the other kinds are written by their commands */
    const char *meaning;
} frag_row_field;

typedef struct frag_row_kind {
    const char *name; /* in the JSON Schema */
    const char *schema;
    const char *meaning;
    const frag_row_field *fields; /* in order of the row; ends with path NULL */
    /* What has members of any name, "memory_stats.*", and what is there only when asked for. */
    const frag_row_field *open_fields; /* ends with path NULL */
    const char *absent_groups[4];      /* objects that are null as a whole, ends with NULL */
} frag_row_kind;

const frag_row_kind *frag_row_kinds(size_t *count);
/* NULL: no row of ours. */
const frag_row_kind *frag_row_kind_find(const char *schema);
extern const frag_row_kind *const frag_row_kind_run;

/* The field of that path, an open one too; NULL: no table has it. *hint: the place to look at
 * first, and then the place behind it, so that whoever asks in order of a row searches nothing. */
const frag_row_field *frag_row_field_find(const frag_row_kind *kind, const char *path,
                                          size_t *hint);
/* Is the object null as a whole where there is nothing? */
bool frag_row_is_absent_group(const frag_row_kind *kind, const char *group);

/* ---- rows of a run */

frag_row_value frag_row_get(const frag_row *row, const frag_row_field *field);
const char *frag_row_value_text(const frag_row_value *value);
/* true: the part that has the field is not there at all. */
bool frag_row_is_absent(const frag_row *row, const frag_row_field *field);
/* Fills the parts that are given (the others NULL) from a stored row. false: FRAG_E_INPUT, a value
 * of another type than its field. */
bool frag_row_take(const frag_json *row, void *const parts[FRAG_PART_COUNT], frag_error *error);

/* ---- rows of the other kinds */

/* Writes and frees a row. It has exactly the fields of its kind's table; anything else is our bug.
 */
void frag_row_write(frag_json *row, FILE *stream);
/* The first field that a row has and its table has not, or the other way round. false: there is
 * none. */
bool frag_row_find_unlisted(frag_json *row, char *path, size_t size);

/* "lowest", "bump" ...: of a frag_address_rule. */
const char *frag_address_rule_name(uint32_t rule);

#endif
