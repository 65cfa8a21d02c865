#include "cli/run/run_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/run/run_point.h"
#include "sim/version.h"
#include "traces/torch/snapshot_write.h"

struct frag_run_snapshot {
    frag_run_point point;
    frag_output *output;
    frag_codec codec;
    char *plain; /* what is to be compressed, once it is whole */
    size_t plain_count;
    FILE *plain_stream;           /* into plain; NULL when nothing is compressed */
    frag_snapshot_writer *writer; /* NULL: nothing added yet, or all of it written */
    const frag_recording *recording;
    const frag_policy_spec *policy; /* of the last run added */
    bool is_whole;
};

static bool read_options(const frag_arguments *arguments, const frag_policy_list *policies,
                         frag_run_point *point, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "snapshot");
    const char *at = frag_arguments_value(arguments, "snapshot-at");
    *point = (frag_run_point){.kind = FRAG_RUN_POINT_END};
    if (at != NULL && path == NULL) {
        frag_fail(error, FRAG_E_USAGE, "no snapshot is asked for; name its file with --snapshot");
        return frag_error_in(error, "--snapshot-at");
    }
    if (at != NULL && !frag_run_point_parse(at, point, error))
        return frag_error_in(error, "--snapshot-at");
    if (path == NULL)
        return true;
    if (policies->count != 1 || frag_arguments_operand_count(arguments) != 1) {
        frag_fail(error, FRAG_E_USAGE, "the snapshot shows one run; give one trace and one policy");
        return frag_error_in(error, "--snapshot");
    }
    return true;
}

static frag_codec codec_of(const char *path)
{
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".zst") == 0)
        return FRAG_CODEC_ZSTD;
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        return FRAG_CODEC_GZIP;
    return FRAG_CODEC_PLAIN;
}

bool frag_run_snapshot_open(const frag_arguments *arguments, const frag_policy_list *policies,
                            frag_run_snapshot **snapshot, frag_error *error)
{
    const char *path = frag_arguments_value(arguments, "snapshot");
    frag_run_point point;
    *snapshot = NULL;
    if (!read_options(arguments, policies, &point, error))
        return false;
    if (path == NULL)
        return true;
    frag_output *output = frag_output_open(path, frag_arguments_has(arguments, "force"), error);
    if (output == NULL)
        return false;
    if (!frag_inputs_spare_terminal(output, "a snapshot", "name a file", error)) {
        frag_output_abandon(output);
        return frag_error_in(error, "--snapshot");
    }
    *snapshot = frag_alloc(1, sizeof **snapshot);
    (*snapshot)->point = point;
    (*snapshot)->output = output;
    (*snapshot)->codec = codec_of(path);
    if ((*snapshot)->codec != FRAG_CODEC_PLAIN)
        (*snapshot)->plain_stream = open_memstream(&(*snapshot)->plain, &(*snapshot)->plain_count);
    return true;
}

static FILE *stream_of(const frag_run_snapshot *snapshot)
{
    return snapshot->plain_stream != NULL ? snapshot->plain_stream
                                          : frag_output_stream(snapshot->output);
}

bool frag_run_snapshot_add(frag_run_snapshot *snapshot, const frag_recording *recording,
                           const frag_trace *trace, const frag_policy_spec *policy,
                           const frag_device_spec *device, const frag_run_options *run,
                           const frag_replay_result *first, frag_error *error)
{
    frag_replay_options again = {
        .is_oom_skipped = run->is_oom_skipped,
        .on_note = frag_snapshot_writer_note,
        .is_start_noted = true,
        .context = run->context,
    };
    if (!frag_run_point_find(&snapshot->point, trace, first, &again, error))
        return frag_error_in(error, "--snapshot-at");
    if (snapshot->writer == NULL)
        snapshot->writer = frag_snapshot_writer_create(recording, stream_of(snapshot));
    snapshot->recording = recording;
    snapshot->policy = policy;
    again.on_note_context = snapshot->writer;
    frag_snapshot_writer_begin(snapshot->writer, trace);
    return frag_run_look(&(frag_run_setup){recording, trace, policy->ops, policy->values, device},
                         &again, frag_snapshot_writer_look, snapshot->writer, error);
}

/* ---- what the settings were */

/* PyTorch knows no other words for a switch, and none for a limit that is not there. */
static const char *conf_word(const frag_option *option, const frag_option_value *value)
{
    if (option->type == FRAG_OPTION_FLAG)
        return value->number != 0 ? "True" : "False";
    return option->type == FRAG_OPTION_COUNT && value->number == FRAG_UNLIMITED ? NULL
                                                                                : value->text;
}

/* The options given, as one settings string; but for what PyTorch knows as no setting. */
static void write_conf(const frag_policy_spec *policy, frag_text *conf)
{
    frag_text_add_bytes(conf, "", 0);
    for (uint32_t i = 0; i < policy->value_count; i++) {
        const char *key = policy->ops->options[i].key;
        const char *word = conf_word(&policy->ops->options[i], &policy->values[i]);
        const char *comma = conf->length > 0 ? "," : "";
        if (!policy->values[i].is_given || strcmp(key, "version") == 0 || word == NULL)
            continue;
        if (strcmp(key, "conf") == 0)
            frag_text_add(conf, "%s%s", comma, policy->values[i].text);
        else
            frag_text_add(conf, "%s%s:%s", comma, key, word);
    }
}

static bool add_settings(const frag_run_snapshot *snapshot, frag_snapshot_about *about,
                         frag_text *conf, frag_error *error)
{
    const frag_policy_spec *policy = snapshot->policy;
    if (policy->ops->options != frag_pytorch_options)
        return true;
    const char *version = frag_recording_get(snapshot->recording, "torch.version_hint");
    frag_pytorch_settings settings;
    if (!frag_pytorch_settings_create(&settings, policy->values, version != NULL ? version : "",
                                      error))
        return false;
    write_conf(policy, conf);
    about->conf = conf->bytes;
    about->max_split_bytes = settings.max_split_bytes;
    about->gc_threshold = settings.gc_threshold;
    about->is_expandable = settings.is_expandable;
    for (unsigned i = 0; i < 16; i++)
        about->divisions[i] = settings.divisions[i];
    return true;
}

bool frag_run_snapshot_end(frag_run_snapshot *snapshot, frag_error *error)
{
    if (snapshot->writer == NULL)
        return true;
    frag_text tool = {0};
    frag_text conf = {0};
    frag_text_add(&tool, "fraglab %s", frag_version());
    frag_snapshot_about about = {
        .conf = "",
        .max_split_bytes = FRAG_UNLIMITED,
        .tool = tool.bytes,
        .policy = snapshot->policy->text,
        .trace = snapshot->recording->name,
    };
    snapshot->is_whole = add_settings(snapshot, &about, &conf, error);
    if (snapshot->is_whole)
        frag_snapshot_writer_finish(snapshot->writer, &about);
    else
        frag_snapshot_writer_abandon(snapshot->writer);
    snapshot->writer = NULL;
    frag_text_destroy(&tool);
    frag_text_destroy(&conf);
    return snapshot->is_whole;
}

static void write_packed(const frag_run_snapshot *snapshot)
{
    size_t count = 0;
    void *packed = frag_codec_pack(snapshot->codec, snapshot->plain, snapshot->plain_count, &count);
    fwrite(packed, 1, count, frag_output_stream(snapshot->output));
    frag_free(packed);
}

bool frag_run_snapshot_close(frag_run_snapshot *snapshot, frag_error *error)
{
    bool ok = true;
    if (snapshot == NULL)
        return true;
    frag_snapshot_writer_abandon(snapshot->writer);
    if (snapshot->plain_stream != NULL) {
        fclose(snapshot->plain_stream);
        if (snapshot->is_whole)
            write_packed(snapshot);
        frag_free(snapshot->plain);
    }
    if (snapshot->is_whole)
        ok = frag_output_finish(snapshot->output, error);
    else
        frag_output_abandon(snapshot->output);
    frag_free(snapshot);
    return ok;
}
