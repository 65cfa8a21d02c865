/* A policy whose decisions are functions of the caller: fraglab_policy_create.
 *
 * The functions may be wrong in any way, so each answer is checked before the engine sees it. Live
 * blocks and segments are kept in two arrays in address order, found by bisection; to insert one
 * moves those above it. That is slow beside a policy in C, and fast beside a caller in Python. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api_policy.h"
#include "base/memory.h"
#include "include/fraglab_policy.h"
#include "sim/policy.h"

/* Segments that the functions may hold at a time beyond one for each request. */
enum { SEGMENTS_MORE = 4096 };

typedef struct piece {
    uint64_t address;
    uint64_t bytes;
    frag_handle handle; /* blocks: of the engine */
} piece;

typedef struct pieces {
    piece *items; /* in address order */
    size_t count;
    size_t most;
} pieces;

/* The engine knows its table alone, and create finds the functions behind it. */
typedef struct function_table {
    frag_policy_ops ops; /* first */
    fraglab_policy_functions functions;
} function_table;

struct frag_policy {
    const function_table *table;
    frag_device *device;
    frag_scope *scope;
    void *run; /* of the caller */
    pieces segments;
    pieces blocks;
    uint64_t *addresses; /* by handle */
    frag_handle *unused; /* handles to be given out again */
    size_t unused_count;
    frag_handle handle_count;
};

/* ---- arrays in address order */

/* The index of the first piece that ends above the address. */
static size_t find(const pieces *in, uint64_t address)
{
    size_t low = 0;
    size_t high = in->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->items[middle].address + in->items[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(pieces *in, piece added)
{
    size_t at = find(in, added.address);
    FRAG_ASSERT(in->count < in->most);
    memmove(&in->items[at + 1], &in->items[at], (in->count - at) * sizeof *in->items);
    in->items[at] = added;
    in->count++;
}

static void take_out(pieces *in, size_t at)
{
    in->count--;
    memmove(&in->items[at], &in->items[at + 1], (in->count - at) * sizeof *in->items);
}

/* Does a piece have a byte of the range? */
static bool meets(const pieces *in, uint64_t address, uint64_t bytes)
{
    size_t at = find(in, address);
    return at < in->count && in->items[at].address < address + bytes;
}

/* ---- answers of the functions */

/* The run ends, with a sentence that the caller of this writes; false: it ends already. */
static bool end_run(frag_device *device, bool is_misused)
{
    if (device->has_failed)
        return false;
    device->has_failed = true;
    device->is_misused = is_misused;
    device->has_changed = true; /* the engine looks there */
    return true;
}

static void fail(frag_policy *policy, const char *what, uint64_t address, uint64_t bytes,
                 const char *expected)
{
    frag_device *device = policy->device;
    if (end_run(device, true))
        snprintf(device->failure, sizeof device->failure,
                 "the policy %s %s 0x%" PRIx64 ", %" PRIu64 " bytes; expected %s",
                 policy->table->ops.name, what, address, bytes, expected);
}

static void fail_segments(frag_policy *policy)
{
    frag_device *device = policy->device;
    if (end_run(device, true))
        snprintf(device->failure, sizeof device->failure,
                 "the policy %s asks for more than %zu segments at a time; expected at most one "
                 "for each request of the trace and %d more",
                 policy->table->ops.name, policy->segments.most, SEGMENTS_MORE);
}

static void fail_call(frag_policy *policy, const char *function)
{
    frag_device *device = policy->device;
    if (end_run(device, false))
        snprintf(device->failure, sizeof device->failure, "the function %s of the policy %s failed",
                 function, policy->table->ops.name);
}

/* Behind each function: host memory may have run out in a device call of it. */
static void came_back(const frag_policy *policy)
{
    if (policy->scope != NULL)
        frag_scope_rejoin(policy->scope);
}

static bool check_grant(frag_policy *policy, uint64_t requested_bytes,
                        const fraglab_policy_grant *grant)
{
    size_t at = find(&policy->segments, grant->address);
    const piece *segment = &policy->segments.items[at];
    if (grant->bytes < requested_bytes)
        fail(policy, "answers a request with the block", grant->address, grant->bytes,
             "at least the bytes of the request");
    else if (at == policy->segments.count || segment->address > grant->address ||
             grant->bytes > segment->bytes - (grant->address - segment->address))
        fail(policy, "answers a request with the block", grant->address, grant->bytes,
             "one inside a segment that it holds");
    else if (meets(&policy->blocks, grant->address, grant->bytes))
        fail(policy, "answers a request with the block", grant->address, grant->bytes,
             "one that overlaps no live block");
    return !policy->device->has_failed;
}

/* ---- the table */

static size_t handles_max(const frag_policy_limits *limits)
{
    return (size_t)limits->live_count_max + 1;
}

static size_t segments_max(const frag_policy_limits *limits)
{
    return (size_t)limits->request_count + SEGMENTS_MORE;
}

static size_t functions_arena_bytes(const frag_policy_limits *limits,
                                    const frag_option_value *values)
{
    (void)values;
    size_t handles = handles_max(limits);
    return sizeof(frag_policy) + segments_max(limits) * sizeof(piece) +
           handles * (sizeof(piece) + sizeof(uint64_t) + sizeof(frag_handle)) + (size_t)5 * 64;
}

static frag_policy *functions_create(const frag_policy_setup *setup, frag_error *error)
{
    size_t handles = handles_max(&setup->limits);
    size_t segments = segments_max(&setup->limits);
    frag_policy *policy = frag_arena_take(setup->arena, 1, sizeof *policy);
    policy->table = (const void *)setup->ops;
    policy->device = setup->device;
    policy->scope = frag_scope_active();
    policy->segments.items = frag_arena_take(setup->arena, segments, sizeof(piece));
    policy->segments.most = segments;
    policy->blocks.items = frag_arena_take(setup->arena, handles, sizeof(piece));
    policy->blocks.most = handles;
    policy->addresses = frag_arena_take(setup->arena, handles, sizeof *policy->addresses);
    policy->unused = frag_arena_take(setup->arena, handles, sizeof *policy->unused);
    const fraglab_policy_functions *functions = &policy->table->functions;
    bool ok = functions->begin(functions->user, (fraglab_device *)policy, &policy->run) == 0;
    came_back(policy);
    if (ok)
        return policy;
    fail_call(policy, "begin");
    frag_fail(error, setup->device->is_misused ? FRAG_E_USAGE : FRAG_E_SYSTEM, "%s",
              setup->device->failure);
    return NULL;
}

static bool functions_alloc(frag_policy *policy, const frag_request *request, frag_grant *grant)
{
    const fraglab_policy_functions *functions = &policy->table->functions;
    const fraglab_policy_request asked = {
        .bytes = request->bytes, .stream = request->stream, .pool = request->pool};
    fraglab_policy_grant answer = {0};
    if (policy->device->has_failed)
        return false;
    int code = functions->alloc(policy->run, &asked, &answer);
    came_back(policy);
    if (code < 0)
        fail_call(policy, "alloc");
    if (code != FRAGLAB_POLICY_GRANTED || policy->device->has_failed ||
        !check_grant(policy, request->bytes, &answer))
        return false;
    frag_handle handle =
        policy->unused_count > 0 ? policy->unused[--policy->unused_count] : policy->handle_count++;
    policy->addresses[handle] = answer.address;
    insert(&policy->blocks, (piece){answer.address, answer.bytes, handle});
    *grant = (frag_grant){answer.address, answer.bytes, handle};
    return true;
}

static void functions_free(frag_policy *policy, frag_handle handle, uint32_t stream)
{
    const fraglab_policy_functions *functions = &policy->table->functions;
    uint64_t address = policy->addresses[handle];
    take_out(&policy->blocks, find(&policy->blocks, address));
    policy->unused[policy->unused_count++] = handle;
    if (policy->device->has_failed)
        return;
    bool ok = functions->free(policy->run, address, stream) == 0;
    came_back(policy);
    if (!ok)
        fail_call(policy, "free");
}

static void functions_empty_cache(frag_policy *policy, uint32_t pool)
{
    const fraglab_policy_functions *functions = &policy->table->functions;
    if (functions->empty_cache == NULL || policy->device->has_failed)
        return;
    bool ok = functions->empty_cache(policy->run, pool) == 0;
    came_back(policy);
    if (!ok)
        fail_call(policy, "empty_cache");
}

static void visit_part(frag_span_visitor *visit, void *context, frag_span_kind kind, piece part)
{
    if (part.bytes > 0)
        visit(context, &(frag_span){.kind = kind,
                                    .address = part.address,
                                    .bytes = part.bytes,
                                    .handle = part.handle});
}

static void functions_walk(const frag_policy *policy, frag_span_visitor *visit, void *context)
{
    for (size_t i = 0; i < policy->segments.count; i++) {
        piece segment = policy->segments.items[i];
        uint64_t at = segment.address;
        uint64_t end = segment.address + segment.bytes;
        visit_part(visit, context, FRAG_SPAN_SEGMENT, segment);
        for (size_t b = find(&policy->blocks, at);
             b < policy->blocks.count && policy->blocks.items[b].address < end; b++) {
            piece block = policy->blocks.items[b];
            visit_part(visit, context, FRAG_SPAN_HOLE, (piece){at, block.address - at, 0});
            visit_part(visit, context, FRAG_SPAN_BLOCK, block);
            at = block.address + block.bytes;
        }
        visit_part(visit, context, FRAG_SPAN_HOLE, (piece){at, end - at, 0});
    }
}

static const frag_option no_options[] = {{.key = NULL}};

static const frag_policy_ops function_ops = {
    .summary = "functions of the caller",
    .source = "the program that uses the library",
    .bound = "",
    .options = no_options,
    .arena_bytes = functions_arena_bytes,
    .create = functions_create,
    .alloc = functions_alloc,
    .free = functions_free,
    .empty_cache = functions_empty_cache,
    .walk = functions_walk,
};

/* ---- what the functions call */

typedef struct device_call {
    frag_policy *policy;
    uint64_t address;
    uint64_t bytes;
    frag_device_result result;
} device_call;

static void malloc_work(void *context)
{
    device_call *call = context;
    call->result = frag_device_malloc(call->policy->device, call->bytes, &call->address);
    if (call->result == FRAG_DEVICE_OK)
        insert(&call->policy->segments, (piece){call->address, call->bytes, 0});
}

static void free_work(void *context)
{
    device_call *call = context;
    call->result = frag_device_free(call->policy->device, call->address, call->bytes);
}

int fraglab_device_malloc(fraglab_device *device, uint64_t bytes, uint64_t *address)
{
    device_call call = {(frag_policy *)device, 0, bytes, FRAG_DEVICE_FAILED};
    *address = 0;
    if (call.policy->device->has_failed)
        return FRAGLAB_E_USAGE;
    if (bytes == 0 || bytes > FRAG_REQUEST_BYTES_MAX) {
        fail(call.policy, "asks the device for a segment at", 0, bytes, "1 to 2^56 - 1 bytes");
        return FRAGLAB_E_USAGE;
    }
    if (call.policy->segments.count == call.policy->segments.most) {
        fail_segments(call.policy);
        return FRAGLAB_E_USAGE;
    }
    /* Host memory that runs out must not jump over frames of the caller: came_back goes on. */
    frag_scope_help(call.policy->scope, malloc_work, &call);
    *address = call.result == FRAG_DEVICE_OK ? call.address : 0;
    return call.result == FRAG_DEVICE_FAILED ? FRAGLAB_E_USAGE : FRAGLAB_OK;
}

int fraglab_device_free(fraglab_device *device, uint64_t address)
{
    frag_policy *policy = (frag_policy *)device;
    size_t at = find(&policy->segments, address);
    if (policy->device->has_failed)
        return FRAGLAB_E_USAGE;
    if (at == policy->segments.count || policy->segments.items[at].address != address) {
        fail(policy, "gives back the segment", address, 0,
             "the address of a segment that it holds");
        return FRAGLAB_E_USAGE;
    }
    uint64_t bytes = policy->segments.items[at].bytes;
    if (meets(&policy->blocks, address, bytes)) {
        fail(policy, "gives back the segment", address, bytes, "one without live blocks");
        return FRAGLAB_E_USAGE;
    }
    device_call call = {policy, address, bytes, FRAG_DEVICE_FAILED};
    take_out(&policy->segments, at);
    frag_scope_help(policy->scope, free_work, &call);
    return call.result == FRAG_DEVICE_OK ? FRAGLAB_OK : FRAGLAB_E_USAGE;
}

static void synchronize_work(void *context)
{
    device_call *call = context;
    call->result = frag_device_synchronize(call->policy->device);
}

int fraglab_device_synchronize(fraglab_device *device)
{
    device_call call = {(frag_policy *)device, 0, 0, FRAG_DEVICE_FAILED};
    if (!call.policy->device->has_failed)
        frag_scope_help(call.policy->scope, synchronize_work, &call);
    return call.result == FRAG_DEVICE_OK && !call.policy->device->has_failed ? FRAGLAB_OK
                                                                             : FRAGLAB_E_USAGE;
}

uint64_t fraglab_device_capacity(fraglab_device *device)
{
    return frag_device_capacity(((frag_policy *)device)->device);
}

/* ---- the handle */

typedef struct create_call {
    const fraglab_policy_functions *given;
    fraglab_policy **made;
} create_call;

static bool check_name(const char *name, frag_error *error)
{
    bool ok = name != NULL && name[0] != '\0' && strlen(name) < 64;
    for (const char *c = name; ok && *c != '\0'; c++)
        ok = (unsigned char)*c > 0x20 && *c != 0x7f && strchr(",:/=", *c) == NULL;
    if (ok && frag_policy_find(name) == NULL)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "name",
                        "'%s' is no name for a policy of one's own; expected up to 63 "
                        "characters without spaces , : / = that no bundled policy has",
                        name != NULL ? name : "");
}

static bool create_work(void *arguments, frag_error *error)
{
    create_call *call = arguments;
    function_table *table = frag_alloc(1, sizeof *table);
    fraglab_policy *made = frag_alloc(1, sizeof *made);
    fraglab_policy_functions *functions = &table->functions;
    if (!frag_call_read(call->given, functions, sizeof *functions, "fraglab_policy_functions",
                        error) ||
        !check_name(functions->name, error))
        return false;
    if (functions->begin == NULL || functions->alloc == NULL || functions->free == NULL)
        return frag_fail_in(error, FRAG_E_USAGE, "fraglab_policy_functions",
                            "begin, alloc or free is NULL; a policy needs all three");
    table->ops = function_ops;
    table->ops.name = frag_copy_text(functions->name);
    made->spec = (frag_policy_spec){.ops = &table->ops, .text = frag_copy_text(functions->name)};
    made->spec.values = frag_alloc(1, sizeof *made->spec.values);
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_policy_create(const fraglab_policy_functions *functions, fraglab_policy **policy,
                          fraglab_error *error)
{
    create_call call = {functions, policy};
    *policy = NULL;
    return frag_call_new(create_work, &call, error);
}
