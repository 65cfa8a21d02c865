/* The entry point of fraglab: reads the command line, runs the command, returns the exit code. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "sim/version.h"

#define EXIT_INTERRUPTED 130

static int run(const frag_arguments *arguments)
{
    if (arguments->is_version) {
        printf("fraglab %s (%s)\n", frag_version(), frag_commit());
        return 0;
    }
    if (arguments->is_help) {
        frag_help_print(stdout, arguments->path, arguments->path_length);
        return 0;
    }
    size_t at = arguments->path_length - 1;
    while (arguments->path[at]->run == NULL)
        at--;
    int code = arguments->path[at]->run(arguments);
    if (!frag_is_interrupted())
        return code;
    fputs("fraglab: interrupted\n", stderr);
    return code == 0 ? EXIT_INTERRUPTED : code;
}

int main(int argc, char **argv)
{
    frag_watch_signals();
    frag_memory_keep();
    frag_arguments arguments;
    frag_error error = {.code = FRAG_E_NONE};
    if (argc <= 1) {
        const frag_command *path[] = {&frag_program};
        frag_help_print(stderr, path, 1);
        return (int)FRAG_E_USAGE;
    }
    int code = frag_arguments_parse(&arguments, argc, argv, &error) ? run(&arguments)
                                                                    : frag_report(&error);
    frag_arguments_destroy(&arguments);
    /* A full disk shows only now; a result that was lost must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code != (int)FRAG_E_SYSTEM) {
        frag_error lost = {.code = FRAG_E_NONE};
        frag_fail(&lost, FRAG_E_SYSTEM,
                  "stdout could not be written (%s); nothing on it can be trusted",
                  strerror(errno));
        return frag_report(&lost);
    }
    return code;
}
