#include "cli/run/run_files.h"

/* Each is about one run. */
static bool open_file(const frag_arguments *arguments, const frag_policy_list *policies,
                      const char *option, const char *is_one, frag_run_file *file,
                      frag_error *error)
{
    char where[32];
    const char *path = frag_arguments_value(arguments, option);
    if (path == NULL)
        return true;
    if (policies->count != 1 || frag_arguments_operand_count(arguments) != 1) {
        frag_fail(error, FRAG_E_USAGE, "the %s; give one trace and one policy", is_one);
        snprintf(where, sizeof where, "--%s", option);
        return frag_error_in(error, where);
    }
    file->output = frag_output_open(path, frag_arguments_has(arguments, "force"), error);
    return file->output != NULL;
}

static bool open_snapshot(const frag_arguments *arguments, const frag_policy_list *policies,
                          frag_run_files *files, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "snapshot");
    const char *at = frag_arguments_value(arguments, "snapshot-at");
    frag_run_point point = {.kind = FRAG_RUN_POINT_END};
    if (at != NULL && path == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "--snapshot-at",
                            "no snapshot is asked for; name its file with --snapshot");
    if (at != NULL && !frag_run_point_parse(at, &point, error))
        return frag_error_in(error, "--snapshot-at");
    if (!open_file(arguments, policies, "snapshot", "snapshot shows one run", &files->snapshot,
                   error))
        return false;
    frag_output *output = files->snapshot.output;
    if (output == NULL)
        return true;
    if (!frag_inputs_spare_terminal(output, "a snapshot", "name a file", error))
        return frag_error_in(error, "--snapshot");
    files->snapshot_of = frag_run_snapshot_create(&point, "--snapshot-at", frag_codec_of_path(path),
                                                  frag_output_stream(output));
    return true;
}

bool frag_run_files_open(const frag_arguments *arguments, const frag_policy_list *policies,
                         frag_run_files *files, frag_error *error)
{
    if (!open_snapshot(arguments, policies, files, error) ||
        !open_file(arguments, policies, "chrome", "Chrome trace shows one run", &files->chrome,
                   error) ||
        !open_file(arguments, policies, "placement", "placement is that of one run",
                   &files->placement, error))
        return false;
    if (files->chrome.output != NULL)
        files->chrome_of.stream = frag_output_stream(files->chrome.output);
    return true;
}

static int close_file(frag_run_file *file)
{
    frag_error error = {0};
    return frag_output_end(file->output, file->is_whole, &error) ? 0 : frag_report(&error);
}

int frag_run_files_close(frag_run_files *files)
{
    frag_run_snapshot_destroy(files->snapshot_of);
    frag_chrome_writer_destroy(&files->chrome_of);
    int code = close_file(&files->snapshot);
    int chrome_code = close_file(&files->chrome);
    int placement_code = close_file(&files->placement);
    return code != 0 ? code : chrome_code != 0 ? chrome_code : placement_code;
}
