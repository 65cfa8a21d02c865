#include "cli/dryrun/dryrun_parts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/program_path.h"
#include "sim/data_folder.h"

static bool find_part(const char *name, char **path, frag_error *error)
{
    frag_text built = {0};
    frag_text installed = {0};
    frag_text_add(&built, "gpu_replay/dryrun/%s", name);
    frag_text_add(&installed, "dryrun/%s", name);
    char *found = frag_data_find(built.bytes);
    found = found != NULL ? found : frag_data_find(installed.bytes);
    *path = found != NULL ? realpath(found, NULL) : NULL;
    frag_free(found);
    frag_text_destroy(&built);
    frag_text_destroy(&installed);
    return *path != NULL || frag_fail(error, FRAG_E_SYSTEM,
                                      "there is no %s of the dry run beside this fraglab; build or "
                                      "install it anew",
                                      name);
}

bool frag_dryrun_parts_find(frag_dryrun_parts *parts, frag_error *error)
{
    *parts = (frag_dryrun_parts){.site = NULL};
    return find_part("site", &parts->site, error) && find_part("tools", &parts->tools, error) &&
           find_part("probe.py", &parts->probe, error) &&
           find_part("environments.py", &parts->environments, error);
}

/* Beside the program as built, or as installed. */
static char *find_libraries(uint64_t major)
{
    static const char *const places[] = {"software-cuda", "build/release/software-cuda",
                                         "../lib/fraglab/software-cuda"};
    char program[PATH_MAX];
    frag_program_path(program, sizeof program);
    char *slash = strrchr(program, '/');
    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof *places; i++) {
        frag_text folder = {0};
        frag_text_add(&folder, "%.*s/%s/%" PRIu64, (int)(slash - program), program, places[i],
                      major);
        char *real = realpath(folder.bytes, NULL);
        frag_text_destroy(&folder);
        if (real != NULL)
            return real;
    }
    return NULL;
}

/* One library of the list; names without a folder are in the list's. */
static void add_library(frag_dryrun_parts *parts, const char *folder, const char *name)
{
    frag_text path = {0};
    frag_text_add(&path, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
    frag_text_add(&parts->preload, "%s%s", parts->preload.length > 0 ? ":" : "", path.bytes);
    char *slash = strrchr(path.bytes, '/');
    if (strcmp(slash, "/libcuda.so.1") == 0 && parts->driver.length == 0)
        frag_text_add(&parts->driver, "%.*s", (int)(slash - path.bytes), path.bytes);
    frag_text_destroy(&path);
}

/* The file `preload` of a folder: names with blanks, newlines or colons between them. */
static bool read_list(frag_dryrun_parts *parts, const char *folder, frag_error *error)
{
    frag_text path = {0};
    char bytes[16384];
    frag_text_add(&path, "%s/preload", folder);
    FILE *stream = fopen(path.bytes, "r");
    size_t count = stream != NULL ? fread(bytes, 1, sizeof bytes - 1, stream) : 0;
    bytes[count] = '\0';
    if (stream != NULL)
        fclose(stream);
    char *rest = NULL;
    for (char *name = strtok_r(bytes, ": \t\n", &rest); name != NULL;
         name = strtok_r(NULL, ": \t\n", &rest))
        add_library(parts, folder, name);
    bool ok = parts->preload.length > 0;
    if (!ok)
        frag_fail(error, FRAG_E_SYSTEM,
                  "%s names no libraries; expected those of the software CUDA", path.bytes);
    frag_text_destroy(&path);
    return ok;
}

/* Beside the libraries lies a digest of what they were made of (`make software-cuda`). A folder
 * that the user names may be of anything and have none. */
static void compare_sources(frag_dryrun_parts *parts, const char *folder, bool is_given)
{
    frag_text path = {0};
    char digest[64] = "";
    frag_text_add(&path, "%s/sources", folder);
    FILE *stream = fopen(path.bytes, "r");
    bool is_there = stream != NULL && fgets(digest, sizeof digest, stream) != NULL;
    digest[strcspn(digest, "\n")] = '\0';
    if (stream != NULL)
        fclose(stream);
    if ((is_there || !is_given) && strcmp(digest, FRAG_BUILD_SOFTWARE) != 0)
        frag_text_add(&parts->foreign, "%s", folder);
    frag_text_destroy(&path);
}

bool frag_dryrun_parts_find_libraries(frag_dryrun_parts *parts, uint64_t major, const char *folder,
                                      frag_error *error)
{
    char *found = folder != NULL ? realpath(folder, NULL) : find_libraries(major);
    if (found == NULL)
        return frag_fail(error, FRAG_E_SYSTEM,
                         "there are no libraries for CUDA %" PRIu64
                         " beside this fraglab; 'make software-cuda' builds them",
                         major);
    bool ok = true;
    if (strpbrk(found, " :\t\n") != NULL || strpbrk(parts->site, ":") != NULL)
        ok = frag_fail(error, FRAG_E_SYSTEM,
                       "%s cannot be preloaded, as its path has a blank or a colon; move fraglab",
                       found);
    ok = ok && read_list(parts, found, error);
    if (ok)
        compare_sources(parts, found, folder != NULL);
    frag_free(found);
    return ok;
}

void frag_dryrun_parts_destroy(frag_dryrun_parts *parts)
{
    frag_free(parts->site);
    frag_free(parts->tools);
    frag_free(parts->probe);
    frag_free(parts->environments);
    frag_text_destroy(&parts->preload);
    frag_text_destroy(&parts->driver);
    frag_text_destroy(&parts->foreign);
}
