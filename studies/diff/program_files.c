#include "studies/diff/program_files.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Of a name such as "step (train.py)" the file with its bracket; NULL: none, or one of a package.
 */
static const char *program_file(const char *name)
{
    const char *file = strrchr(name, '(');
    return file != NULL && strstr(file, ".py)") != NULL && strchr(file, '/') == NULL ? file + 1
                                                                                     : NULL;
}

/* Is there a caller in the file that is called like the function of name, or any if NULL? */
static bool has_caller(const frag_site_uses *uses, const char *file, const char *name)
{
    for (size_t i = 0; i < uses->count; i++) {
        const char *caller = uses->items[i].caller;
        const char *at = program_file(caller);
        if (at != NULL && strcmp(at, file) == 0 &&
            (name == NULL || (strncmp(caller, name, (size_t)(at - caller)) == 0)))
            return true;
    }
    return false;
}

/* The only file that uses have and others lack; NULL: none, or more than one. */
static const char *lone_file(const frag_site_uses *uses, const frag_site_uses *others)
{
    const char *found = NULL;
    for (size_t i = 0; i < uses->count; i++) {
        const char *file = program_file(uses->items[i].caller);
        if (file == NULL || has_caller(others, file, NULL))
            continue;
        if (found != NULL && strcmp(found, file) != 0)
            return NULL;
        found = file;
    }
    return found;
}

static bool share_function(const frag_site_uses *uses, const char *file,
                           const frag_site_uses *others, const char *other_file)
{
    for (size_t i = 0; i < uses->count; i++) {
        const char *at = program_file(uses->items[i].caller);
        if (at != NULL && strcmp(at, file) == 0 &&
            has_caller(others, other_file, uses->items[i].caller))
            return true;
    }
    return false;
}

static void rename_file(char **name, const char *from, const char *to)
{
    const char *file = program_file(*name);
    frag_text text = {0};
    if (file == NULL || strcmp(file, from) != 0)
        return;
    frag_text_add(&text, "%.*s%s", (int)(file - *name), *name, to);
    frag_free(*name);
    *name = text.bytes;
}

void frag_program_files_join(frag_site_uses *before, const frag_site_uses *after, char *files[2])
{
    const char *from = lone_file(before, after);
    const char *to = lone_file(after, before);
    files[0] = files[1] = NULL;
    if (from == NULL || to == NULL || !share_function(before, from, after, to))
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
