#include "studies/run/run_snapshot.h"

#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "sim/version.h"
#include "traces/torch/snapshot_write.h"

struct frag_run_snapshot {
    frag_run_point point;
    const char *point_option;
    frag_codec codec;
    FILE *stream;
    frag_text_stream *plain;      /* what is to be compressed, once it is whole; NULL: nothing is */
    frag_snapshot_writer *writer; /* NULL: nothing added yet, or all of it written */
    const frag_recording *recording;
    const frag_policy_spec *policy; /* of the last run added */
};

frag_run_snapshot *frag_run_snapshot_create(const frag_run_point *point, const char *point_option,
                                            frag_codec codec, FILE *stream)
{
    frag_run_snapshot *snapshot = frag_alloc(1, sizeof *snapshot);
    *snapshot = (frag_run_snapshot){
        .point = *point, .point_option = point_option, .codec = codec, .stream = stream};
    if (codec != FRAG_CODEC_PLAIN)
        snapshot->plain = frag_text_stream_open();
    return snapshot;
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
        return frag_error_in(error, snapshot->point_option);
    if (snapshot->writer == NULL)
        snapshot->writer = frag_snapshot_writer_create(
            recording,
            snapshot->plain != NULL ? frag_text_stream_file(snapshot->plain) : snapshot->stream);
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

static void write_packed(frag_run_snapshot *snapshot)
{
    size_t plain_count = 0;
    size_t count = 0;
    char *plain = frag_text_stream_close(snapshot->plain, &plain_count);
    void *packed = frag_codec_pack(snapshot->codec, plain, plain_count, &count);
    snapshot->plain = NULL;
    fwrite(packed, 1, count, snapshot->stream);
    frag_free(packed);
    frag_free(plain);
}

bool frag_run_snapshot_end(frag_run_snapshot *snapshot, frag_error *error)
{
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
    bool ok = add_settings(snapshot, &about, &conf, error);
    if (ok) {
        frag_snapshot_writer_finish(snapshot->writer, &about);
        snapshot->writer = NULL;
        if (snapshot->plain != NULL)
            write_packed(snapshot);
    }
    frag_text_destroy(&tool);
    frag_text_destroy(&conf);
    return ok;
}

void frag_run_snapshot_destroy(frag_run_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    frag_snapshot_writer_abandon(snapshot->writer);
    if (snapshot->plain != NULL)
        frag_text_stream_abandon(snapshot->plain);
    frag_free(snapshot);
}
