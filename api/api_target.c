#include "api/api_target.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/text_stream.h"

/* frag_output_open would say it in the words of the command line. */
static bool exists(const frag_target *target)
{
    struct stat status;
    return !target->may_overwrite && stat(target->path, &status) == 0 && S_ISREG(status.st_mode);
}

bool frag_target_write(frag_target *target, frag_target_writer *write, void *state,
                       frag_error *error)
{
    if (target->path == NULL) {
        frag_text_stream *stream = frag_text_stream_open();
        if (!write(state, frag_text_stream_file(stream), error)) {
            frag_text_stream_abandon(stream);
            return false;
        }
        target->bytes = frag_call_hand_out(frag_text_stream_close(stream, &target->count));
        return true;
    }
    if (frag_output_is_stdout(target->path))
        return frag_fail_in(error, FRAG_E_USAGE, "path", "nothing is printed here; name a file");
    if (exists(target))
        return frag_fail_in(error, FRAG_E_USAGE, target->path,
                            "the file exists; set overwrite to 1 to replace it");
    frag_output *output = frag_output_open(target->path, target->may_overwrite, error);
    if (output == NULL)
        return false;
    if (write(state, frag_output_stream(output), error))
        return frag_output_finish(output, error);
    frag_output_abandon(output);
    return frag_error_in(error, target->path);
}
