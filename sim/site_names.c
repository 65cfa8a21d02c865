#include "sim/site_names.h"

#include <inttypes.h>
#include <string.h>

static bool is_of_program(const char *file)
{
    static const char *const others[] = {
        "site-packages", "dist-packages", "/torch/", ".cpp", ".cc", ".h", "??", "<frozen"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(file, others[i]) != NULL)
            return false;
    return *file != '\0';
}

static bool is_python(const char *file)
{
    size_t length = strlen(file);
    return length > 3 && strcmp(file + length - 3, ".py") == 0;
}

uint32_t frag_site_frame(const frag_recording *recording, uint32_t site)
{
    if (site >= recording->site_count || recording->sites[site].count == 0)
        return 0;
    const frag_site *stack = &recording->sites[site];
    const uint32_t *frames = &recording->site_frames[stack->first];
    uint32_t named = 0;
    for (uint32_t i = 0; i < stack->count; i++) {
        const char *file = frag_strings_get(&recording->strings, recording->frames[frames[i]].file);
        if (is_of_program(file))
            return frames[i] + 1;
        if (named == 0 && is_python(file))
            named = frames[i] + 1;
    }
    return named != 0 ? named : frames[0] + 1;
}

/* Without its folders. */
static const char *file_of(const frag_recording *recording, const frag_frame *frame)
{
    const char *file = frag_strings_get(&recording->strings, frame->file);
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

void frag_frame_add(const frag_recording *recording, uint32_t frame, frag_text *text)
{
    const frag_frame *named = &recording->frames[frame];
    frag_text_add(text, "%s:%" PRIu32 " %s", file_of(recording, named), named->line,
                  frag_strings_get(&recording->strings, named->name));
}

/* ---- text for people */

static bool is_control(const char *bytes, size_t length)
{
    unsigned char first = (unsigned char)bytes[0];
    return (length == 1 && (first < ' ' || first == 0x7f)) ||
           (length == 2 && first == 0xc2 && (unsigned char)bytes[1] < 0xa0);
}

/* Calls for each character; what is no UTF-8 is one '?' a byte, a control character a space. */
static const char *next_character(const char *bytes, const char **shown, size_t *length)
{
    size_t count = frag_text_sequence((const unsigned char *)bytes, strlen(bytes));
    *shown = count == 0 ? "?" : is_control(bytes, count) ? " " : bytes;
    *length = *shown == bytes ? count : 1;
    return bytes + (count > 0 ? count : 1);
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    size_t length = 0;
    const char *shown = NULL;
    for (; *text != '\0'; count++)
        text = next_character(text, &shown, &length);
    return count;
}

/* The first characters of a name, or its last. */
static void add_short(frag_text *text, const char *name, size_t characters, bool is_end_kept)
{
    size_t count = count_characters(name);
    bool is_cut = count > characters;
    size_t first = is_cut && is_end_kept ? count - (characters - 1) : 0;
    size_t last = is_cut && !is_end_kept ? characters - 1 : count;
    if (is_cut && is_end_kept)
        frag_text_add(text, "…");
    for (size_t i = 0; *name != '\0'; i++) {
        size_t length = 0;
        const char *shown = NULL;
        name = next_character(name, &shown, &length);
        if (i >= first && i < last)
            frag_text_add_bytes(text, shown, length);
    }
    if (is_cut && !is_end_kept)
        frag_text_add(text, "…");
}

void frag_frame_text(const frag_recording *recording, uint32_t frame, size_t characters,
                     frag_text *text)
{
    const frag_frame *named = &recording->frames[frame];
    const char *function = frag_strings_get(&recording->strings, named->name);
    const char *file = file_of(recording, named);
    char line[16];
    int digits = snprintf(line, sizeof line, ":%" PRIu32, named->line);
    size_t room = characters - (size_t)digits;
    size_t file_wanted = count_characters(file);
    size_t function_wanted = count_characters(function);
    if (function_wanted == 0) {
        add_short(text, file, room, true);
        frag_text_add(text, "%s", line);
        return;
    }
    room -= 3; /* the space and the brackets */
    size_t half = room / 2;
    size_t function_room = file_wanted < half              ? room - file_wanted
                           : function_wanted < room - half ? function_wanted
                                                           : room - half;
    add_short(text, function, function_room, false);
    frag_text_add(text, " (");
    add_short(text, file, room - function_room, true);
    frag_text_add(text, "%s)", line);
}
