#include "studies/diff/program_files.h"

#include <stdlib.h>
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

enum { FILES_MAX = 64 };

/* Each once. */
typedef struct file_list {
    const char *files[FILES_MAX];
    size_t count; /* FILES_MAX: perhaps there are more */
} file_list;

static bool has_file(const file_list *list, const char *file)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->files[i], file) == 0)
            return true;
    return false;
}

static void list_files(const frag_site_uses *uses, file_list *list)
{
    list->count = 0;
    for (size_t i = 0; i < uses->count && list->count < FILES_MAX; i++) {
        const char *file = program_file(uses->items[i].caller);
        if (file != NULL && !has_file(list, file))
            list->files[list->count++] = file;
    }
}

/* The only file of a list that is not in others; NULL: none, or more than one. */
static const char *lone_file(const file_list *list, const file_list *others)
{
    const char *found = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (!has_file(others, list->files[i])) {
            if (found != NULL)
                return NULL;
            found = list->files[i];
        }
    return list->count < FILES_MAX && others->count < FILES_MAX ? found : NULL;
}

static int compare_caller(const void *key, const void *item)
{
    return strcmp(key, ((const frag_site_use *)item)->caller);
}

/* Of a name in the file `from` the same in another, which the caller frees; NULL: it is not. */
static char *renamed(const char *name, const char *from, const char *to)
{
    const char *file = program_file(name);
    frag_text text = {0};
    if (file != NULL && strcmp(file, from) == 0)
        frag_text_add(&text, "%.*s%s", (int)(file - name), name, to);
    return text.bytes;
}

static bool share_function(const frag_site_uses *uses, const frag_site_uses *others,
                           const char *from, const char *to)
{
    bool is_there = false;
    for (size_t i = 0; i < uses->count && !is_there; i++) {
        char *name = renamed(uses->items[i].caller, from, to);
        is_there = name != NULL && bsearch(name, others->items, others->count,
                                           sizeof *others->items, compare_caller) != NULL;
        frag_free(name);
    }
    return is_there;
}

static void rename_file(char **name, const char *from, const char *to)
{
    char *changed = renamed(*name, from, to);
    if (changed == NULL)
        return;
    frag_free(*name);
    *name = changed;
}

void frag_program_files_join(frag_site_uses *before, const frag_site_uses *after, char *files[2])
{
    file_list lists[2];
    list_files(before, &lists[0]);
    list_files(after, &lists[1]);
    const char *from = lone_file(&lists[0], &lists[1]);
    const char *to = lone_file(&lists[1], &lists[0]);
    files[0] = files[1] = NULL;
    if (from == NULL || to == NULL || !share_function(before, after, from, to))
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
