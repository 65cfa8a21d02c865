#include "sim/trace/site_names.h"

#include <inttypes.h>
#include <string.h>

#include "sim/trace/frame_owner.h"

/* ---- frames of C++ that say what was done */

/* "torch::autograd::generated::MmBackward0::apply(...)": the last name before "::apply", as
 * PyTorch calls its nodes. *length 0: the frame is none of a node's. */
static const char *node_of(const char *function, size_t *length)
{
    const char *end = strstr(function, "::apply(");
    *length = 0;
    if (end == NULL || strstr(function, "torch::autograd::") == NULL)
        return NULL;
    const char *begin = end;
    for (int depth = 0; begin > function; begin--) {
        depth += begin[-1] == '>' ? 1 : begin[-1] == '<' ? -1 : 0;
        if (depth == 0 && (begin[-1] == ':' || begin[-1] == ' '))
            break;
    }
    *length = (size_t)(end - begin);
    return begin;
}

static bool is_engine(const char *function)
{
    return strstr(function, "torch::autograd::Engine::thread_main") != NULL ||
           strstr(function, "torch::autograd::Engine::evaluate_function") != NULL;
}

/* "at::_ops::mm::call(...)": an operator of PyTorch. */
static const char *operator_of(const char *function, size_t *length)
{
    const char *found = strstr(function, "at::_ops::");
    *length = 0;
    if (found == NULL)
        return NULL;
    found += strlen("at::_ops::");
    *length = strcspn(found, ":");
    return found;
}

/* Frames of every native stack: unwinding, the allocator, the interpreter. */
static bool is_bookkeeping(const char *function, const char *file)
{
    static const char *const names[] = {"unwind",          "CapturedTraceback", "CachingAllocator",
                                        "gather_with_cpp", "_PyEval",           "cfunction_",
                                        "PyObject_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(function, names[i]) != NULL)
            return true;
    return strcmp(function, "??") == 0 || strstr(file, "memory_snapshot.cpp") != NULL;
}

/* Source files of libraries that programs are linked with. */
static bool is_own_native(const char *file)
{
    static const char *const others[] = {
        "/pytorch/", "/torch/",   "/aten/",    "/c10/",     "/usr/",   "glibc",
        "/build/",   "/csu/",     "/nptl/",    "/sysdeps/", "/gcc",    "/Python/",
        "/Objects/", "/Modules/", "/Include/", "/croot/",   "/python-"};
    if (file[0] != '/' && (file[0] == '\0' || file[1] != ':'))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(file, others[i]) != NULL)
            return false;
    return true;
}

/* How much a native frame says: the last the most. */
typedef enum native_kind {
    NATIVE_BOOKKEEPING,
    NATIVE_OTHER,
    NATIVE_OPERATOR,
    NATIVE_ENGINE, /* these say more than a frame of Python's standard library */
    NATIVE_PROGRAM,
    NATIVE_NODE
} native_kind;

static native_kind kind_of(const char *function, const char *file)
{
    size_t length = 0;
    if (node_of(function, &length) != NULL)
        return NATIVE_NODE;
    if (is_own_native(file))
        return NATIVE_PROGRAM;
    if (is_engine(function))
        return NATIVE_ENGINE;
    if (operator_of(function, &length) != NULL)
        return NATIVE_OPERATOR;
    return is_bookkeeping(function, file) ? NATIVE_BOOKKEEPING : NATIVE_OTHER;
}

/* ---- which frame names a stack */

static const char *string_of(const frag_recording *recording, uint32_t string)
{
    return frag_strings_get(&recording->strings, string);
}

/* The innermost of those native frames that say the most; *kind is what they are. */
static uint32_t pick_native(const frag_recording *recording, const uint32_t *frames, uint32_t count,
                            native_kind *kind)
{
    uint32_t picked = frames[0];
    *kind = NATIVE_BOOKKEEPING;
    for (uint32_t i = 0; i < count; i++) {
        const frag_frame *frame = &recording->frames[frames[i]];
        const char *file = string_of(recording, frame->file);
        const char *function = string_of(recording, frame->name);
        if (frag_frame_owner_of(file, function) != FRAG_OWNER_NATIVE)
            continue;
        native_kind found = kind_of(function, file);
        if (found > *kind) {
            *kind = found;
            picked = frames[i];
        }
    }
    return picked;
}

/* As frag_site_frame; *is_place: the frame is a line of Python outside its standard library and
 * PyTorch, or of C++ outside PyTorch. */
static uint32_t find_frame(const frag_recording *recording, uint32_t site, bool *is_place)
{
    *is_place = false;
    if (site >= recording->site_count || recording->sites[site].count == 0)
        return 0;
    const frag_site *stack = &recording->sites[site];
    const uint32_t *frames = &recording->site_frames[stack->first];
    frag_frame_owner owner = FRAG_OWNER_NATIVE;
    uint32_t named = frames[0];
    for (uint32_t i = 0; i < stack->count && owner < FRAG_OWNER_PROGRAM; i++) {
        const frag_frame *frame = &recording->frames[frames[i]];
        frag_frame_owner found = frag_frame_owner_of(string_of(recording, frame->file),
                                                     string_of(recording, frame->name));
        if (found > owner) {
            owner = found;
            named = frames[i];
        }
    }
    *is_place = owner > FRAG_OWNER_FRAMEWORK;
    if (owner > FRAG_OWNER_STANDARD)
        return named + 1;
    native_kind kind = NATIVE_BOOKKEEPING;
    uint32_t native = pick_native(recording, frames, stack->count, &kind);
    *is_place = kind == NATIVE_PROGRAM;
    return (owner == FRAG_OWNER_NATIVE || kind >= NATIVE_ENGINE ? native : named) + 1;
}

uint32_t frag_site_frame(const frag_recording *recording, uint32_t site)
{
    bool is_place = false;
    return find_frame(recording, site, &is_place);
}

bool frag_site_has_place(const frag_recording *recording, uint32_t site)
{
    bool is_place = false;
    find_frame(recording, site, &is_place);
    return is_place;
}

/* ---- names of frames */

/* "mm" of "MmBackward0". */
static void add_node(frag_text *text, const char *node, size_t length)
{
    size_t end = length;
    while (end > 0 && node[end - 1] >= '0' && node[end - 1] <= '9')
        end--;
    if (end > 1 && node[end - 1] == 's')
        end--;
    if (end > 8 && memcmp(node + end - 8, "Backward", 8) == 0)
        length = end - 8;
    frag_text_add(text, "backward of %.*s", (int)length, node);
}

/* Where the name of a file begins: without folders, but for those files that are called alike
 * everywhere. "": none is recorded. */
static const char *file_of(const frag_recording *recording, const frag_frame *frame)
{
    const char *file = string_of(recording, frame->file);
    const char *name = file;
    const char *folder = file;
    if (strcmp(file, "??") == 0)
        return "";
    for (const char *at = file; *at != '\0'; at++)
        if (*at == '/' || *at == '\\') {
            folder = name;
            name = at + 1;
        }
    bool is_alike = strcmp(name, "__init__.py") == 0 || strcmp(name, "__main__.py") == 0 ||
                    strncmp(folder, "ipykernel_", 10) == 0;
    return is_alike ? folder : name;
}

/* What a frame's function is called: its own name but where C++ of PyTorch says what it does. */
static void add_function(const frag_recording *recording, const frag_frame *frame, frag_text *text)
{
    const char *function = string_of(recording, frame->name);
    size_t length = 0;
    const char *node = node_of(function, &length);
    const char *operator_name = node == NULL ? operator_of(function, &length) : NULL;
    if (node != NULL && length == 14 && memcmp(node, "AccumulateGrad", length) == 0)
        frag_text_add(text, "accumulation of gradients");
    else if (node != NULL)
        add_node(text, node, length);
    else if (is_engine(function))
        frag_text_add(text, "autograd thread");
    else if (operator_name != NULL)
        frag_text_add(text, "operator %.*s", (int)length, operator_name);
    else
        frag_text_add(text, "%s",
                      *function == '\0' && *file_of(recording, frame) == '\0' ? "no name"
                                                                              : function);
}

void frag_frame_add(const frag_recording *recording, uint32_t frame, frag_text *text)
{
    const frag_frame *named = &recording->frames[frame];
    const char *file = file_of(recording, named);
    frag_text function = {0};
    add_function(recording, named, &function);
    bool is_own_name = strcmp(function.bytes, string_of(recording, named->name)) == 0;
    if (*file != '\0' && is_own_name && named->line > 0)
        frag_text_add(text, "%s:%" PRIu32 " ", file, named->line);
    else if (*file != '\0' && is_own_name)
        frag_text_add(text, "%s ", file);
    frag_text_add(text, "%s", function.bytes);
    frag_text_destroy(&function);
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
    size_t count = frag_text_sequence((const unsigned char *)bytes, strnlen(bytes, 4));
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

static void add_function_and_file(frag_text *text, const char *function, const char *file,
                                  uint32_t number, size_t characters)
{
    char line[16] = "";
    int digits = number > 0 ? snprintf(line, sizeof line, ":%" PRIu32, number) : 0;
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

void frag_frame_text(const frag_recording *recording, uint32_t frame, size_t characters,
                     frag_text *text)
{
    const frag_frame *named = &recording->frames[frame];
    const char *file = file_of(recording, named);
    frag_text function = {0};
    add_function(recording, named, &function);
    bool is_own_name = strcmp(function.bytes, string_of(recording, named->name)) == 0;
    if (*file != '\0' && is_own_name)
        add_function_and_file(text, function.bytes, file, named->line, characters);
    else
        add_short(text, function.bytes, characters, false);
    frag_text_destroy(&function);
}
