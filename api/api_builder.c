/* A recording that a caller makes event by event. Its ids are any numbers; a trace wants slots. */
#include <inttypes.h>
#include <string.h>

#include "api/api_recording.h"
#include "base/memory.h"
#include "traces/builder.h"
#include "traces/number_map.h"

/* Deeper stacks are a mistake of the caller: no recorder keeps as many frames. */
enum { FRAMES_MAX = 4096 };

typedef enum builder_state { BUILDER_OPEN, BUILDER_BROKEN, BUILDER_FINISHED } builder_state;

struct fraglab_builder {
    frag_scope *scope; /* of the recording and its tables; the handle itself lies in own */
    frag_scope *own;
    builder_state state;
    bool has_begun; /* the trace of the device */
    uint32_t device;
    char *name;
    uint64_t event_count;
    uint32_t site; /* of the events to come; 0: not known */
    frag_builder *below;
    frag_number_map slots; /* by id, of what is live */
    fraglab_recording *made;
};

typedef struct builder_call {
    fraglab_builder *builder;
    const fraglab_builder_options *options;
    const char *key;
    const char *value;
    const fraglab_event *events;
    const fraglab_frame *frames;
    size_t count;
    uint64_t time_ns;
} builder_call;

static bool own_work(void *arguments, frag_error *error)
{
    builder_call *call = arguments;
    fraglab_builder_options options;
    fraglab_builder *made = frag_alloc(1, sizeof *made);
    if (!frag_call_read(call->options, &options, sizeof options, "fraglab_builder_options", error))
        return false;
    made->name = frag_copy_text(options.name != NULL ? options.name : "built");
    frag_text_make_plain(made->name);
    made->device = options.device;
    made->own = frag_scope_active();
    call->builder = made;
    return true;
}

static bool start_work(void *arguments, frag_error *error)
{
    fraglab_builder *builder = ((builder_call *)arguments)->builder;
    (void)error;
    builder->scope = frag_scope_active();
    builder->made = frag_alloc(1, sizeof *builder->made);
    builder->below = frag_builder_create(&builder->made->recording);
    return true;
}

int fraglab_builder_create(const fraglab_builder_options *options, fraglab_builder **builder,
                           fraglab_error *error)
{
    builder_call call = {.options = options};
    *builder = NULL;
    int code = frag_call_new(own_work, &call, error);
    if (code != FRAGLAB_OK)
        return code;
    code = frag_call_new(start_work, &call, error);
    if (code == FRAGLAB_OK)
        *builder = call.builder;
    else
        frag_scope_destroy(call.builder->own);
    return code;
}

void fraglab_builder_destroy(fraglab_builder *builder)
{
    if (builder == NULL)
        return;
    frag_scope_destroy(builder->scope);
    frag_scope_destroy(builder->own);
}

/* ---- changes; where host memory fails in one, what was built is gone */

static int change(fraglab_builder *builder, frag_call_work *work, builder_call *call,
                  fraglab_error *error)
{
    call->builder = builder;
    if (builder->state != BUILDER_OPEN)
        return frag_call_refuse(error, FRAGLAB_E_USAGE, builder->name,
                                builder->state == BUILDER_FINISHED
                                    ? "the builder has made its recording; create another"
                                    : "host memory ran out for this builder; create another");
    int code = frag_call_in(builder->scope, work, call, error);
    if (code == FRAGLAB_E_MEMORY)
        builder->state = BUILDER_BROKEN;
    return code;
}

static void begin_trace(fraglab_builder *builder)
{
    if (!builder->has_begun)
        frag_builder_device(builder->below, builder->device);
    builder->has_begun = true;
}

static bool set_work(void *arguments, frag_error *error)
{
    builder_call *call = arguments;
    if (call->builder->has_begun)
        return frag_fail_in(error, FRAG_E_USAGE, call->builder->name,
                            "facts come before the first event");
    if (call->key == NULL || call->key[0] == '\0')
        return frag_fail_in(error, FRAG_E_USAGE, call->builder->name,
                            "a fact has no name; expected one, such as torch.conf");
    if (call->value == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, call->key, "the fact has no value");
    frag_builder_metadata(call->builder->below, call->key, call->value);
    return true;
}

int fraglab_builder_set(fraglab_builder *builder, const char *key, const char *value,
                        fraglab_error *error)
{
    builder_call call = {.key = key, .value = value};
    return change(builder, set_work, &call, error);
}

static bool fail_event(const fraglab_builder *builder, frag_error *error, const char *what,
                       uint64_t number)
{
    return frag_fail(error, FRAG_E_INPUT, "event %" PRIu64 ": %s (%" PRIu64 ")",
                     builder->event_count, what, number);
}

/* *slot is that of a live id. */
static bool find_live(const fraglab_builder *builder, uint64_t id, uint64_t *slot,
                      frag_error *error)
{
    return frag_number_map_get(&builder->slots, id, slot) ||
           fail_event(builder, error, "the id is not live; expected one that was allocated", id);
}

static bool add_alloc(fraglab_builder *builder, const fraglab_event *event, frag_error *error)
{
    uint64_t slot = 0;
    if (frag_number_map_get(&builder->slots, event->id, &slot))
        return fail_event(builder, error, "the id is live already; free it first", event->id);
    if (event->bytes == 0 || event->bytes > FRAG_REQUEST_BYTES_MAX)
        return fail_event(builder, error,
                          "a request has another size than " FRAG_REQUEST_BYTES_RANGE,
                          event->bytes);
    slot = frag_builder_slot_take(builder->below);
    frag_number_map_set(&builder->slots, event->id, slot);
    /* A private pool has a name of two numbers; {0, 0} is the default pool. */
    uint32_t pool =
        event->pool == 0 ? 0 : frag_builder_pool(builder->below, (frag_pool_id){0, event->pool});
    frag_builder_add(builder->below, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                         .stream = event->stream,
                                                         .slot = (uint32_t)slot,
                                                         .bytes = event->bytes,
                                                         .site = builder->site,
                                                         .pool = pool,
                                                         .time_ns = event->time_ns});
    return true;
}

static bool add_of_live(fraglab_builder *builder, const fraglab_event *event, frag_error *error)
{
    uint64_t slot = 0;
    bool is_free = event->op == FRAGLAB_FREE;
    if (!find_live(builder, event->id, &slot, error))
        return false;
    frag_builder_add(builder->below, &(frag_build_event){.op = is_free ? FRAG_OP_FREE : FRAG_OP_USE,
                                                         .stream = event->stream,
                                                         .slot = (uint32_t)slot,
                                                         .site = builder->site,
                                                         .time_ns = event->time_ns});
    if (is_free) {
        frag_number_map_remove(&builder->slots, event->id);
        frag_builder_slot_give(builder->below, (uint32_t)slot);
    }
    return true;
}

static bool add_one(fraglab_builder *builder, const fraglab_event *event, frag_error *error)
{
    switch (event->op) {
    case FRAGLAB_ALLOC:
        return add_alloc(builder, event, error);
    case FRAGLAB_FREE:
    case FRAGLAB_USE:
        return add_of_live(builder, event, error);
    case FRAGLAB_SYNC:
        frag_builder_add(builder->below, &(frag_build_event){.op = FRAG_OP_SYNC,
                                                             .is_stream_all = true,
                                                             .site = builder->site,
                                                             .time_ns = event->time_ns});
        return true;
    case FRAGLAB_EMPTY_CACHE:
        frag_builder_add(builder->below, &(frag_build_event){.op = FRAG_OP_EMPTY_CACHE,
                                                             .slot = FRAG_SLOT_NONE,
                                                             .site = builder->site,
                                                             .time_ns = event->time_ns});
        return true;
    default:
        return fail_event(builder, error, "unknown op; expected FRAGLAB_ALLOC and its kin",
                          event->op);
    }
}

static bool add_work(void *arguments, frag_error *error)
{
    builder_call *call = arguments;
    begin_trace(call->builder);
    for (size_t i = 0; i < call->count; i++) {
        if (!add_one(call->builder, &call->events[i], error))
            return frag_error_in(error, call->builder->name);
        call->builder->event_count++;
    }
    return true;
}

int fraglab_builder_add(fraglab_builder *builder, const fraglab_event *events, size_t count,
                        fraglab_error *error)
{
    builder_call call = {.events = events, .count = count};
    return change(builder, add_work, &call, error);
}

static uint32_t text_of(const fraglab_builder *builder, const char *text)
{
    return text != NULL ? frag_builder_text(builder->below, text, strlen(text)) : 0;
}

static bool stack_work(void *arguments, frag_error *error)
{
    builder_call *call = arguments;
    fraglab_builder *builder = call->builder;
    if (call->count > FRAMES_MAX)
        return frag_fail_in(error, FRAG_E_USAGE, builder->name,
                            "the stack has %zu frames; expected %d at most", call->count,
                            FRAMES_MAX);
    uint32_t *frames = frag_alloc(call->count + 1, sizeof *frames);
    for (size_t i = 0; i < call->count; i++) {
        const fraglab_frame *from = &call->frames[i];
        frames[i] = frag_builder_frame(builder->below,
                                       (frag_frame){.name = text_of(builder, from->function),
                                                    .file = text_of(builder, from->file),
                                                    .line = from->line});
    }
    builder->site =
        call->count > 0 ? frag_builder_site(builder->below, frames, (uint32_t)call->count) : 0;
    frag_free(frames);
    return true;
}

int fraglab_builder_stack(fraglab_builder *builder, const fraglab_frame *frames, size_t count,
                          fraglab_error *error)
{
    builder_call call = {.frames = frames, .count = count};
    return change(builder, stack_work, &call, error);
}

static bool mark_work(void *arguments, frag_error *error)
{
    builder_call *call = arguments;
    fraglab_builder *builder = call->builder;
    if (call->key == NULL || call->key[0] == '\0')
        return frag_fail_in(error, FRAG_E_USAGE, builder->name,
                            "a mark has no name; expected one, such as step");
    begin_trace(builder);
    frag_builder_add(builder->below, &(frag_build_event){.op = FRAG_OP_MARK,
                                                         .slot = text_of(builder, call->key),
                                                         .time_ns = call->time_ns});
    builder->event_count++;
    return true;
}

int fraglab_builder_mark(fraglab_builder *builder, const char *name, uint64_t time_ns,
                         fraglab_error *error)
{
    builder_call call = {.key = name, .time_ns = time_ns};
    return change(builder, mark_work, &call, error);
}

static bool finish_work(void *arguments, frag_error *error)
{
    fraglab_builder *builder = ((builder_call *)arguments)->builder;
    begin_trace(builder);
    builder->state = BUILDER_FINISHED; /* what is below is used up, also by a failure */
    frag_number_map_destroy(&builder->slots);
    if (!frag_builder_finish(builder->below, builder->name, error))
        return frag_error_in(error, builder->name);
    builder->made->has_columns = true;
    frag_recorded_by(&builder->made->recording, builder->made->recorded_by);
    return true;
}

int fraglab_builder_finish(fraglab_builder *builder, fraglab_recording **recording,
                           fraglab_error *error)
{
    builder_call call = {.builder = builder};
    *recording = NULL;
    int code = change(builder, finish_work, &call, error);
    if (code == FRAGLAB_OK) {
        builder->made->scope = builder->scope;
        builder->scope = NULL;
        *recording = builder->made;
    }
    return code;
}
