#include "traces/formats.h"

#include <string.h>

#include "base/text.h"
#include "traces/format_look.h"
#include "traces/text/text_trace.h"

static const struct {
    const char *name;
    const frag_format *table;
} formats[FRAG_FORMAT_COUNT] = {[FRAG_FORMAT_AUTO] = {"auto", NULL},
#define ROW(id, ident, text) [FRAG_FORMAT_##id] = {text, &frag_format_##ident},
                                FRAG_FORMATS(ROW, ROW, ROW)
#undef ROW
};

const frag_format *frag_trace_format_table(frag_trace_format format)
{
    return formats[format].table;
}

bool frag_trace_format_find(const char *name, frag_trace_format *format)
{
    for (uint32_t i = 0; i < FRAG_FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, name) == 0) {
            *format = (frag_trace_format)i;
            return true;
        }
    return false;
}

static bool is_like(uint32_t format, bool has_magic, const unsigned char *bytes, size_t count)
{
    const frag_format *table = formats[format].table;
    return table != NULL && table->is_like != NULL && table->has_magic == has_magic &&
           table->is_like(bytes, count);
}

bool frag_trace_format_detect(const unsigned char *bytes, size_t count, frag_trace_format *format)
{
    size_t mark = frag_text_mark_bytes(bytes, count);
    bytes += mark;
    count -= mark;
    for (uint32_t i = 0; i < 2 * FRAG_FORMAT_COUNT; i++)
        if (is_like(i % FRAG_FORMAT_COUNT, i < FRAG_FORMAT_COUNT, bytes, count)) {
            *format = (frag_trace_format)(i % FRAG_FORMAT_COUNT);
            return true;
        }
    return false;
}

/* "[2026-01-02 12:00:00]" begins a log. */
static bool is_json(const unsigned char *bytes, size_t count)
{
    size_t first = frag_look_past_space(bytes, count, 1);
    return frag_look_starts(bytes, count, "{") ||
           (frag_look_starts(bytes, count, "[") &&
            (first == count || strchr("{[\"]", bytes[first]) != NULL));
}

/* Of compressed files whose codec is not read: its name. NULL: it is none of them. */
static const char *foreign_codec(const unsigned char *bytes, size_t count)
{
    static const char *const codecs[][2] = {{"\xfd"
                                             "7zXZ",
                                             "xz"},
                                            {"BZh", "bzip2"},
                                            {"\x04\x22\x4d\x18", "lz4"}};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (frag_look_starts(bytes, count, codecs[i][0]))
            return codecs[i][1];
    return NULL;
}

static bool fail_unknown(const unsigned char *bytes, size_t count, frag_error *error)
{
    if (count == 0)
        return frag_fail_at(error, 0, "the file is empty; expected a recording");
    for (uint32_t i = 0; i < FRAG_FORMAT_COUNT; i++) {
        const frag_format *table = formats[i].table;
        const char *lack =
            table != NULL && table->lacks != NULL ? table->lacks(bytes, count) : NULL;
        if (lack != NULL)
            return frag_fail_at(error, 0, "%s", lack);
    }
    const char *codec = foreign_codec(bytes, count);
    if (codec != NULL)
        return frag_fail_at(error, 0,
                            "the file is compressed with %s; only gzip and zstd are read: "
                            "decompress it first",
                            codec);
    if (is_json(bytes, count))
        return frag_fail_at(
            error, 0,
            "the file is JSON, but its first 64 KiB show no snapshot and no trace of a profiler; "
            "if one stands further on, say --from snapshot or --from kineto");
    if (count > 0 && bytes[0] == '<' && frag_look_contains(bytes, count, "<svg"))
        return frag_fail_at(error, 0,
                            "the file is a picture (SVG), such as a flame graph of _memory_viz, "
                            "which holds sums and no events; give the snapshot it was made of");
    return frag_fail_at(
        error, 0,
        "the format is not known; expected a .fgt, a text trace (its first line is "
        "'" FRAG_TEXT_FIRST_LINE
        "'), a torch snapshot (a pickle, JSON, or a page of _memory_viz), a device log, a golden "
        "log (its first line is JSON with \"golden\"), a log of RMM, a trace of PyTorch's profiler "
        "or of STAlloc, a database of Nsight Systems or nvprof (SQLite) or a packing problem (CSV "
        "with columns id, lower, upper, size)");
}

bool frag_trace_format_detect_input(frag_input *input, frag_trace_format *format, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    return frag_input_peek(input, FRAG_FORMAT_LOOK_BYTES, &bytes, &count, error) &&
           (frag_trace_format_detect(bytes, count, format) || fail_unknown(bytes, count, error));
}
