/* What fraglab says to the person in front of it, all of it on stderr. */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool frag_is_terminal(int descriptor)
{
    const char *terminal = getenv("TERM");
    return isatty(descriptor) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

bool frag_has_colour(int descriptor)
{
    const char *no_colour = getenv("NO_COLOR");
    return frag_is_terminal(descriptor) && (no_colour == NULL || no_colour[0] == '\0');
}

/* On a terminal a progress line may stand where the message goes. */
static const char *line_start(void)
{
    return frag_is_terminal(STDERR_FILENO) ? "\r\x1b[K" : "";
}

int frag_report(const frag_error *error)
{
    char text[1024];
    frag_error_text(error, text, sizeof text);
    fprintf(stderr, "%sfraglab: %s\n", line_start(), text);
    return error->code == FRAG_E_NONE ? (int)FRAG_E_SYSTEM : (int)error->code;
}

void frag_print_warning(const char *sentence)
{
    fprintf(stderr, "%sfraglab: warning: %s\n", line_start(), sentence);
}

void frag_warn(const frag_arguments *arguments, const char *format, ...)
{
    if (frag_arguments_is_quiet(arguments))
        return;
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    frag_print_warning(sentence);
}

void frag_tell(const frag_arguments *arguments, const char *format, ...)
{
    if (frag_arguments_is_quiet(arguments))
        return;
    va_list values;
    va_start(values, format);
    fputs("fraglab: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
}

void frag_say(const frag_arguments *arguments, const char *format, ...)
{
    if (!frag_arguments_is_verbose(arguments))
        return;
    char sentence[4096]; /* a framework's OOM message is long */
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    fprintf(stderr, "%sfraglab: %s\n", line_start(), sentence);
}
