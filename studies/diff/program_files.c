#include "studies/diff/program_files.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Where the file of a name, "step (train.py)", begins; NULL: none, or one of a package. */
static const char *program_file(const char *name)
{
    const char *file = strrchr(name, '(');
    size_t length = strlen(name);
    bool is_python = length > 4 && strcmp(name + length - 4, ".py)") == 0;
    return file != NULL && is_python && strchr(file, '/') == NULL ? file + 1 : NULL;
}

static bool has_file(const frag_site_uses *uses, const char *file)
{
    for (size_t i = 0; i < uses->count; i++) {
        const char *found = program_file(uses->items[i].caller);
        if (found != NULL && strcmp(found, file) == 0)
            return true;
    }
    return false;
}

static bool has_caller(const frag_site_uses *uses, const char *caller)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->items[i].caller, caller) == 0)
            return true;
    return false;
}

/* The only file, as in a name with its bracket, that uses have and others lack; NULL: none, or
 * more than one. */
static const char *lone_file(const frag_site_uses *uses, const frag_site_uses *others)
{
    const char *found = NULL;
    for (size_t i = 0; i < uses->count; i++) {
        const char *file = program_file(uses->items[i].caller);
        if (file == NULL || has_file(others, file))
            continue;
        if (found != NULL && strcmp(found, file) != 0)
            return NULL;
        found = file;
    }
    return found;
}

/* The name with another file; the caller frees it. */
static char *renamed(const char *name, const char *file)
{
    frag_text text = {0};
    frag_text_add_bytes(&text, name, (size_t)(program_file(name) - name));
    frag_text_add(&text, "%s", file);
    return text.bytes;
}

static bool has_function_of(const frag_site_uses *uses, const char *file,
                            const frag_site_uses *others, const char *other_file)
{
    for (size_t i = 0; i < uses->count; i++) {
        const char *at = program_file(uses->items[i].caller);
        if (at == NULL || strcmp(at, file) != 0)
            continue;
        char *name = renamed(uses->items[i].caller, other_file);
        bool is_there = has_caller(others, name);
        frag_free(name);
        if (is_there)
            return true;
    }
    return false;
}

static void rename_file(char **name, const char *from, const char *to)
{
    const char *file = program_file(*name);
    if (file == NULL || strcmp(file, from) != 0)
        return;
    char *changed = renamed(*name, to);
    frag_free(*name);
    *name = changed;
}

void frag_program_files_join(frag_site_uses *before, const frag_site_uses *after, char *files[2])
{
    const char *from = lone_file(before, after);
    const char *to = lone_file(after, before);
    files[0] = files[1] = NULL;
    if (from == NULL || to == NULL || !has_function_of(before, from, after, to))
        return;
    files[0] = frag_copy_text(from);
    files[1] = frag_copy_text(to);
    for (size_t i = 0; i < before->count; i++) {
        rename_file(&before->items[i].caller, files[0], files[1]);
        rename_file(&before->items[i].inner, files[0], files[1]);
    }
    frag_site_uses_sort(before);
    for (size_t i = 0; i < 2; i++)
        files[i][strlen(files[i]) - 1] = '\0'; /* the bracket */
}
