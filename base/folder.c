/* The one place that reads directories. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/scope.h"

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void release_folder(void *stream, size_t bytes)
{
    (void)bytes;
    closedir(stream);
}

char **frag_folder_names(const char *path, bool (*take)(char *name), size_t *count)
{
    size_t capacity = 1;
    *count = 0;
    DIR *stream = opendir(path);
    if (stream == NULL)
        return NULL;
    frag_scope_own(stream, 0, release_folder);
    char **names = frag_alloc(1, sizeof *names);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (entry->d_name[0] == '.' || !take(entry->d_name))
            continue;
        names = frag_grow(names, &capacity, *count + 1, sizeof *names);
        names[(*count)++] = frag_copy_text(entry->d_name);
    }
    frag_scope_disown(stream);
    closedir(stream);
    qsort(names, *count, sizeof *names, compare_names);
    return names;
}

void frag_folder_names_destroy(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frag_free(names[i]);
    frag_free(names);
}

bool frag_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool frag_folder_make(const char *path, frag_error *error)
{
    if (frag_is_folder(path) || mkdir(path, 0777) == 0)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, path, "the folder cannot be made (%s)",
                        strerror(errno));
}
