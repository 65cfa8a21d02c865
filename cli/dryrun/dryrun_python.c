#include "cli/dryrun/dryrun_python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define OUTPUT_BYTES_MAX ((size_t)1 << 20)

/* "python", "python3", "python3.11", "pypy3", with a folder or without. */
bool frag_dryrun_is_python(const char *word)
{
    const char *name = frag_path_name(word);
    size_t stem = strncmp(name, "python", 6) == 0 ? 6 : strncmp(name, "pypy", 4) == 0 ? 4 : 0;
    return stem > 0 && name[stem + strspn(name + stem, "0123456789.t")] == '\0';
}

/* Where a program of PATH is. The caller frees; NULL: nowhere. */
static char *find_program(const char *name)
{
    if (strchr(name, '/') != NULL)
        return access(name, X_OK) == 0 ? frag_copy_text(name) : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        frag_text whole = {0};
        frag_text_add(&whole, "%.*s/%s", (int)length, at, name);
        if (length > 0 && access(whole.bytes, X_OK) == 0)
            return whole.bytes;
        frag_text_destroy(&whole);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* The Python that a script's first line names, "#!/x/bin/python3" or "#!/usr/bin/env python3". The
 * caller frees; NULL: it names none. */
static char *find_in_script(const char *path)
{
    char line[512] = "";
    FILE *stream = fopen(path, "r");
    if (stream == NULL)
        return NULL;
    bool ok = fgets(line, sizeof line, stream) != NULL && strncmp(line, "#!", 2) == 0;
    fclose(stream);
    char *rest = NULL;
    for (char *word = ok ? strtok_r(line + 2, " \t\n", &rest) : NULL; word != NULL;
         word = strtok_r(NULL, " \t\n", &rest))
        if (frag_dryrun_is_python(word))
            return frag_copy_text(word);
    return NULL;
}

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return count;
}

/* The words that start the Python, with those of the script behind them; ends with NULL. The caller
 * frees the list and its words. */
static char **python_command(char *const *command, const char *given, char *const *script)
{
    size_t count = count_words(command);
    char **words = frag_alloc(count + count_words(script) + 2, sizeof *words);
    size_t length = 0;
    size_t at = 0;
    while (given == NULL && at < count && !frag_dryrun_is_python(command[at]))
        at++;
    if (given != NULL) {
        words[length++] = frag_copy_text(given);
    } else if (at < count) {
        for (size_t i = 0; i <= at; i++)
            words[length++] = frag_copy_text(command[i]);
    } else {
        char *file = find_program(command[0]);
        char *inside = file != NULL ? find_in_script(file) : NULL;
        char *usual = inside == NULL ? find_program("python3") : NULL;
        words[length++] = inside != NULL  ? inside
                          : usual != NULL ? usual
                                          : frag_copy_text("python");
        frag_free(file);
    }
    for (size_t i = 0; script[i] != NULL; i++)
        words[length++] = frag_copy_text(script[i]);
    return words;
}

static void free_words(char **words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        frag_free(words[i]);
    frag_free(words);
}

static _Noreturn void be_probe(char *const *words, int output, int report)
{
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(output, 1);
    unsetenv("LD_PRELOAD");
    execvp(words[0], words);
    int code = errno;
    ssize_t written = write(report, &code, sizeof code);
    _exit(written == (ssize_t)sizeof code ? 127 : 126);
}

/* What the command prints. false: it cannot be started. */
static bool read_output(char *const *words, frag_text *text, int *status, frag_error *error)
{
    int output[2];
    int report[2];
    fflush(NULL);
    if (pipe(output) != 0 || pipe(report) != 0 || fcntl(report[1], F_SETFD, FD_CLOEXEC) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "no pipe can be made (%s)", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(output[0]);
        be_probe(words, output[1], report[1]);
    }
    close(output[1]);
    close(report[1]);
    char bytes[4096];
    ssize_t got;
    while (child > 0 &&
           ((got = read(output[0], bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0 && text->length < OUTPUT_BYTES_MAX)
            frag_text_add_bytes(text, bytes, (size_t)got);
    int code = 0;
    bool has_failed = read(report[0], &code, sizeof code) > 0;
    close(output[0]);
    close(report[0]);
    while (child > 0 && waitpid(child, status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && !has_failed)
        return true;
    return frag_fail(error, FRAG_E_SYSTEM,
                     "there is no Python: '%s' cannot be run (%s); name one with --python",
                     words[0], strerror(code != 0 ? code : EAGAIN));
}

/* The line of the probe: launchers print others. */
static frag_json *find_line(const frag_text *text)
{
    const char *found = text->bytes != NULL ? strstr(text->bytes, "{\"fraglab_probe\"") : NULL;
    frag_error ignored = {0};
    return found != NULL ? frag_json_parse(found, strcspn(found, "\n"), &ignored) : NULL;
}

static void take_text(const frag_json *json, const char *name, char *text, size_t size)
{
    const char *value = NULL;
    if (frag_json_find_text(json, name, &value))
        snprintf(text, size, "%s", value);
}

static bool judge(const frag_json *json, frag_dryrun_python *python, frag_error *error)
{
    char system[32] = "";
    char machine[32] = "";
    char hip[32] = "";
    take_text(json, "python", python->program, sizeof python->program);
    take_text(json, "version", python->version, sizeof python->version);
    take_text(json, "torch", python->torch, sizeof python->torch);
    take_text(json, "cuda", python->cuda, sizeof python->cuda);
    take_text(json, "system", system, sizeof system);
    take_text(json, "machine", machine, sizeof machine);
    take_text(json, "hip", hip, sizeof hip);
    if (strcmp(system, "Linux") != 0 || strcmp(machine, "x86_64") != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "%s runs on %s %s; a dry run needs Linux on x86_64",
                         python->program, system, machine);
    if (python->torch[0] == '\0')
        return frag_fail(error, FRAG_E_SYSTEM,
                         "%s (Python %s) has no torch; install PyTorch for CUDA there, or name "
                         "another Python with --python",
                         python->program, python->version);
    if (hip[0] != '\0')
        return frag_fail(error, FRAG_E_SYSTEM,
                         "torch %s of %s is built for ROCm; a dry run needs a build for CUDA 12 or "
                         "13",
                         python->torch, python->program);
    if (python->cuda[0] == '\0')
        return frag_fail(error, FRAG_E_SYSTEM,
                         "torch %s of %s is CPU only; a dry run needs a build for CUDA 12 or 13, "
                         "which runs without a GPU too",
                         python->torch, python->program);
    python->major = strtoull(python->cuda, NULL, 10);
    return python->major == 12 || python->major == 13 ||
           frag_fail(error, FRAG_E_SYSTEM,
                     "torch %s of %s is built for CUDA %s; a dry run needs CUDA 12 or 13",
                     python->torch, python->program, python->cuda);
}

bool frag_dryrun_ask_python(char *const *command, const char *given, char *const *script,
                            frag_text *text, int *code, frag_error *error)
{
    int status = 0;
    char **words = python_command(command, given, script);
    bool ok = read_output(words, text, &status, error);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    free_words(words);
    return ok;
}

bool frag_dryrun_check_options(char *const *command, frag_error *error)
{
    size_t at = 0;
    while (command[at] != NULL && !frag_dryrun_is_python(command[at]))
        at++;
    for (at += command[at] != NULL; command[at] != NULL && command[at][0] == '-'; at++) {
        const char *word = command[at];
        /* Behind one of these everything is the program's; -W and -X take a word. */
        size_t own = strcspn(word + 1, "cmWX-");
        for (size_t i = 1; i <= own; i++)
            if (strchr("IES", word[i]) != NULL)
                return frag_fail(error, FRAG_E_USAGE,
                                 "%s -%c leaves out what a dry run puts before the script's own "
                                 "modules; start the script without it",
                                 frag_path_name(command[0]), word[i]);
        if (word[own + 1] == 'c' || word[own + 1] == 'm' || strcmp(word, "--") == 0)
            break;
        if (word[own + 1] != '\0' && word[own + 2] == '\0' && command[at + 1] != NULL)
            at++;
    }
    return true;
}

bool frag_dryrun_find_python(char *const *command, const char *given, const char *probe,
                             frag_dryrun_python *python, frag_error *error)
{
    frag_text text = {0};
    int code = 0;
    char *script[] = {frag_copy_text(probe), NULL};
    *python = (frag_dryrun_python){.major = 0};
    bool ok = frag_dryrun_ask_python(command, given, script, &text, &code, error);
    frag_json *json = ok ? find_line(&text) : NULL;
    if (ok && json == NULL)
        ok = frag_fail(error, FRAG_E_SYSTEM,
                       "'%s' did not run as a Python does; name the Python with --python",
                       given != NULL ? given : command[0]);
    ok = ok && judge(json, python, error);
    if (json != NULL)
        frag_json_destroy(json);
    frag_text_destroy(&text);
    frag_free(script[0]);
    return ok;
}
