/* Which releases of a package there are, and virtual environments that have them. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/dryrun/bisect_state.h"

enum { CODE_INTERRUPTED = 130 };

/* ---- versions */

static uint64_t next_number(const char **at)
{
    uint64_t value = 0;
    while (isdigit((unsigned char)**at) && value < UINT64_MAX / 100)
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    if (**at == '.' && isdigit((unsigned char)(*at)[1]))
        (*at)++;
    return value;
}

static bool has_number(const char *at)
{
    return isdigit((unsigned char)*at) != 0;
}

/* By their numbers; a missing one is 0. */
static int compare_versions(const char *a, const char *b)
{
    while (has_number(a) || has_number(b)) {
        uint64_t left = has_number(a) ? next_number(&a) : 0;
        uint64_t right = has_number(b) ? next_number(&b) : 0;
        if (left != right)
            return left < right ? -1 : 1;
    }
    return strcmp(a, b);
}

/* "2.9.1", and no "2.10.0rc1". */
static bool is_version(const char *text)
{
    size_t length = strlen(text);
    return has_number(text) && strspn(text, "0123456789.") == length && text[length - 1] != '.' &&
           strstr(text, "..") == NULL;
}

/* 2.15.0 is of 2.15. */
static bool is_of(const char *version, const char *series)
{
    size_t length = strlen(series);
    return strncmp(version, series, length) == 0 &&
           (version[length] == '.' || version[length] == '\0');
}

static bool is_in_range(const frag_bisect *bisect, const char *version)
{
    return is_version(version) && compare_versions(version, bisect->first) >= 0 &&
           (compare_versions(version, bisect->last) <= 0 || is_of(version, bisect->last));
}

/* ---- the range */

static bool read_ends(frag_bisect *bisect, const char *option, const char *text, frag_error *error)
{
    const char *dots = strstr(text, "..");
    frag_text first = {0};
    frag_text_add_bytes(&first, text, dots != NULL ? (size_t)(dots - text) : 0);
    bisect->first = first.bytes;
    bisect->last = frag_copy_text(dots != NULL ? dots + 2 : "");
    if (dots != NULL && is_version(bisect->first) && is_version(bisect->last)) {
        if (compare_versions(bisect->first, bisect->last) <= 0)
            return true;
        return frag_fail_in(error, FRAG_E_USAGE, option,
                            "%s comes after %s; write the earlier release first", bisect->first,
                            bisect->last);
    }
    return frag_fail_in(error, FRAG_E_USAGE, option,
                        "'%s' is no range of releases; write FIRST..LAST, such as %s", text,
                        strcmp(option, "--torch") == 0 ? "2.6..2.15" : "transformers==4.50..4.57");
}

bool frag_bisect_read_range(frag_bisect *bisect, frag_error *error)
{
    const char *torch = frag_arguments_value(bisect->arguments, "torch");
    const char *package = frag_arguments_value(bisect->arguments, "package");
    if ((torch != NULL) == (package != NULL))
        return frag_fail(error, FRAG_E_USAGE,
                         "which releases? Write either --torch 2.6..2.15 or --package "
                         "NAME==FIRST..LAST");
    if (torch != NULL) {
        bisect->package = frag_copy_text("torch");
        return read_ends(bisect, "--torch", torch, error);
    }
    const char *equals = strstr(package, "==");
    size_t length = equals != NULL ? (size_t)(equals - package) : 0;
    frag_text name = {0};
    frag_text_add_bytes(&name, package, length);
    bisect->package = name.bytes;
    size_t plain =
        strspn(package, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (length == 0 || plain < length || package[0] == '-')
        return frag_fail_in(error, FRAG_E_USAGE, "--package",
                            "'%s' names no package; write NAME==FIRST..LAST", package);
    return read_ends(bisect, "--package", equals + 2, error);
}

static int compare_releases(const void *left, const void *right)
{
    const frag_bisect_release *a = left, *b = right;
    return compare_versions(a->name, b->name);
}

static frag_bisect_release *add_release(frag_bisect *bisect, const char *name)
{
    for (size_t i = 0; i < bisect->count; i++)
        if (strcmp(bisect->releases[i].name, name) == 0)
            return NULL;
    bisect->releases = frag_realloc(bisect->releases, bisect->count + 1, sizeof *bisect->releases);
    frag_bisect_release *release = &bisect->releases[bisect->count++];
    *release = (frag_bisect_release){.name = frag_copy_text(name), .wheel_bytes = FRAG_UNLIMITED};
    return release;
}

/* ---- ready environments */

/* Python writes '-', '_' and '.' alike in the names of packages. */
static bool is_same_package(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int left = strchr("-_.", a[i]) != NULL ? '-' : tolower((unsigned char)a[i]);
        int right = strchr("-_.", b[i]) != NULL ? '-' : tolower((unsigned char)b[i]);
        if (left != right || b[i] == '\0')
            return false;
    }
    return true;
}

/* "DIR/venv/lib/python3.11/site-packages/torch-2.9.1+cu128.dist-info" */
static void take_installed(frag_bisect *bisect, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    size_t length = strlen(bisect->package);
    if (strlen(name) <= length || !is_same_package(bisect->package, name, length) ||
        name[length] != '-')
        return;
    frag_text version = {0};
    frag_text environment = {0};
    frag_text program = {0};
    const char *text = name + length + 1;
    size_t end = strcspn(text, "+");
    size_t suffix = strlen(text) - strlen(".dist-info");
    frag_text_add_bytes(&version, text, end < suffix ? end : suffix);
    frag_text_add_bytes(&environment, path, (size_t)(strstr(path, "/lib/python") - path));
    frag_text_add(&program, "%s/bin/python", environment.bytes);
    if (is_in_range(bisect, version.bytes) && access(program.bytes, X_OK) == 0) {
        frag_bisect_release *release = add_release(bisect, version.bytes);
        if (release != NULL) {
            release->environment = realpath(environment.bytes, NULL);
            release->is_made = true;
        }
    }
    frag_text_destroy(&version);
    frag_text_destroy(&environment);
    frag_text_destroy(&program);
}

static bool find_ready(frag_bisect *bisect, const char *folder, frag_error *error)
{
    frag_text pattern = {0};
    glob_t found = {0};
    if (access(folder, R_OK | X_OK) != 0)
        return frag_fail_in(error, FRAG_E_INPUT, "--environments",
                            "there is no folder '%s' that can be read", folder);
    frag_text_add(&pattern, "%s/*/lib/python*/site-packages/*.dist-info", folder);
    if (glob(pattern.bytes, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (strstr(found.gl_pathv[i] + strlen(folder), "/lib/python") != NULL)
                take_installed(bisect, found.gl_pathv[i]);
    globfree(&found);
    frag_text_destroy(&pattern);
    bisect->folder = frag_copy_text(folder);
    return true;
}

/* ---- those that can be fetched */

static bool add_cache_folder(frag_text *folder, frag_error *error)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/')
        frag_text_add(folder, "%s/fraglab/environments", cache);
    else if (home != NULL && home[0] == '/')
        frag_text_add(folder, "%s/.cache/fraglab/environments", home);
    else
        return frag_fail(error, FRAG_E_SYSTEM,
                         "there is no folder for environments; set XDG_CACHE_HOME or HOME");
    return true;
}

/* The words of environments.py; the caller frees them. */
static char **helper_words(const frag_bisect *bisect, const char *helper, const char *what,
                           const char *folder, const char *release)
{
    const frag_arguments *arguments = bisect->arguments;
    size_t others = frag_arguments_value_count(arguments, "with");
    char **words = frag_alloc(others + 6, sizeof *words);
    size_t count = 0;
    words[count++] = frag_copy_text(helper);
    words[count++] = frag_copy_text(what);
    words[count++] = frag_copy_text(folder);
    words[count++] = frag_copy_text(bisect->package);
    if (release != NULL)
        words[count++] = frag_copy_text(release);
    for (size_t i = 0; i < others; i++)
        words[count++] = frag_copy_text(frag_arguments_value_at(arguments, "with", i));
    return words;
}

static bool ask_helper(const frag_bisect *bisect, const char *what, const char *folder,
                       const char *release, frag_text *text, frag_error *error)
{
    frag_dryrun_parts parts;
    int code = 0;
    bool ok = frag_dryrun_parts_find(&parts, error);
    if (ok) {
        char **words = helper_words(bisect, parts.environments, what, folder, release);
        ok = frag_dryrun_ask_python(bisect->command,
                                    frag_arguments_value(bisect->arguments, "python"), words, text,
                                    &code, error);
        frag_dryrun_free_words(words);
    }
    frag_dryrun_parts_destroy(&parts);
    if (ok && (frag_is_interrupted() || code == CODE_INTERRUPTED))
        return false;
    /* It has said why. */
    if (ok && code != 0)
        ok = frag_fail(error, FRAG_E_SYSTEM,
                       release != NULL ? "the environment of %s %s cannot be made"
                                       : "the releases of %s cannot be listed",
                       bisect->package, release != NULL ? release : "");
    return ok;
}

static void take_listed(frag_bisect *bisect, const frag_json *json)
{
    const char *name = NULL;
    uint64_t bytes = FRAG_UNLIMITED;
    frag_bisect_release *release = NULL;
    if (!frag_json_find_text(json, "release", &name) || !is_in_range(bisect, name) ||
        (release = add_release(bisect, name)) == NULL)
        return;
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", bisect->folder, name);
    release->environment = frag_copy_text(path.bytes);
    frag_json_find_number(json, "bytes", &bytes);
    release->wheel_bytes = bytes;
    frag_text_add(&path, "/complete");
    release->is_made = access(path.bytes, R_OK) == 0;
    frag_text_destroy(&path);
}

static bool find_listed(frag_bisect *bisect, frag_error *error)
{
    frag_text cache = {0};
    frag_text text = {0};
    bool ok = add_cache_folder(&cache, error) &&
              ask_helper(bisect, "list", cache.bytes, NULL, &text, error);
    char *rest = NULL;
    for (char *line = ok && text.bytes != NULL ? strtok_r(text.bytes, "\n", &rest) : NULL;
         line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const char *folder = NULL;
        frag_error ignored = {0};
        frag_json *json = frag_json_parse(line, strlen(line), &ignored);
        if (json == NULL)
            continue;
        if (frag_json_find_text(json, "folder", &folder) && bisect->folder == NULL)
            bisect->folder = frag_copy_text(folder);
        else if (bisect->folder != NULL)
            take_listed(bisect, json);
        frag_json_destroy(json);
    }
    if (ok && bisect->folder == NULL)
        ok = frag_fail(error, FRAG_E_SYSTEM,
                       "'%s' did not run as a Python does; name the Python with --python",
                       bisect->command[0]);
    frag_text_destroy(&text);
    frag_text_destroy(&cache);
    return ok;
}

bool frag_bisect_find_releases(frag_bisect *bisect, frag_error *error)
{
    const char *folder = frag_arguments_value(bisect->arguments, "environments");
    if (!(folder != NULL ? find_ready(bisect, folder, error) : find_listed(bisect, error)))
        return false;
    if (bisect->count < 2)
        return frag_fail(error, FRAG_E_INPUT,
                         "%s of %s from %s to %s %s; a bisection needs two or more",
                         bisect->count == 0 ? "no release" : "one release", bisect->package,
                         bisect->first, bisect->last,
                         folder != NULL ? "is among the environments of that folder"
                                        : "is offered for this Python");
    qsort(bisect->releases, bisect->count, sizeof *bisect->releases, compare_releases);
    return true;
}

bool frag_bisect_make(frag_bisect *bisect, frag_bisect_release *release, frag_error *error)
{
    frag_text text = {0};
    if (release->is_made)
        return true;
    if (!frag_arguments_is_quiet(bisect->arguments))
        fprintf(stderr, "fraglab: making the environment of %s %s (%s to fetch) in %s\n",
                bisect->package, release->name,
                release->wheel_bytes != FRAG_UNLIMITED ? FRAG_BYTES(release->wheel_bytes)
                                                       : "a wheel of unknown size",
                release->environment);
    release->is_made =
        ask_helper(bisect, "make", release->environment, release->name, &text, error);
    frag_text_destroy(&text);
    return release->is_made;
}

bool frag_bisect_find(const frag_bisect *bisect, const char *name, size_t *index, frag_error *error)
{
    for (size_t i = 0; i < bisect->count; i++)
        if (strcmp(bisect->releases[i].name, name) == 0) {
            *index = i;
            return true;
        }
    return frag_fail(error, FRAG_E_USAGE, "there is no release %s; the first is %s, the last %s",
                     name, bisect->releases[0].name, bisect->releases[bisect->count - 1].name);
}
