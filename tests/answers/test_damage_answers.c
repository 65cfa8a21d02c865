/* What the reader of .fgt says of files whose numbers are others behind checksums that are right:
 * one beside what it was, on a border, that of another field; sections that are gone, twice or in
 * another order; of windows in them, and in files as they were written; and of single columns. What
 * was changed on purpose is pinned anew:
 *
 *   test_damage_answers            compares with tests/data/answers/damages.txt.zst
 *   test_damage_answers --write    prints what that file should hold (make answers-golden);
 *                                  with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/codec.h"
#include "base/memory.h"
#include "tests/fgt/fgt_sections.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/random_trace.h"
#include "tests/support/sample_recording.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum {
    RANDOM_FILES = 18,
    EVENTS_MAX = 120,
    SECTIONS_MAX = 400,
    DAMAGES = 4000, /* of each file */
    COLUMNS = 10000,
    COLUMN_MAX = 400,
    GROUP = 500, /* in one line */
};

typedef struct damage {
    uint64_t bits;
    const unsigned char *file;
    size_t bytes;
    size_t sections[SECTIONS_MAX + 1]; /* where they begin; behind the last one the end */
    size_t section_count;
} damage;

static uint64_t draw(damage *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

/* ---- files */

/* Small sections, so that there are many, and openings. */
static frag_text write_sections(const frag_recording *recording, damage *of)
{
    frag_error error = {0};
    frag_text file = {0};
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    const frag_fgt_sizes sizes = {.chunk_events = 2 + (uint32_t)draw(of, 9),
                                  .opening_events = draw(of, 12),
                                  .opening_ratio = (uint32_t)draw(of, 2)};
    assert_non_null(stream);
    assert_true(frag_fgt_write_sized(recording, sizes, stream, &error));
    assert_int_equal(fclose(stream), 0);
    frag_text_add_bytes(&file, bytes, count);
    free(bytes);
    return file;
}

static bool is_table(uint64_t kind)
{
    return (kind >= FRAG_FGT_STRINGS && kind <= FRAG_FGT_TABLES) || kind == FRAG_FGT_FIGURES;
}

static void add_section(frag_text *to, uint64_t kind, const unsigned char *payload, size_t bytes)
{
    frag_fgt_add(to, kind, 8);
    frag_fgt_add(to, bytes, 8);
    frag_fgt_add(to, frag_hash_bytes(payload, bytes), 8);
    if (bytes > 0)
        frag_text_add_bytes(to, (const char *)payload, bytes);
}

/* The index of a file whose chunks lie so much later. */
static void add_index(frag_text *to, const unsigned char *payload, size_t bytes, uint64_t later)
{
    unsigned char *copy = frag_alloc(bytes, 1);
    memcpy(copy, payload, bytes);
    for (size_t at = 8; at + FRAG_FGT_INDEX_ENTRY_BYTES < bytes; at += FRAG_FGT_INDEX_ENTRY_BYTES)
        for (size_t field = 16; field <= 40; field += 24) { /* of its section, of its opening */
            uint64_t offset = frag_fgt_get(copy + at + field, 8);
            frag_fgt_put(copy + at + field, offset == 0 ? 0 : offset + later, 8);
        }
    add_section(to, FRAG_FGT_INDEX, copy, bytes);
    frag_free(copy);
}

/* The same file with its tables as they are: how they are packed depends on the release of zstd,
 * and damage would hardly ever come through. */
static frag_text unpack_tables(const frag_text *packed)
{
    const unsigned char *in = (const unsigned char *)packed->bytes;
    frag_text file = {0};
    frag_unpacker *unpacker = frag_unpacker_create();
    frag_text_add_bytes(&file, packed->bytes, FRAG_FGT_HEADER_BYTES);
    for (size_t at = FRAG_FGT_HEADER_BYTES; at < packed->length;) {
        uint64_t kind = frag_fgt_get(in + at, 4);
        size_t bytes = (size_t)frag_fgt_get(in + at + 8, 8);
        const unsigned char *payload = in + at + FRAG_FGT_SECTION_BYTES;
        size_t raw_bytes = is_table(kind) ? (size_t)frag_fgt_get(payload, 8) : 0;
        if (kind == FRAG_FGT_INDEX) { /* behind everything else */
            add_index(&file, payload, bytes, file.length - at);
        } else if (!is_table(kind) || raw_bytes + 8 <= bytes) {
            add_section(&file, kind, payload, bytes);
        } else {
            frag_error error = {0};
            unsigned char *raw = frag_alloc(8 + raw_bytes, 1);
            memcpy(raw, payload, 8);
            assert_true(
                frag_decompress(unpacker, raw + 8, raw_bytes, payload + 8, bytes - 8, &error));
            add_section(&file, kind, raw, 8 + raw_bytes);
            frag_free(raw);
        }
        at += FRAG_FGT_SECTION_BYTES + bytes;
    }
    frag_unpacker_destroy(unpacker);
    return file;
}

static void find_sections(damage *of, const frag_text *file)
{
    of->file = (const unsigned char *)file->bytes;
    of->bytes = file->length;
    of->section_count = 0;
    for (size_t at = FRAG_FGT_HEADER_BYTES; at < of->bytes && of->section_count < SECTIONS_MAX;) {
        of->sections[of->section_count++] = at;
        at += FRAG_FGT_SECTION_BYTES + (size_t)frag_fgt_get(of->file + at + 8, 8);
        of->sections[of->section_count] = at;
    }
}

/* ---- damage */

/* A number of that width that has to do with what is there. */
static uint64_t draw_number(damage *of, const unsigned char *old, uint32_t width, size_t section)
{
    uint64_t value = frag_fgt_get(old, width);
    uint64_t beside = draw(of, 3) - 1;
    switch (draw(of, 12)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return UINT64_MAX;
    case 3:
        return value ^ (uint64_t)1 << draw(of, 8 * width);
    case 4:
        return of->sections[draw(of, of->section_count)] + beside;
    case 5:
        return of->sections[section + 1] - of->sections[section] - FRAG_FGT_SECTION_BYTES + beside;
    case 6:
    case 7: {
        size_t from = of->sections[draw(of, of->section_count)];
        size_t room = of->bytes - from - width;
        return frag_fgt_get(of->file + from + draw(of, (room < 64 ? room : 64) + 1), width) +
               beside;
    }
    case 8:
        return draw(of, 70) + beside;
    default:
        return value + 2 * draw(of, 2) - 1;
    }
}

static void change_number(damage *of, unsigned char *copy)
{
    static const uint32_t widths[] = {1, 2, 4, 4, 8, 8};
    size_t section = draw(of, of->section_count);
    uint32_t width = widths[draw(of, sizeof widths / sizeof *widths)];
    bool is_head = draw(of, 16) == 0;
    size_t from = of->sections[section] + (is_head ? 0 : FRAG_FGT_SECTION_BYTES);
    size_t end = is_head ? from + 16 : of->sections[section + 1];
    if (end - from < width)
        return;
    size_t at = (size_t)draw(of, end - from - width + 1);
    at = from + (draw(of, 3) == 0 ? at : at / 4 * 4);
    frag_fgt_put(copy + at, draw_number(of, of->file + at, width, section), width);
}

static void change_header(damage *of, unsigned char *copy)
{
    size_t at = (size_t)draw(of, FRAG_FGT_HEADER_BYTES);
    copy[at] = (unsigned char)(copy[at] + 2 * draw(of, 2) - 1);
}

/* A section is gone, there twice, or behind the next one. */
static void change_order(damage *of, frag_text *to)
{
    size_t section = draw(of, of->section_count);
    uint64_t what = draw(of, 3);
    const char *file = (const char *)of->file;
    size_t from = of->sections[section];
    size_t end = of->sections[section + 1];
    size_t next = section + 2 <= of->section_count ? of->sections[section + 2] : end;
    frag_text_add_bytes(to, file, from);
    if (what == 1)
        frag_text_add_bytes(to, file + from, end - from);
    if (what == 2 && next > end)
        frag_text_add_bytes(to, file + end, next - end);
    if (what != 0)
        frag_text_add_bytes(to, file + from, end - from);
    size_t rest = what == 2 ? next : end;
    if (of->bytes > rest)
        frag_text_add_bytes(to, file + rest, of->bytes - rest);
}

static void draw_damage(damage *of, frag_text *to)
{
    uint64_t what = draw(of, 24);
    if (what == 0) {
        change_order(of, to);
    } else {
        frag_text_add_bytes(to, (const char *)of->file, of->bytes);
        if (what == 1)
            change_header(of, (unsigned char *)to->bytes);
        else if (what == 2)
            to->length -= (size_t)draw(of, 80) % of->bytes;
        for (uint64_t i = 0; what > 4 && i < 1 + what / 20; i++)
            change_number(of, (unsigned char *)to->bytes);
    }
    repair_checksums((unsigned char *)to->bytes, to->length);
}

/* ---- what is read */

static const char *draw_mark(damage *of, const frag_recording *recording)
{
    uint32_t id = (uint32_t)draw(of, recording->strings.count);
    return frag_strings_get(&recording->strings, id);
}

static frag_window draw_window(damage *of, const frag_recording *recording)
{
    const frag_trace *trace = &recording->traces[draw(of, recording->trace_count)];
    frag_window window = {.has_device = draw(of, 8) != 0, .device = trace->device};
    uint64_t span = trace->stats.time_last_ns - trace->stats.time_first_ns + 3;
    switch (draw(of, 4)) {
    case 0:
        window.kind = FRAG_WINDOW_TIMES;
        window.first = trace->stats.time_first_ns + draw(of, span) - 1;
        window.end = draw(of, 4) == 0 ? UINT64_MAX : window.first + draw(of, span);
        break;
    case 1:
        window.kind = FRAG_WINDOW_MARKS;
        window.end = UINT64_MAX;
        window.first_mark = draw_mark(of, recording);
        window.last_mark = draw(of, 2) == 0 ? NULL : draw_mark(of, recording);
        break;
    default:
        window.kind = FRAG_WINDOW_EVENTS;
        window.first = draw(of, trace->event_count + 2);
        window.end = window.first + draw(of, trace->event_count - window.first / 2 + 2);
        if (draw(of, 6) == 0)
            window.end = UINT64_MAX;
    }
    return window;
}

static void tell_load(frag_text *out, const frag_text *file, const frag_load_options *options)
{
    pinned_tell_load(out, file->bytes, file->length, options);
    if (options->window != NULL)
        frag_text_add(out, "%d, %" PRIu64 " left out, %" PRIu64 " to %" PRIu64 "\n",
                      options->window->is_found, options->window->left_out,
                      options->window->found_first, options->window->found_end);
}

static void tell_file(frag_text *out, const frag_text *file, const frag_recording *recording,
                      uint64_t seed)
{
    damage of = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    size_t from = out->length;
    find_sections(&of, file);
    for (int i = 1; i <= DAMAGES; i++) {
        frag_text damaged = {0};
        frag_window window = draw_window(&of, recording);
        frag_load_options options = {.with_sites = draw(&of, 4) != 0};
        options.with_columns = draw(&of, 4) != 0;
        options.window = draw(&of, 2) == 0 ? NULL : &window;
        if (i % 4 == 0)
            frag_text_add_bytes(&damaged, file->bytes, file->length);
        else
            draw_damage(&of, &damaged);
        frag_text_add(out, "%d: ", i);
        tell_load(out, &damaged, &options);
        frag_text_destroy(&damaged);
        if (i % GROUP == 0) {
            pinned_fold(out, from, "  damages");
            from = out->length;
        }
    }
}

static void tell_written(frag_text *out, const char *name, const frag_recording *recording,
                         uint64_t seed)
{
    damage of = {.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++)
        (void)draw(&of, 2);
    frag_text packed = write_sections(recording, &of);
    frag_text file = unpack_tables(&packed);
    frag_text_add(out, "%s %" PRIu64 ": %zu bytes\n", name, seed, file.length);
    tell_file(out, &file, recording, seed);
    frag_text_destroy(&file);
    frag_text_destroy(&packed);
}

/* ---- columns */

/* Values as columns have them: few or many, small or not, in order or not. */
static uint32_t draw_values(damage *of, uint64_t *values)
{
    static const uint64_t most[] = {1, 2, 15, 16, 17, 255, 256, 65535, 65536, UINT32_MAX};
    uint32_t count = 1 + (uint32_t)draw(of, draw(of, 3) == 0 ? COLUMN_MAX : 20);
    uint64_t limit = most[draw(of, sizeof most / sizeof *most)];
    uint64_t unit = draw(of, 3) == 0 ? (uint64_t)1 << draw(of, 50) : 1;
    for (uint32_t i = 0; i < count; i++)
        values[i] = (draw(of, 30) == 0 ? draw(of, UINT32_MAX) : draw(of, limit + 1)) * unit;
    return count;
}

/* Some at a time, as one or the other kind of number. */
static void tell_cursor(frag_text *out, damage *of, frag_fgt_cursor *cursor, uint64_t value_max)
{
    static uint64_t values[COLUMN_MAX + 2];
    static uint32_t small[COLUMN_MAX + 2];
    static uint8_t bytes[COLUMN_MAX + 2];
    frag_error error = {0};
    uint64_t sum = 0;
    bool ok = true;
    uint64_t how = draw(of, 3);
    frag_text_add(out, "%d ", frag_fgt_cursor_is_zero(cursor));
    if (how == 0 && value_max <= UINT8_MAX) {
        ok = frag_fgt_cursor_bytes(cursor, bytes, &error);
        for (uint32_t i = 0; ok && i < cursor->count; i++)
            pinned_add(&sum, bytes[i]);
    } else {
        for (uint32_t done = 0, step = 0; ok && done < cursor->count; done += step) {
            step = 1 + (uint32_t)draw(of, cursor->count - done);
            ok = how == 1 && value_max <= UINT32_MAX
                     ? frag_fgt_cursor_next_32(cursor, small, step, &error)
                     : frag_fgt_cursor_next(cursor, values, step, &error);
            for (uint32_t i = 0; ok && i < step; i++)
                pinned_add(&sum, how == 1 && value_max <= UINT32_MAX ? small[i] : values[i]);
        }
    }
    frag_text_add(out, "%" PRIx64 " %s\n", ok ? sum : 0, error.sentence);
    frag_fgt_cursor_close(cursor);
}

static void tell_column(frag_text *out, frag_fgt_encoder *encoder, damage *of)
{
    static uint64_t values[COLUMN_MAX];
    static unsigned char raw[FRAG_FGT_RAW_BYTES_MAX(COLUMN_MAX)];
    static const uint32_t bits[] = {8, 16, 32, 64, 33, 31};
    uint32_t count = draw_values(of, values);
    frag_fgt_encoder_take(encoder, values, count);
    for (int encoding = FRAG_FGT_PLAIN; encoding <= FRAG_FGT_BITS; encoding++) {
        frag_fgt_coding coding = {0};
        frag_fgt_cursor cursor;
        frag_error error = {0};
        size_t bytes = frag_fgt_encode(encoder, (frag_fgt_encoding)encoding, raw, &coding);
        uint64_t value_max = UINT64_MAX >> (64 - bits[draw(of, sizeof bits / sizeof *bits)]);
        uint64_t what = draw(of, 8);
        frag_text_add(out, "%d: %zu, %d %d %d, ", encoding, bytes, coding.encoding, coding.width,
                      coding.value_width);
        if (what == 0)
            coding.width = (uint8_t)(coding.width + 2 * draw(of, 2) - 1);
        if (what == 1)
            coding.value_width = (uint8_t)(coding.value_width + 2 * draw(of, 2) - 1);
        if (what == 2)
            coding.encoding = (uint8_t)draw(of, 5);
        if (what == 3 && bytes > 0)
            bytes -= 1;
        if (what >= 4 && what < 6 && bytes > 0)
            raw[draw(of, bytes)] ^= (unsigned char)(1 << draw(of, 8));
        unsigned char *exact = frag_alloc(bytes, 1); /* nothing lies behind it */
        if (bytes > 0)
            memcpy(exact, raw, bytes);
        if (frag_fgt_cursor_open(&cursor, coding, exact, bytes, value_max, count, &error))
            tell_cursor(out, of, &cursor, value_max);
        else
            frag_text_add(out, "%s\n", error.sentence);
        frag_free(exact);
    }
}

static void tell_columns(frag_text *out)
{
    frag_fgt_encoder *encoder = frag_fgt_encoder_create();
    for (uint64_t seed = 0; seed < COLUMNS;) {
        size_t from = out->length;
        for (int i = 0; i < GROUP; i++) {
            damage of = {.bits = (++seed) * 0x9e3779b97f4a7c15u};
            for (int k = 0; k < 4; k++)
                (void)draw(&of, 2);
            tell_column(out, encoder, &of);
        }
        pinned_fold(out, from, "columns");
    }
    frag_fgt_encoder_destroy(encoder);
}

/* ---- recordings */

/* A random trace with times, marks, call sites and addresses, and a second device. */
static void write_rich(frag_text *out, const random_trace *trace, uint64_t *bits)
{
    static const char *const marks[] = {"mark \"step\" begin", "mark \"step\" end", "mark \"a\"",
                                        "mark \"b\" begin", "mark \"b\" end"};
    frag_text plain = {0};
    uint64_t time = 1000;
    bool has_begun = false;
    random_trace_write(trace, &plain);
    const char *line = plain.bytes;
    for (uint64_t number = 0; *line != '\0'; number++) {
        size_t length = strcspn(line, "\n");
        bool is_event = number > 0 && *line != '#' && length > 0;
        const char *initial = strstr(line, " initial");
        has_begun |= is_event && (initial == NULL || initial > line + length);
        frag_text_add(out, "%.*s", (int)length, line);
        time += xorshift_next(bits) % 4;
        if (is_event && strncmp(line, "alloc ", 6) == 0)
            frag_text_add(out, " addr=0x%" PRIx64 " site=%d",
                          ((uint64_t)0x7f00 << 32) + 512 * (xorshift_next(bits) % 900),
                          (int)(xorshift_next(bits) % 3));
        frag_text_add(out, is_event ? " time=%" PRIu64 "\n" : "\n", time);
        if (number == 0)
            frag_text_add(out, "meta \"k\" \"v\"\nframe \"f\" \"a.py\" 3\nframe \"g\" \"b.py\" 4\n"
                               "site 0\nsite 1 0\n");
        else if (has_begun && xorshift_next(bits) % 10 == 0)
            frag_text_add(out, "%s time=%" PRIu64 "\n", marks[xorshift_next(bits) % 5], time);
        line += length + (line[length] == '\n');
    }
    if (xorshift_next(bits) % 3 == 0)
        frag_text_add(out, "device 5\nalloc 0 512 time=7\nmark \"a\" time=9\nfree 0 time=11\n");
    frag_text_destroy(&plain);
}

static void tell_random(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 61001; count < RANDOM_FILES; seed++) {
        frag_text text = {0};
        frag_recording recording;
        frag_findings findings;
        uint64_t bits = seed * 0x9e3779b97f4a7c15u;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        write_rich(&text, &trace, &bits);
        frag_test_load_well(text.bytes, &recording, &findings);
        tell_written(out, "random", &recording, seed);
        frag_recording_destroy(&recording);
        frag_text_destroy(&text);
        count++;
    }
    random_trace_destroy(&trace);
}

static void tell_all(frag_text *out)
{
    frag_recording recording;
    for (int has_newest = 0; has_newest < 2; has_newest++) {
        sample_recording_of(&recording, has_newest != 0);
        tell_written(out, "sample", &recording, (uint64_t)has_newest);
        frag_recording_destroy(&recording);
    }
    tell_random(out);
    tell_columns(out);
}

static const pinned_lines pinned = {"tests/data/answers/damages.txt.zst", tell_all,
                                    "answers-golden"};

/* Whose compressed sections the damages fall into; others write other bytes. */
static const char pinned_with[] = "1.5.4";

int main(int argc, char **argv)
{
    const char *version = frag_codec_library_version(FRAG_CODEC_ZSTD);
    if (argc < 2 && strcmp(version, pinned_with) != 0) {
        printf("[  SKIPPED ] damages: pinned with zstd %s, here is %s\n", pinned_with, version);
        return 0;
    }
    return pinned_lines_test(&pinned, argc, argv);
}
