#include "studies/ranks/rank_paths.h"

#include <errno.h>
#include <string.h>

#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "studies/ranks/rank_numbers.h"

static void add_path(frag_rank_paths *paths, size_t *capacity, char *path)
{
    paths->paths = frag_grow(paths->paths, capacity, paths->count + 1, sizeof *paths->paths);
    paths->paths[paths->count++] = path;
}

/* "rank0.pickle.gz", and "run.pickle-rank1", as a dry run names them. */
static bool take_recording(char *name)
{
    return strstr(name, ".pickle") != NULL || strstr(name, ".pkl") != NULL ||
           strstr(name, ".fgt") != NULL;
}

static bool add_folder(frag_rank_paths *paths, size_t *capacity, const char *folder,
                       frag_error *error)
{
    size_t count = 0;
    char **names = frag_folder_names(folder, take_recording, &count);
    if (names == NULL)
        frag_fail(error, FRAG_E_SYSTEM, "the folder cannot be read: %s", strerror(errno));
    else if (count == 0)
        frag_fail(error, FRAG_E_INPUT,
                  "no recording is in the folder; expected files with .pickle, .pkl or .fgt in "
                  "their names");
    for (size_t i = 0; i < count; i++) {
        frag_text path = {0};
        frag_text_add(&path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                      names[i]);
        add_path(paths, capacity, path.bytes);
    }
    if (names != NULL)
        frag_folder_names_destroy(names, count);
    return count > 0 || frag_error_in(error, folder);
}

bool frag_rank_paths_list(const char *const *operands, size_t count, frag_rank_paths *paths,
                          frag_error *error)
{
    size_t capacity = 0;
    *paths = (frag_rank_paths){0};
    for (size_t i = 0; i < count; i++)
        if (!frag_is_folder(operands[i]))
            add_path(paths, &capacity, frag_copy_text(operands[i]));
        else if (!add_folder(paths, &capacity, operands[i], error))
            return false;
    paths->numbers = frag_alloc(paths->count + 1, sizeof *paths->numbers);
    frag_rank_numbers((const char *const *)paths->paths, paths->count, paths->numbers);
    return true;
}

void frag_rank_paths_destroy(frag_rank_paths *paths)
{
    frag_folder_names_destroy(paths->paths, paths->count);
    frag_free(paths->numbers);
    *paths = (frag_rank_paths){0};
}
