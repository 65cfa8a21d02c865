#include "gpu_replay/software/libraries/standin_version.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "9.10.2.21": the first three numbers. */
static bool parse_version(const char *text, frag_standin_version *version)
{
    int numbers[3] = {0};
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number > 9999)
            return i > 0 && (version->major = numbers[0], version->minor = numbers[1],
                             version->patch = numbers[2], true);
        numbers[i] = (int)number;
        text = *end == '.' ? end + 1 : end;
    }
    *version = (frag_standin_version){numbers[0], numbers[1], numbers[2]};
    return true;
}

static bool read_setting(const char *name, frag_standin_version *version)
{
    char variable[64] = "FRAGLAB_SOFTWARE_";
    size_t length = strlen(variable);
    for (const char *c = name; *c != '\0' && length + 1 < sizeof variable; c++)
        variable[length++] = (char)toupper((unsigned char)*c);
    variable[length] = '\0';
    const char *text = getenv(variable);
    return text != NULL && parse_version(text, version);
}

/* A line such as: Requires-Dist: nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == "Linux" */
static bool parse_requirement(const char *line, const char *name, frag_standin_version *version)
{
    static const char head[] = "Requires-Dist: nvidia-";
    if (strncmp(line, head, sizeof head - 1) != 0)
        return false;
    line += sizeof head - 1;
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || (line[length] != '-' && line[length] != '='))
        return false;
    const char *equal = strstr(line, "==");
    return equal != NULL && parse_version(equal + 2, version);
}

static bool read_metadata(const char *path, const char *name, frag_standin_version *version)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[512];
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL && line[0] != '\n')
        is_found = parse_requirement(line, name, version);
    fclose(file);
    return is_found;
}

/* .../site-packages/torch/lib/libtorch_cuda.so belongs to .../site-packages/torch-*.dist-info. */
static bool read_installation(const char *library, const char *name, frag_standin_version *version)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", library) >= (int)sizeof folder)
        return false;
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return false;
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(directory)) != NULL;) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "torch-", 6) == 0 && strstr(entry->d_name, ".dist-info") &&
            snprintf(path, sizeof path, "%s/%s/METADATA", folder, entry->d_name) < PATH_MAX)
            is_found = read_metadata(path, name, version);
    }
    closedir(directory);
    return is_found;
}

frag_standin_version frag_standin_find_version(const char *name, const void *caller,
                                               frag_standin_version otherwise)
{
    static __thread struct {
        char name[16];
        frag_standin_version version;
    } found;
    if (strcmp(found.name, name) == 0)
        return found.version;
    frag_standin_version version = otherwise;
    Dl_info info;
    if (!read_setting(name, &version) && dladdr(caller, &info) != 0 && info.dli_fname != NULL)
        read_installation(info.dli_fname, name, &version);
    snprintf(found.name, sizeof found.name, "%s", name);
    found.version = version;
    return version;
}

size_t frag_standin_cuda_version(void)
{
    int (*get)(int *) = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
    int version = 0;
    return get != NULL && get(&version) == 0 && version > 0 ? (size_t)version : 12080;
}
