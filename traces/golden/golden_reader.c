#include "traces/golden/golden_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

bool frag_golden_fail_member(const frag_golden_reader *reader, const char *key,
                             const char *expected)
{
    char found[FRAG_JSON_FOUND_MAX];
    return frag_fail_line(reader->error, reader->line, 0, "\"%s\" %s; expected %s", key,
                          frag_json_found(frag_json_at_path(reader->json, key), found), expected);
}

bool frag_golden_read_count(const frag_golden_reader *reader, const char *key, uint64_t max,
                            uint64_t *value)
{
    if (frag_json_read_number(frag_json_at(reader->json, key), value) && *value <= max)
        return true;
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from 0 to %llu", (unsigned long long)max);
    return frag_golden_fail_member(reader, key, expected);
}

bool frag_golden_read_size(const frag_golden_reader *reader, uint64_t *bytes)
{
    return (frag_json_read_number(frag_json_at(reader->json, "size"), bytes) &&
            *bytes <= FRAG_REQUEST_BYTES_MAX) ||
           frag_golden_fail_member(reader, "size", "0 or " FRAG_REQUEST_BYTES_RANGE);
}

bool frag_golden_read_text(const frag_golden_reader *reader, const char *key, const char **text)
{
    return frag_json_read_text(frag_json_at(reader->json, key), text) ||
           frag_golden_fail_member(reader, key, "a text");
}

bool frag_golden_read_flag(const frag_golden_reader *reader, const char *key, bool *flag)
{
    return frag_json_read_flag(frag_json_at(reader->json, key), flag) ||
           frag_golden_fail_member(reader, key, "true or false");
}

bool frag_golden_read_fraction(const frag_golden_reader *reader, frag_golden_line *line)
{
    double value = 0;
    if (!frag_json_read_ratio(frag_json_at(reader->json, "value"), &value) ||
        !(value >= 0 && value <= 1))
        return frag_golden_fail_member(reader, "value", "a number from 0 to 1");
    line->bytes = frag_ratio_code(value);
    return true;
}

uint32_t frag_golden_keep_text(frag_golden_reader *reader, const char *text)
{
    return frag_strings_add(&reader->log->strings, text, strlen(text));
}

/* Ids count up from 0, so that a table by id is no larger than the log. */
bool frag_golden_take_id(frag_golden_reader *reader, frag_golden_line *line)
{
    uint64_t id = 0;
    if (!frag_golden_read_count(reader, "id", UINT32_MAX, &id))
        return false;
    if (id > reader->id_end)
        return frag_fail_line(reader->error, reader->line, 0,
                              "id %llu follows %llu; expected ids that count up from 0",
                              (unsigned long long)id, (unsigned long long)reader->id_end);
    if (id == reader->id_end) {
        reader->owners = frag_grow(reader->owners, &reader->owner_capacity, (size_t)id + 1,
                                   sizeof *reader->owners);
        reader->owners[id] = 0;
        reader->id_end++;
    }
    if (reader->owners[id] != 0)
        return frag_fail_line(reader->error, reader->line, 0,
                              "id %llu is in use already; expected a new one",
                              (unsigned long long)id);
    line->owner = reader->log->line_count;
    if (!line->is_oom)
        reader->owners[id] = reader->log->line_count + 1;
    return true;
}

bool frag_golden_find_id(frag_golden_reader *reader, frag_golden_line *line)
{
    uint64_t id = 0;
    if (!frag_golden_read_count(reader, "id", UINT32_MAX, &id))
        return false;
    if (id >= reader->id_end || reader->owners[id] == 0)
        return frag_fail_line(reader->error, reader->line, 0,
                              "id %llu is not in use; expected that of an alloc that was served",
                              (unsigned long long)id);
    line->owner = reader->owners[id] - 1;
    line->device = reader->log->lines[line->owner].device;
    if (line->op == FRAG_GOLDEN_FREE)
        reader->owners[id] = 0;
    return true;
}

void frag_golden_keep_call(frag_golden_reader *reader, const frag_golden_call *call)
{
    frag_golden_log *log = reader->log;
    *FRAG_APPEND(log->calls, log->call_count, reader->call_capacity) = *call;
}

void frag_golden_keep_line(frag_golden_reader *reader, const frag_golden_line *line)
{
    frag_golden_log *log = reader->log;
    *FRAG_APPEND(log->lines, log->line_count, reader->line_capacity) = *line;
}

void frag_golden_keep_figure(frag_golden_reader *reader, const char *name, int64_t value)
{
    frag_golden_log *log = reader->log;
    *FRAG_APPEND(log->figures, log->figure_count, reader->figure_capacity) =
        (frag_golden_figure){frag_golden_keep_text(reader, name), value};
}

/* ---- a whole log */

/* Logs of PyTorch say "torch", those of other frameworks' pools "version". */
static bool read_head(frag_golden_reader *reader)
{
    const char *library = NULL;
    if (!frag_json_find_text(reader->json, "golden", &library))
        return frag_fail_line(reader->error, 1, 0,
                              "this is JSON, but not the head of a golden log; expected \"golden\" "
                              "in its first line");
    return frag_json_at(reader->json, "torch") != NULL ? frag_golden_torch_read_head(reader)
                                                       : frag_golden_peer_read_head(reader);
}

static bool read_next(frag_golden_reader *reader)
{
    if (reader->line == 1)
        return read_head(reader);
    return reader->log->library != 0 ? frag_golden_peer_read_line(reader)
                                     : frag_golden_torch_read_line(reader);
}

static bool is_last(const frag_golden_log *log, frag_golden_op op)
{
    return log->line_count > 0 && log->lines[log->line_count - 1].op == op;
}

static bool read_lines(frag_golden_reader *reader)
{
    frag_line line = {0};
    for (;;) {
        bool is_found =
            frag_line_find(reader->input, &FRAG_GOLDEN_LINE_LIMIT, &line, reader->error);
        reader->line = line.number;
        if (!is_found) {
            reader->error->line = reader->line;
            return false;
        }
        if (line.taken == 0)
            break;
        if (is_last(reader->log, FRAG_GOLDEN_END))
            return frag_fail_line(reader->error, reader->line, 0,
                                  "a line follows the end of the log; expected none");
        if (reader->line == 1 && line.bytes[0] != '{')
            return frag_fail_line(
                reader->error, 1, 0,
                "not a golden log; expected a JSON object with \"golden\" in its first line");
        reader->json = frag_json_parse(line.bytes, line.length, reader->error);
        if (reader->json == NULL) {
            reader->error->line = reader->line;
            return false;
        }
        bool ok = read_next(reader);
        frag_json_destroy(reader->json);
        if (!ok)
            return false;
        frag_input_skip(reader->input, line.taken);
        /* The lines that follow were written by a library that had failed. */
        if (is_last(reader->log, FRAG_GOLDEN_ERROR))
            return true;
    }
    if (reader->line == 1)
        return frag_fail_line(reader->error, 1, 0, "the file is empty; expected a golden log");
    return is_last(reader->log, FRAG_GOLDEN_END) || reader->log->has_hung ||
           frag_fail_line(reader->error, reader->line, 0,
                          "the log stops without its \"%s\" line; it was cut short",
                          reader->log->library != 0 ? "summary" : "end");
}

bool frag_golden_log_read(frag_input *input, frag_golden_log *log, frag_error *error)
{
    *log = (frag_golden_log){0};
    frag_strings_add(&log->strings, "", 0);
    frag_error unused = {0};
    frag_golden_reader reader = {
        .input = input, .log = log, .error = error != NULL ? error : &unused};
    bool ok = read_lines(&reader);
    frag_free(reader.owners);
    if (!ok) {
        frag_golden_log_destroy(log);
        return frag_error_in(error, frag_input_name(input));
    }
    return true;
}
