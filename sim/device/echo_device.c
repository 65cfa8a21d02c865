#include "sim/device/echo_device.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"

typedef struct echo_device {
    frag_device base;
    frag_echo_options options;
    size_t next;
    uint64_t held_bytes; /* whole pages, for those who look at the memory */
} echo_device;

static echo_device *from_base(frag_device *device)
{
    return (echo_device *)(void *)device;
}

void frag_answer_list_keep(void *list, const frag_device_answer *answer)
{
    frag_answer_list *answers = list;
    *FRAG_APPEND(answers->items, answers->count, answers->capacity) = *answer;
}

void frag_answer_list_destroy(frag_answer_list *list)
{
    frag_free(list->items);
    *list = (frag_answer_list){0};
}

static frag_device_result differ(frag_device *device)
{
    snprintf(device->failure, sizeof device->failure,
             "the policy made other device calls than in the run that this one repeats; its "
             "decisions must depend on the trace and its options alone");
    return FRAG_DEVICE_FAILED;
}

/* What was answered to the next call, which must be this one; NULL: it is not. */
static const frag_device_answer *next_answer(frag_device *device, frag_answer_kind kind,
                                             frag_device_call call)
{
    echo_device *echo = from_base(device);
    if (echo->next == echo->options.answers->count)
        return NULL;
    const frag_device_answer *answer = &echo->options.answers->items[echo->next];
    if (answer->kind != kind || answer->call != call)
        return NULL;
    echo->next++;
    return answer;
}

static frag_device_result hold(frag_device *device, uint64_t bytes, frag_device_result result)
{
    if (result == FRAG_DEVICE_OK)
        from_base(device)->held_bytes += frag_round_up(bytes, device->page_bytes);
    return result;
}

static frag_device_result drop(frag_device *device, uint64_t bytes, frag_device_result result)
{
    if (result == FRAG_DEVICE_OK)
        from_base(device)->held_bytes -= frag_round_up(bytes, device->page_bytes);
    return result;
}

/* A call that gets memory or address space: its size was asked for, its address answered. */
static frag_device_result get(frag_device *device, frag_device_call call, uint64_t bytes,
                              uint64_t *address)
{
    const frag_device_answer *answer = next_answer(device, FRAG_ANSWER_CALL, call);
    if (answer == NULL || answer->bytes != bytes)
        return differ(device);
    *address = answer->address;
    return (frag_device_result)answer->result;
}

/* A call about a place. */
static frag_device_result change(frag_device *device, frag_answer_kind kind, frag_device_call call,
                                 uint64_t address, uint64_t bytes)
{
    const frag_device_answer *answer = next_answer(device, kind, call);
    if (answer == NULL || answer->address != address || answer->bytes != bytes)
        return differ(device);
    return (frag_device_result)answer->result;
}

static frag_device_result echo_malloc(frag_device *device, uint64_t bytes, uint64_t *address)
{
    return hold(device, bytes, get(device, FRAG_DEVICE_MALLOC, bytes, address));
}

static frag_device_result echo_free(frag_device *device, uint64_t address, uint64_t bytes)
{
    return drop(device, bytes, change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_FREE, address, bytes));
}

static frag_device_result echo_reserve(frag_device *device, uint64_t bytes, uint64_t *address)
{
    return get(device, FRAG_DEVICE_RESERVE, bytes, address);
}

static frag_device_result echo_unreserve(frag_device *device, uint64_t address, uint64_t bytes)
{
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_UNRESERVE, address, bytes);
}

static frag_device_result echo_map(frag_device *device, uint64_t address, uint64_t bytes)
{
    return hold(device, bytes, change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_MAP, address, bytes));
}

static frag_device_result echo_unmap(frag_device *device, uint64_t address, uint64_t bytes)
{
    return drop(device, bytes, change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_UNMAP, address, bytes));
}

/* Nothing is held by a second mapping. */
static frag_device_result echo_map_again(frag_device *device, uint64_t address, uint64_t bytes,
                                         uint64_t source)
{
    (void)source;
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_MAP, address, bytes);
}

static frag_device_result echo_unmap_again(frag_device *device, uint64_t address, uint64_t bytes)
{
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_UNMAP, address, bytes);
}

static frag_device_result echo_malloc_async(frag_device *device, uint64_t bytes, uint32_t stream,
                                            uint64_t *address)
{
    (void)stream;
    return hold(device, bytes, get(device, FRAG_DEVICE_MALLOC_ASYNC, bytes, address));
}

static frag_device_result echo_free_async(frag_device *device, uint64_t address, uint32_t stream)
{
    (void)stream;
    const frag_device_answer *answer =
        next_answer(device, FRAG_ANSWER_CALL, FRAG_DEVICE_FREE_ASYNC);
    if (answer == NULL || answer->address != address)
        return differ(device);
    return drop(device, answer->bytes, (frag_device_result)answer->result);
}

/* Queries of free memory are not recorded, since not every run makes them at the same places: they
 * are answered from the count. */
static frag_device_result look(const echo_device *echo, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t free_at_start = echo->options.free_bytes;
    *total_bytes = echo->options.capacity_bytes;
    *free_bytes = free_at_start;
    if (free_at_start != FRAG_UNLIMITED)
        *free_bytes = echo->held_bytes < free_at_start ? free_at_start - echo->held_bytes : 0;
    return FRAG_DEVICE_OK;
}

static frag_device_result echo_memory_info(frag_device *device, bool is_look, uint64_t *free_bytes,
                                           uint64_t *total_bytes)
{
    if (is_look)
        return look(from_base(device), free_bytes, total_bytes);
    const frag_device_answer *answer =
        next_answer(device, FRAG_ANSWER_CALL, FRAG_DEVICE_MEMORY_INFO);
    if (answer == NULL)
        return differ(device);
    *free_bytes = answer->address;
    *total_bytes = answer->bytes;
    return (frag_device_result)answer->result;
}

static frag_device_result echo_synchronize(frag_device *device)
{
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_SYNCHRONIZE, 0, 0);
}

/* Marks are decided by the recording, and kept only so that the answers stay in step. */
static frag_device_result echo_event_record(frag_device *device, uint32_t stream, uint64_t mark)
{
    (void)mark;
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_EVENT_RECORD, stream, 0);
}

static frag_device_result echo_event_wait(frag_device *device, uint32_t stream, uint64_t mark)
{
    (void)mark;
    const frag_device_answer *answer =
        next_answer(device, FRAG_ANSWER_CALL, FRAG_DEVICE_EVENT_QUERY);
    if (answer == NULL)
        answer = next_answer(device, FRAG_ANSWER_CALL, FRAG_DEVICE_EVENT_WAIT);
    if (answer == NULL || answer->address != stream)
        return differ(device);
    return (frag_device_result)answer->result;
}

static frag_device_result echo_event_await(frag_device *device, uint32_t stream, uint32_t other,
                                           uint64_t event)
{
    (void)stream;
    (void)other;
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_EVENT_WAIT, event, 0);
}

static frag_device_result echo_stream_wait(frag_device *device, uint32_t stream)
{
    return change(device, FRAG_ANSWER_CALL, FRAG_DEVICE_STREAM_WAIT, stream, 0);
}

static frag_device_result echo_adopt(frag_device *device, uint64_t address, uint64_t bytes,
                                     bool is_mapped_range)
{
    (void)is_mapped_range;
    return hold(device, bytes,
                change(device, FRAG_ANSWER_ADOPT, FRAG_DEVICE_MALLOC, address, bytes));
}

static void echo_destroy(frag_device *device)
{
    frag_free(from_base(device));
}

static const frag_device_ops echo_ops = {
    .name = "echo",
    .malloc = echo_malloc,
    .free = echo_free,
    .reserve = echo_reserve,
    .unreserve = echo_unreserve,
    .map = echo_map,
    .unmap = echo_unmap,
    .map_again = echo_map_again,
    .unmap_again = echo_unmap_again,
    .malloc_async = echo_malloc_async,
    .free_async = echo_free_async,
    .memory_info = echo_memory_info,
    .synchronize = echo_synchronize,
    .event_record = echo_event_record,
    .event_wait = echo_event_wait,
    .event_await = echo_event_await,
    .stream_wait = echo_stream_wait,
    .adopt = echo_adopt,
    .destroy = echo_destroy,
};

frag_device *frag_echo_device_create(const frag_echo_options *options)
{
    echo_device *echo = frag_alloc(1, sizeof *echo);
    echo->base = (frag_device){
        .ops = &echo_ops,
        .name = "echo",
        .capacity_bytes = options->capacity_bytes,
        .page_bytes = options->page_bytes,
        .needs.refused_min_bytes = FRAG_UNLIMITED,
        .ordinal = options->ordinal,
    };
    echo->options = *options;
    return &echo->base;
}
