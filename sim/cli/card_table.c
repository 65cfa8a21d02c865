#include "sim/cli/card_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/memory.h"
#include "sim/cli/data_folder.h"

#define FOLDER "devices"
#define SUFFIX ".yaml"

static bool has_suffix(const char *name)
{
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

char **frag_card_names(size_t *count, frag_error *error)
{
    char **names = NULL;
    size_t capacity = 0;
    *count = 0;
    char *folder = frag_data_find(FOLDER);
    DIR *stream = folder != NULL ? opendir(folder) : NULL;
    if (stream == NULL) {
        frag_fail(error, FRAG_E_SYSTEM,
                  "the folder " FOLDER "/ is not beside the program; run 'make install'");
        free(folder);
        return NULL;
    }
    names = frag_alloc(1, sizeof *names);
    capacity = 1;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        if (entry->d_name[0] == '.' || !has_suffix(entry->d_name))
            continue;
        names = frag_grow(names, &capacity, *count + 1, sizeof *names);
        names[*count] = frag_copy_text(entry->d_name);
        names[*count][strlen(entry->d_name) - strlen(SUFFIX)] = '\0';
        ++*count;
    }
    closedir(stream);
    free(folder);
    qsort(names, *count, sizeof *names, compare_names);
    return names;
}

void frag_card_names_destroy(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool fail_unknown(const char *name, frag_error *error)
{
    size_t count = 0;
    char **names = frag_card_names(&count, error);
    if (names == NULL)
        return false;
    const char *nearest = frag_nearest_name(name, (const char *const *)names, count);
    if (nearest != NULL)
        frag_fail(error, FRAG_E_USAGE, "no card is called '%s'; did you mean %s?", name, nearest);
    else
        frag_fail(error, FRAG_E_USAGE,
                  "no card is called '%s'; 'fraglab device list' prints them, a file needs a slash "
                  "or .yaml in its name",
                  name);
    frag_card_names_destroy(names, count);
    return false;
}

bool frag_card_load(const char *name, frag_device_description *description, frag_error *error)
{
    if (strchr(name, '/') != NULL || has_suffix(name) || strcmp(name, "-") == 0)
        return frag_device_description_load(name, description, error);
    frag_text relative = {.bytes = NULL};
    frag_text_add(&relative, FOLDER "/%s" SUFFIX, name);
    char *path = frag_data_find(relative.bytes);
    frag_text_destroy(&relative);
    bool ok = path != NULL ? frag_device_description_load(path, description, error)
                           : fail_unknown(name, error);
    free(path);
    return ok;
}
