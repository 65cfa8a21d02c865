#include "sim/trace/frame_owner.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* One folder of a path, or the file's name. */
typedef struct part {
    const char *text;
    size_t length;
} part;

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* The part after one; length 0: there is none. */
static part next_part(part before)
{
    const char *at = before.text + before.length;
    while (is_separator(*at))
        at++;
    part next = {.text = at};
    while (at[next.length] != '\0' && !is_separator(at[next.length]))
        next.length++;
    return next;
}

static bool equals(part name, const char *text)
{
    return strlen(text) == name.length && memcmp(name.text, text, name.length) == 0;
}

/* Windows knows no case. */
static bool begins(part name, const char *text)
{
    size_t length = strlen(text);
    if (length > name.length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)name.text[i]) != text[i])
            return false;
    return true;
}

static bool ends(part name, const char *text)
{
    size_t length = strlen(text);
    return length <= name.length && memcmp(name.text + name.length - length, text, length) == 0;
}

static bool has_word(part name, const char *text)
{
    for (; name.length > 0; name.text++, name.length--)
        if (begins(name, text))
            return true;
    return false;
}

static bool is_any_of(part name, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (equals(name, texts[i]))
            return true;
    return false;
}

/* Folders that pip, conda, Debian, uv, pex and setuptools install packages into. */
static bool is_package_folder(part name)
{
    return equals(name, "site-packages") || equals(name, "dist-packages") || ends(name, ".whl") ||
           ends(name, ".egg");
}

static bool is_framework_package(part name)
{
    static const char *const packages[] = {"torch", "functorch", "torchgen", "triton"};
    return is_any_of(name, packages, sizeof packages / sizeof *packages);
}

/* A folder "torch" outside of installed packages is PyTorch's source tree, or a user's own folder
 * of that name: what is in it decides. */
static bool is_in_source_tree(part before, part after)
{
    static const char *const inner[] = {
        "nn",   "autograd", "optim",         "cuda",       "fx",       "jit",      "distributed",
        "csrc", "amp",      "functional.py", "storage.py", "profiler", "compiler", "testing"};
    return equals(before, "pytorch") || (after.length > 1 && after.text[0] == '_') ||
           is_any_of(after, inner, sizeof inner / sizeof *inner);
}

/* lib/python3.11 and python311.zip; on Windows the folder lib of an interpreter or environment. */
static bool is_standard_folder(part outer, part before, part name)
{
    if (begins(name, "python") && name.length > 6 && isdigit((unsigned char)name.text[6]))
        return ends(name, ".zip") || begins(before, "lib");
    return begins(name, "lib") && name.length == 3 &&
           (begins(before, "python") || begins(before, "cpython-") || begins(before, "pypy") ||
            has_word(before, "conda") || has_word(before, "pythonsoftware") ||
            equals(outer, "envs"));
}

static frag_frame_owner owner_of_path(const char *file)
{
    part outer = {.text = file};
    part before = outer;
    bool is_standard = false;
    bool is_installed = false;
    for (part name = next_part(before); name.length > 0; name = next_part(name)) {
        part after = next_part(name);
        if (begins(name, "torchinductor_") && after.length > 0)
            return FRAG_OWNER_GENERATED;
        if (is_package_folder(name)) {
            is_installed = true;
            if (is_framework_package(after))
                return FRAG_OWNER_FRAMEWORK;
        } else if (equals(name, "archive-v0")) { /* uv's: then a digest, then the package */
            is_installed = true;
            if (is_framework_package(next_part(after)))
                return FRAG_OWNER_FRAMEWORK;
        } else if (equals(name, "torch") && is_in_source_tree(before, after)) {
            return FRAG_OWNER_FRAMEWORK;
        } else if (after.length > 0 && is_standard_folder(outer, before, name)) {
            is_standard = true;
        }
        outer = before;
        before = name;
    }
    return is_installed  ? FRAG_OWNER_INSTALLED
           : is_standard ? FRAG_OWNER_STANDARD
                         : FRAG_OWNER_PROGRAM;
}

/* "<...>": cells of notebooks, what was typed, and code that other code wrote. */
static frag_frame_owner owner_of_bracketed(const char *file, const char *function)
{
    static const char *const typed[] = {"<ipython-input-", "<stdin>", "<console>",
                                        "<command-",       "<cell",   "<notebook",
                                        "<python-input-"};
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++)
        if (strncmp(file, typed[i], strlen(typed[i])) == 0)
            return FRAG_OWNER_PROGRAM;
    if (strncmp(file, "<frozen", 7) == 0)
        return FRAG_OWNER_STANDARD;
    /* python -c; data classes and named tuples write themselves methods such as __init__. */
    if (strcmp(file, "<string>") == 0)
        return strncmp(function, "__", 2) == 0 ? FRAG_OWNER_GENERATED : FRAG_OWNER_PROGRAM;
    return FRAG_OWNER_GENERATED;
}

bool frag_frame_is_wrapper(const char *file)
{
    return strstr(file, "/fraglab_dryrun/") != NULL ||
           strstr(file, "/torch/_native/registry.py") != NULL;
}

frag_frame_owner frag_frame_owner_of(const char *file, const char *function)
{
    size_t length = strlen(file);
    if (file[0] == '<' && file[length - 1] == '>')
        return owner_of_bracketed(file, function);
    if (strncmp(file, "<eval_with_key>", 15) == 0) /* torch.fx; a number follows */
        return FRAG_OWNER_GENERATED;
    bool is_python = (length > 3 && strcmp(file + length - 3, ".py") == 0) ||
                     (length > 4 && strcmp(file + length - 4, ".pyw") == 0);
    if (frag_frame_is_wrapper(file))
        return FRAG_OWNER_STANDARD;
    return is_python ? owner_of_path(file) : FRAG_OWNER_NATIVE;
}
