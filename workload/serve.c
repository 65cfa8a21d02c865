/* The schedule of a server, as vLLM has it: prompts are read as soon as there is a place for them,
 * then each sequence gets a token a step. Under a paged cache the last that came gives way where no
 * block is left, and is read anew. */
#include "workload/serve.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/random.h"

/* A step is cut into so many parts, in each of which a request arrives or none does. */
enum { PARTS = 1024 };

typedef struct request {
    uint64_t arrival; /* the step */
    uint64_t prompt;
    uint64_t answer;
    uint64_t made; /* tokens of the answer so far */
    uint64_t blocks;
    bool is_started; /* in this step */
    frag_cache cache;
    frag_tensor next; /* the last token */
} request;

typedef struct server {
    frag_tape *tape;
    const frag_family *family;
    const frag_model *model;
    const frag_workload *workload;
    request *requests; /* in the order in which they arrive */
    uint64_t count;
    request **waiting; /* from the end: who comes next is the last */
    uint64_t waiting_count;
    request **running; /* in the order in which they were started */
    uint64_t running_count;
    uint64_t blocks_left;
    uint64_t passes;
} server;

static bool is_paged(const frag_workload *workload)
{
    return workload->cache == FRAG_CACHE_PAGED;
}

static uint64_t count_blocks(const frag_workload *workload, uint64_t tokens)
{
    return (tokens + workload->cache_block - 1) / workload->cache_block;
}

/* In the pool. */
static uint64_t count_all_blocks(const frag_workload *workload)
{
    if (workload->cache_tokens > 0)
        return workload->cache_tokens / workload->cache_block;
    uint64_t longest =
        frag_lengths_largest(&workload->tokens) + frag_workload_longest_answer(workload);
    return workload->batch * count_blocks(workload, longest);
}

/* ---- who asks for what */
/* A Poisson process, as whole numbers have it: the same on every machine. */
static uint64_t draw_arrival(const frag_workload *workload, uint64_t *part, uint64_t *random)
{
    uint64_t bound = (uint64_t)(workload->arrival_rate / PARTS * 4294967296.0);
    while (bound > 0 && frag_random_next(random) >> 32 >= bound)
        ++*part;
    return bound > 0 ? (*part)++ / PARTS : 0;
}

static void draw_requests(server *at)
{
    const frag_workload *workload = at->workload;
    const frag_lengths *listed = &workload->arrivals;
    uint64_t random = workload->seed;
    uint64_t part = 0;
    at->count = listed->count > 0 ? listed->count : workload->requests;
    at->requests = frag_alloc(at->count, sizeof *at->requests);
    at->waiting = frag_alloc(at->count, sizeof(request *));
    at->running = frag_alloc(at->count, sizeof(request *));
    at->waiting_count = at->count;
    for (uint64_t i = 0; i < at->count; i++) {
        request *next = &at->requests[i];
        next->prompt = frag_lengths_at(&workload->tokens, i, &random);
        next->answer =
            frag_workload_answer(workload, frag_lengths_at(&workload->answer_tokens, i, &random));
        next->arrival =
            listed->count > 0 ? listed->values[i] : draw_arrival(workload, &part, &random);
        at->waiting[at->count - 1 - i] = next;
    }
}

/* ---- one at a time */
/* ids goes through the model; what is most likely is the next token. */
static void run_model(server *at, request *of, frag_tensor ids, const char *phase)
{
    frag_tape *tape = at->tape;
    uint64_t total = of->prompt + of->made;
    frag_batch pass = {.number = at->passes++,
                       .ids = ids,
                       .count = 1,
                       .tokens = of->next != 0 ? 1 : total,
                       .past = of->next != 0 ? total - 1 : 0};
    frag_tape_begin(tape, phase);
    frag_tensor places[2] = {0, 0}; /* in the pool: of what is written, of what is read */
    if (is_paged(at->workload)) {
        places[0] = frag_tape_empty(tape, pass.tokens, FRAG_I64);
        places[1] = frag_tape_empty(tape, total, FRAG_I64);
        of->cache.paged_tokens = total;
    }
    frag_tensor logits = frag_decoder_logits(tape, at->family, at->model, &pass, &of->cache);
    frag_tensor made = frag_aten_argmax(tape, 1, at->workload->network.vocabulary);
    frag_tape_set(tape, &of->next, made);
    frag_tape_drop(tape, logits);
    frag_tape_drop(tape, places[1]);
    frag_tape_drop(tape, places[0]);
    of->made++;
    frag_tape_end(tape, phase);
}

/* What a request holds is given back. */
static void release(server *at, uint64_t place)
{
    request *of = at->running[place];
    frag_cache_destroy(at->tape, &of->cache);
    frag_tape_clear(at->tape, &of->next);
    at->blocks_left += of->blocks;
    of->blocks = 0;
    at->running_count--;
    for (uint64_t i = place; i < at->running_count; i++)
        at->running[i] = at->running[i + 1];
}

static bool has_room(const server *at, const request *of)
{
    return at->running_count < at->workload->batch &&
           (!is_paged(at->workload) ||
            count_blocks(at->workload, of->prompt + of->made) <= at->blocks_left);
}

static void start_requests(server *at, uint64_t step)
{
    while (at->waiting_count > 0) {
        request *next = at->waiting[at->waiting_count - 1];
        if (next->arrival > step || !has_room(at, next))
            return;
        at->waiting_count--;
        at->running[at->running_count++] = next;
        uint64_t tokens = next->prompt + next->made;
        if (is_paged(at->workload))
            next->blocks = count_blocks(at->workload, tokens);
        at->blocks_left -= next->blocks;
        next->is_started = true;
        next->cache = frag_cache_create(at->model, 1);
        frag_tensor ids = frag_tape_empty(at->tape, tokens, FRAG_I64);
        run_model(at, next, ids, "prefill");
        frag_tape_drop(at->tape, ids);
    }
}

/* A block more where the last is full; requests that came later give way, the last first. Is it
 * still running then? */
static bool take_block(server *at, request *of)
{
    if (!is_paged(at->workload) || count_blocks(at->workload, of->prompt + of->made) <= of->blocks)
        return true;
    while (at->blocks_left == 0) {
        request *last = at->running[at->running_count - 1];
        release(at, at->running_count - 1);
        at->waiting[at->waiting_count++] = last;
        if (last == of)
            return false;
    }
    at->blocks_left--;
    of->blocks++;
    return true;
}

static void run_step(server *at, uint64_t step)
{
    for (uint64_t i = 0; i < at->count; i++)
        at->requests[i].is_started = false;
    start_requests(at, step);
    for (uint64_t i = 0; i < at->running_count; i++) {
        request *of = at->running[i];
        if (of->is_started || !take_block(at, of))
            continue;
        frag_tensor ids = frag_tape_keep(at->tape, of->next);
        run_model(at, of, ids, "decode");
        frag_tape_drop(at->tape, ids);
    }
    for (uint64_t i = at->running_count; i > 0; i--)
        if (at->running[i - 1]->made == at->running[i - 1]->answer)
            release(at, i - 1);
}

/* ---- all */
/* One pool of keys and one of values for each layer, which stay to the end of the program. */
static void reserve_pools(server *at)
{
    const frag_network *of = &at->workload->network;
    at->blocks_left = count_all_blocks(at->workload);
    uint64_t tokens = at->blocks_left * at->workload->cache_block;
    frag_request_kind was = frag_tape_set_kind(at->tape, FRAG_REQUEST_ACTIVATION);
    frag_tape_begin(at->tape, "cache");
    for (uint64_t i = 0; i < 2 * of->layers; i++)
        (void)frag_tape_empty(at->tape, tokens * of->key_heads * of->head_width, at->model->dtype);
    frag_tape_end(at->tape, "cache");
    frag_tape_set_kind(at->tape, was);
}

void frag_serve(frag_tape *tape, const frag_family *family, const frag_model *model)
{
    const frag_workload *workload = model->workload;
    server at = {.tape = tape, .family = family, .model = model, .workload = workload};
    draw_requests(&at);
    if (is_paged(workload))
        reserve_pools(&at);
    for (uint64_t step = 0; at.waiting_count + at.running_count > 0; step++) {
        if (at.running_count == 0 && at.waiting[at.waiting_count - 1]->arrival > step)
            step = at.waiting[at.waiting_count - 1]->arrival;
        char name[32];
        snprintf(name, sizeof name, "step %llu", (unsigned long long)step);
        frag_tape_begin(tape, name);
        run_step(&at, step);
        frag_tape_end(tape, name);
    }
    frag_free(at.running);
    frag_free(at.waiting);
    frag_free(at.requests);
}
