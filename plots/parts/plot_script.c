#include "plots/parts/plot_script.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/scope.h"
#include "plots/parts/plot_names.h"
#include "sim/version.h"

static const char *const format_names[] = {
    [FRAG_PLOT_SVG] = "svg",           [FRAG_PLOT_PNG] = "png", [FRAG_PLOT_PDF] = "pdf",
    [FRAG_PLOT_TERMINAL] = "terminal", [FRAG_PLOT_CSV] = "csv",
};

const char *frag_plot_format_name(frag_plot_format format)
{
    return format_names[format];
}

bool frag_plot_format_find(const char *name, frag_plot_format *format)
{
    for (size_t i = 0; i < sizeof format_names / sizeof *format_names; i++)
        if (strcmp(name, format_names[i]) == 0) {
            *format = (frag_plot_format)i;
            return true;
        }
    return false;
}

/* ---- variables */

#define REPLACEMENT "\xef\xbf\xbd"

/* In single quotes gnuplot reads everything as it stands but the quote, which is doubled. What is
 * no UTF-8, or no character, would make an svg that nothing opens. */
static void add_quoted(frag_text *text, const char *value)
{
    size_t left = strlen(value);
    size_t step = 0;
    frag_text_add(text, "'");
    for (const char *at = value; left > 0; at += step, left -= step) {
        size_t length = frag_text_sequence((const unsigned char *)at, left);
        bool is_none = length == 3 && memcmp(at, "\xef\xbf", 2) == 0 && (at[2] & 0x3f) >= 0x3e;
        step = length > 0 ? length : 1;
        if (length == 0 || is_none)
            frag_text_add(text, REPLACEMENT);
        else if (*at == '\'')
            frag_text_add(text, "''");
        else if ((unsigned char)*at < ' ')
            frag_text_add(text, " ");
        else
            frag_text_add_bytes(text, at, length);
    }
    frag_text_add(text, "'");
}

void frag_plot_define_text(frag_plot *plot, const char *name, const char *value)
{
    frag_text_add(&plot->definitions, "%s = ", name);
    add_quoted(&plot->definitions, value);
    frag_text_add(&plot->definitions, "\n");
}

void frag_plot_define_number(frag_plot *plot, const char *name, double value)
{
    frag_text_add(&plot->definitions, "%s = %.17g\n", name, value);
}

void frag_plot_define_texts(frag_plot *plot, const char *name, const char *const *values,
                            size_t count)
{
    size_t room = count > 0 ? count : 1; /* an array has one item at least */
    frag_text_add(&plot->definitions, "array %s[%zu]\n", name, room);
    for (size_t i = 0; i < room; i++) {
        frag_text_add(&plot->definitions, "%s[%zu] = ", name, i + 1);
        add_quoted(&plot->definitions, i < count ? values[i] : "");
        frag_text_add(&plot->definitions, "\n");
    }
}

void frag_plot_define_numbers(frag_plot *plot, const char *name, const uint64_t *values,
                              size_t count)
{
    frag_text_add(&plot->definitions, "array %s[%zu]\n", name, count > 0 ? count : 1);
    for (size_t i = 0; i < count; i++)
        frag_text_add(&plot->definitions, "%s[%zu] = %" PRIu64 "\n", name, i + 1, values[i]);
}

#define COLOUR_COUNT 8u /* as in plots/style.gp */

void frag_plot_define_places(frag_plot *plot, const uint64_t *bytes, size_t count)
{
    uint64_t *places = frag_alloc(count, sizeof *places);
    uint64_t named = 0;
    for (size_t i = 0; i < count; i++) {
        size_t less = 0;
        for (size_t j = 1; j < count; j++)
            less += j != i && (bytes[j] < bytes[i] || (bytes[j] == bytes[i] && j < i));
        if (count <= COLOUR_COUNT || i == 0 || less < COLOUR_COUNT - 1)
            places[i] = ++named;
    }
    frag_plot_define_numbers(plot, "places", places, count);
    frag_plot_define_number(plot, "named_count", (double)named);
    frag_free(places);
}

void frag_plot_define_title(frag_plot *plot, const char *usual)
{
    const char *title = frag_plot_setting_text(plot->request, "title");
    char *shown =
        frag_plot_text_within(title != NULL ? title : usual, 0.85 * frag_plot_text_room(plot));
    frag_plot_define_text(plot, "title_text", shown);
    frag_free(shown);
}

/* What the line, its gap and the edges need. */
#define KEY_MARGIN 60.0

void frag_plot_define_names(frag_plot *plot, const char *name, const char *const *values,
                            size_t count)
{
    char **shown = frag_alloc(count, sizeof *shown);
    for (size_t i = 0; i < count; i++)
        shown[i] = frag_plot_text_within(values[i], frag_plot_text_room(plot) - KEY_MARGIN);
    frag_plot_define_texts(plot, name, (const char *const *)shown, count);
    for (size_t i = 0; i < count; i++)
        frag_free(shown[i]);
    frag_free(shown);
}

void frag_plot_define_unit(frag_plot *plot, uint64_t max_bytes)
{
    uint64_t unit = max_bytes >= FRAG_GIB   ? FRAG_GIB
                    : max_bytes >= FRAG_MIB ? FRAG_MIB
                    : max_bytes >= FRAG_KIB ? FRAG_KIB
                                            : 1;
    frag_plot_define_text(plot, "unit",
                          unit == FRAG_GIB   ? "GiB"
                          : unit == FRAG_MIB ? "MiB"
                          : unit == FRAG_KIB ? "KiB"
                                             : "bytes");
    /* A number without a point is an integer to gnuplot, and two of those divide to an integer. */
    frag_text_add(&plot->definitions, "unit_bytes = %" PRIu64 ".0\n", unit);
}

/* ---- the whole script */

bool frag_plot_read(FILE *stream, frag_text *text)
{
    char piece[16384];
    size_t count = 0;
    frag_text_add_bytes(text, "", 0);
    rewind(stream);
    while ((count = fread(piece, 1, sizeof piece, stream)) > 0)
        frag_text_add_bytes(text, piece, count);
    return ferror(stream) == 0;
}

/* The data ends at a line that does not occur in it, whatever names it holds. */
static bool add_data(FILE *data, frag_text *script)
{
    frag_text text = {0};
    frag_text end = {0};
    bool ok = frag_plot_read(data, &text);
    frag_text_add(&end, "END_OF_DATA");
    for (int i = 1; strstr(text.bytes, end.bytes) != NULL; i++) {
        frag_text_clear(&end);
        frag_text_add(&end, "END_OF_DATA_%d", i);
    }
    frag_text_add(script, "$figure << %s\n", end.bytes);
    frag_text_add_bytes(script, text.bytes, text.length);
    frag_text_add(script, "%s\ndata = '$figure'\n\n", end.bytes);
    frag_text_destroy(&end);
    frag_text_destroy(&text);
    return ok;
}

static void release_stream(void *thing, size_t bytes)
{
    (void)bytes;
    fclose(thing);
}

static bool read_file(const char *path, frag_text *text)
{
    FILE *stream = fopen(path, "rbe");
    if (stream == NULL)
        return false;
    frag_scope_own(stream, 0, release_stream);
    bool ok = frag_plot_read(stream, text);
    frag_scope_disown(stream);
    fclose(stream);
    return ok;
}

/* Without the lines that only serve to run the file on its own. */
static bool add_file(const char *folder, const char *name, frag_text *script, frag_error *error)
{
    frag_text path = {0};
    frag_text text = {0};
    frag_text_add(&path, "%s/%s", folder, name);
    bool ok = read_file(path.bytes, &text);
    if (!ok) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be read (%s)", strerror(errno));
        frag_error_in(error, path.bytes);
    }
    for (const char *line = text.bytes; ok && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n' ? 1 : 0;
        if (strncmp(line, "# By hand:", 10) != 0 && strncmp(line, "load scripts", 12) != 0)
            frag_text_add_bytes(script, line, length);
        line += length;
    }
    frag_text_destroy(&text);
    frag_text_destroy(&path);
    return ok;
}

bool frag_plot_compose(const frag_plot *plot, const char *folder, const char *picture,
                       frag_text *script, frag_error *error)
{
    frag_text name = {0};
    frag_text_add(&name, "%s.gp", plot->kind);
    frag_text_add(script,
                  "# A figure of fraglab %s with its data. To draw it:\n"
                  "#     gnuplot FILE > figure.%s\n\n",
                  frag_version(), frag_plot_format_name(plot->format));
    frag_text_add_bytes(script, plot->definitions.bytes, plot->definitions.length);
    frag_text_add(script, "format = '%s'\nwidth = %" PRIu64 "\nheight = %" PRIu64 "\n",
                  frag_plot_format_name(plot->format), plot->width, plot->height);
    if (plot->has_picture) {
        frag_text_add(script, "picture = ");
        if (picture != NULL)
            add_quoted(script, picture);
        else
            frag_text_add(script, "ARG0.'" FRAG_PLOT_PICTURE_ENDING "'");
        frag_text_add(script, "\n");
    }
    frag_text_add(script, "\n");
    bool ok = plot->has_picture || add_data(plot->data, script) ||
              frag_fail(error, FRAG_E_SYSTEM, "the data cannot be read back (%s)", strerror(errno));
    ok = ok && add_file(folder, "style.gp", script, error);
    frag_text_add(script, "\n");
    ok = ok && add_file(folder, name.bytes, script, error);
    frag_text_destroy(&name);
    return ok;
}
