#include "messages/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "messages/guess/message_guess.h"
#include "messages/message_escape.h"
#include "messages/message_line.h"
#include "messages/message_quantity.h"
#include "messages/message_text.h"
#include "messages/wording_match.h"

enum {
    GUESSES_MAX = 256,  /* lines of a program that the table does not know */
    REACH_MAX = 4096,   /* a field this far behind the last is of no message */
    HINT_REACH = 48,    /* from a hint to the setting that it names */
    HOST_REACH = 200,   /* from the mark of a host message to its size */
    REST_REACH = 400,   /* behind the last wording, where its line may say more */
    REST_MAX = 8192,    /* of a text without a message so much is read for sizes */
    AROUND = 1500,      /* so far before and behind the message its program may say more of it */
    TELLING_FIGURES = 3 /* so many make a message without its head */
};

/* ---- the text and what was read of it */
typedef struct reader {
    frag_message_text text;
    frag_messages *messages;
    frag_message *current; /* NULL: none is open */
    size_t current_at;     /* where it begins */
    size_t last_at;        /* behind the last thing that belongs to it */
    size_t sizes_end;      /* behind the text in which sizes were collected */
    uint64_t owner;        /* whose lines it stands in; 0: they do not say */
    const frag_wording *opener;
    bool is_vague; /* nothing but "tried to allocate" so far */
    bool is_cut;   /* begun by a field */
    bool has_hint;
    size_t hint_at;
    size_t loading_count; /* messages before the last sign that the model was being loaded */
} reader;

/* ---- messages in the making */
static size_t figure_count(const frag_message *message)
{
    size_t count = 0;
    for (size_t i = 0; i < FRAG_FIGURE_COUNT; i++)
        count += message->figures[i].is_known;
    return count;
}

/* Does the text say "out of memory" shortly before the message begins? */
static bool is_named_before(const reader *state)
{
    static const char named[] = "outofmemory";
    size_t from = state->current_at > HOST_REACH ? state->current_at - HOST_REACH : 0;
    for (size_t at = from; at + sizeof named - 1 <= state->current_at; at++)
        if (memcmp(state->text.bytes + at, named, sizeof named - 1) == 0)
            return true;
    return false;
}

static size_t telling(const frag_message *message)
{
    return 2 * figure_count(message) + (message->says != 0);
}

/* The last message is whole: is it the one that says most? Is there room to keep it? */
static void keep_last(frag_messages *messages)
{
    frag_message *items = messages->items;
    size_t last = messages->count - 1;
    const frag_message *best = &items[messages->best];
    bool is_better = last == 0 || items[last].kind > best->kind ||
                     (items[last].kind == best->kind && telling(&items[last]) > telling(best));
    messages->oom_count += items[last].kind == FRAG_MESSAGE_OOM;
    if (is_better)
        messages->best = last;
    if (messages->count <= FRAG_MESSAGES_KEPT_MAX)
        return;
    messages->count--;
    if (is_better) {
        items[last - 1] = items[last];
        messages->best = last - 1;
    }
}

/* A message without a size may go on in the next line: "Out of memory\nBuffer size (8) exceeds".
 * Returns where that ends. */
static size_t collect_behind(const reader *state, size_t from, frag_message *message)
{
    size_t to = frag_message_text_line_end(&state->text, from, HOST_REACH);
    uint64_t owner = frag_message_text_owner(&state->text, from);
    bool is_other = owner != message->owner && owner != 0 && message->owner != 0;
    if (is_other || !frag_message_guess_goes_on(&state->text, from, to))
        return from;
    frag_message_quantities(&state->text, from, to, message);
    return to;
}

static const frag_amount *labelled(const frag_message *message, frag_figure figure)
{
    for (uint32_t i = 0; i < message->size_count; i++)
        if (message->sizes[i].is_labelled && message->sizes[i].figure == figure)
            return &message->sizes[i].amount;
    return NULL;
}

/* "Requires 9012 MB of GPU memory, 7811 MB is available\nInsufficient GPU memory": the line above
 * tells what was needed and what there was. */
static void collect_above(const reader *state, size_t from, frag_message *message)
{
    size_t start = frag_message_text_line_start(&state->text, from - 1);
    start = start + HOST_REACH < from ? from - HOST_REACH : start;
    uint64_t owner = frag_message_text_owner(&state->text, start);
    frag_message above = {.size_count = 0};
    frag_message_quantities(&state->text, start, from - 1, &above);
    const frag_amount *needed = labelled(&above, FRAG_FIGURE_REQUESTED);
    const frag_amount *available = labelled(&above, FRAG_FIGURE_FREE);
    bool is_other = owner != message->owner && owner != 0 && message->owner != 0;
    if (!is_other && needed != NULL && available != NULL && needed->bytes > available->bytes)
        frag_message_quantities(&state->text, start, from - 1, message);
}

/* The same figure, printed once more with more digits. */
static bool is_finer(const frag_amount *amount, const frag_amount *known)
{
    uint64_t apart =
        amount->bytes > known->bytes ? amount->bytes - known->bytes : known->bytes - amount->bytes;
    return amount->slack_bytes < known->slack_bytes && apart <= known->slack_bytes + 1;
}

/* The lines in which the message stands, as far as they are its own. */
static void collect_sizes(reader *state, frag_message *message)
{
    size_t from = frag_message_text_line_start(&state->text, state->current_at);
    size_t to = frag_message_text_line_end(&state->text, state->last_at, REST_REACH);
    if (from + HOST_REACH < state->current_at)
        from = state->current_at - HOST_REACH;
    if (from < state->sizes_end)
        from = state->sizes_end;
    /* "MemoryError: GPU memory allocation failed for 8 bytes": two messages, and the figures are of
     * the second */
    if (message->kind == FRAG_MESSAGE_OOM)
        state->sizes_end = to;
    frag_message_quantities(&state->text, from, to, message);
    if (message->size_count == 0 && to < state->text.length)
        state->sizes_end = collect_behind(state, to + 1, message);
    uint32_t own = message->size_count;
    if (message->kind == FRAG_MESSAGE_OOM)
        state->sizes_end = frag_message_quantities_below(&state->text, state->sizes_end, message);
    bool is_guess = (message->says & FRAG_SAYS_GUESS) != 0;
    if (message->size_count == 0 && is_guess && message->kind == FRAG_MESSAGE_OOM && from > 0 &&
        state->text.bytes[from - 1] == '\n')
        collect_above(state, from, message);
    message->is_bare = figure_count(message) == 0;
    bool is_open = message->is_bare || is_guess;
    for (uint32_t i = is_open ? 0 : own; i < message->size_count; i++) {
        const frag_message_quantity *size = &message->sizes[i];
        frag_amount *known = &message->figures[FRAG_FIGURE_REQUESTED];
        bool is_plain =
            is_open || size->figure == FRAG_FIGURE_FREE || size->figure == FRAG_FIGURE_TOTAL;
        if (size->is_labelled && is_plain && !message->figures[size->figure].is_known)
            message->figures[size->figure] = size->amount;
        /* "98304000 bytes (93 MB) failed" */
        if (known->is_known && is_open && i > 0 && is_finer(&message->sizes[i - 1].amount, known))
            *known = message->sizes[i - 1].amount;
    }
}

static void close_message(reader *state)
{
    frag_message *message = state->current;
    state->current = NULL;
    if (message == NULL)
        return;
    size_t figures = figure_count(message);
    if (message->kind == FRAG_MESSAGE_OOM &&
        ((state->is_vague && figures < 2 && !is_named_before(state)) ||
         (state->is_cut && figures < TELLING_FIGURES && (message->says & FRAG_SAYS_DUMP) == 0))) {
        state->messages->count--;
        return;
    }
    if (message->kind == FRAG_MESSAGE_OOM && figures == 0 && state->opener != NULL &&
        frag_message_is_survived(&state->text, message->at)) {
        message->kind = FRAG_MESSAGE_HARMLESS;
        message->says |= FRAG_SAYS_GUESS;
    }
    collect_sizes(state, message);
    if (message->framework == FRAG_FRAMEWORK_UNKNOWN && message->release != NULL)
        message->framework = FRAG_FRAMEWORK_PYTORCH;
    if (message->framework == FRAG_FRAMEWORK_UNKNOWN && (message->says & FRAG_SAYS_DUMP) != 0)
        message->framework = FRAG_FRAMEWORK_TENSORFLOW;
    keep_last(state->messages);
}

static void open_message(reader *state, frag_message_kind kind, size_t at)
{
    close_message(state);
    frag_messages *messages = state->messages;
    state->current = FRAG_APPEND(messages->items, messages->count, messages->capacity);
    *state->current =
        (frag_message){.kind = kind, .line = frag_message_text_line(&state->text, at), .at = at};
    state->owner = frag_message_text_owner(&state->text, at);
    state->current->owner = state->owner;
    state->current_at = at;
    state->last_at = at;
    state->opener = NULL;
    state->is_vague = false;
    state->is_cut = false;
}

/* How far behind the last thing of the message; a wording may begin inside of it. */
static size_t distance(const reader *state, size_t at)
{
    return at > state->last_at ? at - state->last_at : 0;
}

static bool is_in_reach(const reader *state, size_t at)
{
    return state->current != NULL && (distance(state, at) <= REACH_MAX ||
                                      state->current->framework == FRAG_FRAMEWORK_TENSORFLOW);
}

static bool is_just_before(const reader *state, size_t at)
{
    return state->current != NULL && distance(state, at) <= HOST_REACH;
}

/* Lines of several processes stand in turn in one log. */
static bool is_of_other(const reader *state, size_t at)
{
    uint64_t owner = frag_message_text_owner(&state->text, at);
    return state->owner != 0 && owner != 0 && owner != state->owner;
}

static void set_figure(frag_message *message, signed char figure, const frag_amount *amount)
{
    if (figure == FRAG_FIGURE_REQUESTED && !amount->is_known)
        message->says |= FRAG_SAYS_HUGE;
    if (figure == FRAG_CAPTURE_NOTHING || !amount->is_known)
        return;
    if (figure == FRAG_CAPTURE_PROCESS_ID) {
        if (message->process_count < FRAG_MESSAGE_PROCESSES)
            message->process_ids[message->process_count] = amount->bytes;
    } else if (figure == FRAG_CAPTURE_TOKENS) {
        message->tokens = amount->bytes;
    } else if (figure == FRAG_CAPTURE_DEVICE) {
        message->has_device = true;
        message->device = amount->bytes;
    } else if (figure == FRAG_CAPTURE_PROCESS) {
        if (message->process_count < FRAG_MESSAGE_PROCESSES)
            message->processes[message->process_count++] = amount->bytes;
    } else {
        frag_amount *known =
            &message->figures[figure == FRAG_CAPTURE_CACHED ? FRAG_FIGURE_IDLE : figure];
        if (!known->is_known || is_finer(amount, known))
            *known = *amount;
    }
}

/* PyTorch of other makers kept old wordings, which tell their release no more. */
static bool has_releases(frag_framework framework)
{
    return framework == FRAG_FRAMEWORK_UNKNOWN || framework == FRAG_FRAMEWORK_PYTORCH ||
           framework == FRAG_FRAMEWORK_PYTORCH_HIP;
}

static void take_facts(reader *state, const frag_wording *wording, const frag_wording_match *found,
                       size_t end)
{
    frag_message *message = state->current;
    for (size_t i = 0; i < found->capture_count; i++)
        set_figure(message, wording->figures[i], &found->captures[i]);
    message->says |= wording->says;
    if (message->framework == FRAG_FRAMEWORK_UNKNOWN)
        message->framework = wording->framework;
    if (wording->release != NULL && has_releases(message->framework))
        message->release = wording->release;
    if (end > state->last_at)
        state->last_at = end;
}

static bool brings_request(const frag_wording *wording)
{
    size_t captures = 0;
    for (const char *at = wording->pattern; (at = strpbrk(at, "%#&")) != NULL; at++)
        if (wording->figures[captures++] == FRAG_FIGURE_REQUESTED)
            return true;
    return false;
}

/* An opener goes on with the message that has just begun, unless that knows its request. One that
 * names its framework does so on the same line only: on the next it is a message of its own. */
static bool continues(const reader *state, const frag_wording *wording, size_t at)
{
    const frag_message *message = state->current;
    if (!is_in_reach(state, at) || distance(state, at) > REACH_MAX ||
        message->kind != FRAG_MESSAGE_OOM || state->opener == wording || is_of_other(state, at))
        return false;
    bool is_same_line =
        memchr(state->text.bytes + state->last_at, '\n', distance(state, at)) == NULL;
    bool is_same = wording->framework == FRAG_FRAMEWORK_UNKNOWN ||
                   (is_same_line && (message->framework == FRAG_FRAMEWORK_UNKNOWN ||
                                     message->framework == wording->framework));
    bool has_request = message->figures[FRAG_FIGURE_REQUESTED].is_known;
    /* The dump of TensorFlow's allocator, and XLA's, stands before its message. */
    is_same = is_same || (state->is_cut && (wording->framework == FRAG_FRAMEWORK_TENSORFLOW ||
                                            wording->framework == FRAG_FRAMEWORK_JAX));
    return is_same && !(has_request && brings_request(wording));
}

/* "cudaMallocHost failed: cudaErrorMemoryAllocation": the runtime's error, but the computer's
 * memory. */
static bool is_pinning(const reader *state, size_t at)
{
    static const char *const calls[] = {"mallochost",   "hostalloc",    "hostmalloc",
                                        "hostregister", "memallochost", "pinned"};
    size_t start = frag_message_text_line_start(&state->text, at);
    start = at - start > HOST_REACH ? at - HOST_REACH : start;
    for (size_t i = start; i < at; i++)
        for (size_t j = 0; j < sizeof calls / sizeof *calls; j++)
            if (strncmp(state->text.bytes + i, calls[j], strlen(calls[j])) == 0)
                return true;
    return false;
}

static bool names_device(const frag_wording *wording)
{
    static const char *const names[] = {"cuda", "hip", "gpu", "device"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(wording->pattern, names[i]) != NULL)
            return true;
    return wording->framework != FRAG_FRAMEWORK_UNKNOWN;
}

static bool is_in_line_below(const reader *state, size_t at)
{
    return frag_message_text_line_start(&state->text, at) >= state->last_at;
}

/* "MemoryError", and the error of a runtime below it: two failures, not one told twice.
 * "java.lang.OutOfMemoryError: GPU out of memory": the class alone is the computer's. */
static bool is_second(const reader *state, const frag_wording *wording, size_t at)
{
    bool is_gpu = strncmp(wording->pattern, "gpu", strlen("gpu")) == 0;
    return names_device(wording) && state->current->says == 0 &&
           (is_gpu || is_in_line_below(state, at));
}

/* A device's memory ran out, and in a line below the computer's, a disk or the patience of a batch
 * system did. */
static bool is_aftermath(const reader *state, const frag_wording *wording, size_t at)
{
    const uint32_t others = FRAG_SAYS_KILLED | FRAG_SAYS_DISK | FRAG_SAYS_SHM;
    bool is_bare = (wording->place & FRAG_WORDING_AT_END) != 0;
    bool is_device = state->opener != NULL && names_device(state->opener);
    return state->current->kind == FRAG_MESSAGE_OOM && is_in_line_below(state, at) &&
           ((wording->says & others) != 0 || (is_bare && is_device));
}

static void take_opener(reader *state, const frag_wording *wording, const frag_wording_match *found,
                        size_t at)
{
    bool is_vague = wording->framework == FRAG_FRAMEWORK_UNKNOWN;
    if (is_vague && state->current != NULL && state->current->kind == FRAG_MESSAGE_HOST &&
        distance(state, at) <= HOST_REACH && !is_second(state, wording, at))
        return;
    if (!continues(state, wording, at)) {
        open_message(state, FRAG_MESSAGE_OOM, at);
        state->opener = wording;
        state->is_vague = is_vague && strcmp(wording->pattern, "triedtoallocate%") == 0;
        if (is_vague && is_pinning(state, at)) {
            state->current->kind = FRAG_MESSAGE_HOST;
            state->current->says |= FRAG_SAYS_PINNED;
        }
    }
    state->is_vague = state->is_vague && is_vague;
    state->is_cut = false;
    take_facts(state, wording, found, at + found->bytes);
}

static void take_field(reader *state, const frag_wording *wording, const frag_wording_match *found,
                       size_t at)
{
    if (!is_in_reach(state, at) || state->current->kind != FRAG_MESSAGE_OOM) {
        if ((wording->place & FRAG_WORDING_TELLING) == 0)
            return;
        open_message(state, FRAG_MESSAGE_OOM, at);
        state->is_cut = true;
    }
    if (is_of_other(state, at))
        return;
    if (wording->framework != FRAG_FRAMEWORK_UNKNOWN &&
        wording->framework != state->current->framework)
        return;
    take_facts(state, wording, found, at + found->bytes);
}

/* "100%|####|4/4[00:07<00:00]": the share, behind it the rest of the bar. Its later lines lack the
 * name where it was taken for the prefix of a logger. */
static bool is_bar_full(const frag_message_text *text, size_t at)
{
    uint64_t percent = 0;
    at += text->bytes[at] == ':';
    for (const char *bar = text->bytes + at; *bar >= '0' && *bar <= '9'; bar = text->bytes + at) {
        char *end = NULL;
        uint64_t share = strtoull(bar, &end, 10);
        if (*end != '%')
            break;
        percent = share;
        at = frag_message_text_line_end(text, at, REST_REACH);
        at += text->bytes[at] == '\n';
    }
    return percent == 100;
}

/* Loading is over when its bar is full or a step of the training is told. A message between them
 * had told of the loading already. */
static void take_scene(reader *state, const frag_wording *wording, const frag_wording_match *found)
{
    frag_messages *messages = state->messages;
    bool is_bar = strcmp(wording->pattern, "loadingcheckpointshards") == 0;
    bool is_over = wording->scene == FRAG_SCENE_TRAINING ||
                   (is_bar && is_bar_full(&state->text, found->at + found->bytes));
    if (is_over && messages->count == state->loading_count)
        messages->scenes &= ~(uint32_t)FRAG_SCENE_LOADING;
    if (is_over)
        return;
    messages->scenes |= wording->scene;
    if (wording->scene == FRAG_SCENE_LOADING)
        state->loading_count = messages->count;
}

static void take(reader *state, const frag_wording_match *found)
{
    const frag_wording *wording = found->wording;
    size_t at = found->at;
    switch (wording->role) {
    case FRAG_WORDING_OPENS:
        take_opener(state, wording, found, at);
        break;
    case FRAG_WORDING_FIELD:
        take_field(state, wording, found, at);
        break;
    case FRAG_WORDING_ELSE:
        if (is_just_before(state, at) && state->opener != NULL) {
            state->messages->count--;
            state->current = NULL;
        }
        break;
    case FRAG_WORDING_HARMLESS:
        if (is_just_before(state, at))
            state->current->kind = FRAG_MESSAGE_HARMLESS;
        else
            open_message(state, FRAG_MESSAGE_HARMLESS, at);
        take_facts(state, wording, found, at + found->bytes);
        break;
    case FRAG_WORDING_HOST:
        if (is_just_before(state, at) && at - state->current_at <= HOST_REACH &&
            state->current->framework != FRAG_FRAMEWORK_PYTORCH &&
            !is_aftermath(state, wording, at))
            state->current->kind = FRAG_MESSAGE_HOST;
        else
            open_message(state, FRAG_MESSAGE_HOST, at);
        take_facts(state, wording, found, at + found->bytes);
        break;
    case FRAG_WORDING_HINT:
        state->has_hint = true;
        state->hint_at = at + found->bytes;
        if (is_in_reach(state, at) && wording->release != NULL)
            state->current->release = wording->release;
        break;
    case FRAG_WORDING_SCENE:
        take_scene(state, wording, found);
        break;
    case FRAG_WORDING_SETTING:
        if (!state->has_hint || at - state->hint_at > HINT_REACH)
            state->messages->is_on[wording->setting] = true;
        break;
    }
}

/* What lies wholly inside the wording before says nothing new. */
static void read_wordings(reader *state)
{
    frag_wording_index index;
    frag_wording_match found;
    size_t end = 0;
    frag_wording_index_make(&index);
    for (size_t at = 0; frag_wording_find(&index, &state->text, at, end, &found);
         at = found.at + 1) {
        end = found.at + found.bytes;
        state->messages->is_matched[found.wording - frag_wordings] = true;
        take(state, &found);
    }
    frag_wording_index_destroy(&index);
}

/* The allocator is TensorFlow's, but what says so in the same text is JAX. */
static void name_jax(frag_messages *messages)
{
    bool is_jax = false;
    for (size_t i = 0; i < messages->count; i++)
        is_jax |= messages->items[i].framework == FRAG_FRAMEWORK_JAX;
    for (size_t i = 0; i < messages->count && is_jax; i++)
        if (messages->items[i].framework == FRAG_FRAMEWORK_TENSORFLOW)
            messages->items[i].framework = FRAG_FRAMEWORK_JAX;
}

/* "CUDA error: out of memory" is what PyTorch says, and others say it, too: the text around it
 * tells whose it is. Ollama runs llama.cpp, whose words its log quotes. */
static void name_program(const frag_message_text *text, frag_message *message)
{
    static const char *const ollama[] = {"llamarunner", "ollama", NULL};
    static const char *const ggml[] = {"ggml_", "ggml-", "llama_model_load", NULL};
    static const char *const pytorch[] = {"torch", "runtimeerror", "acceleratorerror", "python",
                                          ".py",   "c10",          "thcuda",           NULL};
    bool is_bare = (message->framework == FRAG_FRAMEWORK_PYTORCH && message->release == NULL &&
                    figure_count(message) == 0) ||
                   message->framework == FRAG_FRAMEWORK_UNKNOWN;
    bool is_ggml = message->framework == FRAG_FRAMEWORK_GGML;
    static const char *const torch[] = {"torch.outofmemoryerror", "torch.cuda.outofmemoryerror",
                                        NULL};
    if (message->kind != FRAG_MESSAGE_OOM || (!is_bare && !is_ggml))
        return;
    if (is_bare && frag_message_stands_near(text, message->at, torch))
        message->framework = FRAG_FRAMEWORK_PYTORCH;
    if (frag_message_stands_near(text, message->at, pytorch))
        return;
    if (frag_message_stands_near(text, message->at, ollama))
        message->framework = FRAG_FRAMEWORK_OLLAMA;
    else if (frag_message_stands_near(text, message->at, ggml))
        message->framework = FRAG_FRAMEWORK_GGML;
    else if (is_bare)
        message->framework = FRAG_FRAMEWORK_UNKNOWN;
}

/* Where the table found nothing: lines that speak of memory and failure all the same. Two that
 * follow each other are one message. */
static void guess_messages(reader *state, frag_message_rigour rigour)
{
    frag_message_guess guess;
    size_t count = 0;
    bool has_failure = false;
    bool names_device = false; /* the message that is open */
    bool is_host = frag_messages_best(state->messages) != NULL &&
                   frag_messages_best(state->messages)->kind == FRAG_MESSAGE_HOST;
    for (size_t at = 0; count < GUESSES_MAX &&
                        frag_message_guess_next(&state->text, at, rigour, &guess, &has_failure);
         at = guess.end, count++) {
        /* beside a failure of the computer's memory only what names a device counts */
        if (is_host && !(guess.kind == FRAG_MESSAGE_OOM && guess.is_of_device))
            continue;
        bool is_next = state->current != NULL && guess.start <= state->last_at + HOST_REACH;
        /* "Out of memory" says not whose, and the line below it does: "System out of memory!" */
        bool is_told_later = is_next && !names_device && guess.kind == FRAG_MESSAGE_HOST &&
                             state->current->kind == FRAG_MESSAGE_OOM;
        if (is_told_later)
            state->current->kind = FRAG_MESSAGE_HOST;
        if (!is_next || state->current->kind != guess.kind) {
            open_message(state, guess.kind, guess.start);
            state->current->says = FRAG_SAYS_GUESS | guess.says;
            names_device = false;
        }
        names_device |= guess.is_of_device;
        state->last_at = guess.end;
    }
    close_message(state);
    state->messages->scenes |= frag_message_scenes(&state->text);
    state->messages->scenes |= has_failure ? FRAG_SCENE_FAILURE : 0;
}

/* Guesses come behind what was read before, wherever they stand in the text. */
static void sort_by_place(frag_messages *messages)
{
    for (size_t i = 1; i < messages->count; i++)
        for (size_t j = i; j > 0 && messages->items[j].at < messages->items[j - 1].at; j--) {
            frag_message later = messages->items[j - 1];
            messages->items[j - 1] = messages->items[j];
            messages->items[j] = later;
            if (messages->best == j)
                messages->best = j - 1;
            else if (messages->best == j - 1)
                messages->best = j;
        }
}

/* Nothing was found, or only a guess that the program went on, or the bare name of an error of the
 * computer's memory, which programs raise for a device's, too ("MemoryError: Metal OOM"). */
static bool is_guessing(const frag_messages *messages)
{
    const frag_message *best = frag_messages_best(messages);
    return best == NULL ||
           (best->kind == FRAG_MESSAGE_HARMLESS && (best->says & FRAG_SAYS_GUESS) != 0) ||
           (best->kind == FRAG_MESSAGE_HOST && best->says == 0 &&
            best->framework == FRAG_FRAMEWORK_UNKNOWN &&
            (best->is_bare || figure_count(best) <= 1));
}

/* What the lines around the message say: "free: 4.50 GB", "Heap 0: 7956 MiB", and which device it
 * was: that of the message's own line, or else the only one they name. */
static void collect_around(reader *state, frag_message *message)
{
    const frag_message_text *text = &state->text;
    size_t to = message->at + AROUND < text->length ? message->at + AROUND : text->length;
    size_t at = message->at > AROUND ? message->at - AROUND : 0;
    bool is_known = message->has_device || message->kind == FRAG_MESSAGE_HOST;
    bool is_named = false;
    for (size_t end = 0; at < to; at = end + 1) {
        end = frag_message_text_line_end(text, at, AROUND);
        uint64_t owner = frag_message_text_owner(text, at);
        bool is_other = owner != message->owner && owner != 0 && message->owner != 0;
        uint64_t device = 0;
        if (is_other)
            continue;
        frag_message_quantities(text, at, end, message);
        if (is_known || !frag_message_device(text, at, end, &device))
            continue;
        is_known = at <= message->at && message->at < end;
        message->has_device =
            is_known || !is_named || (message->has_device && device == message->device);
        message->device = device;
        is_named = true;
    }
}

/* Which kind of device and program the text around the message shows. */
static uint32_t platforms_near(const frag_message_text *text, size_t at)
{
    static const char *const graphics[] = {
        "opengl",     "vulkan",      "vkallocate", "vk_error", "d3d11", "d3d12",   "d3d9", "webgl",
        "directdraw", "gl_out_of_m", "texture",    "dxvk",     "vkd3d", "wined3d", NULL};
    static const char *const computing[] = {"::compute", "llm", "onnx", "whisper", NULL};
    static const char *const metal[] = {"metalbuffer", "[metal", "ggml_metal", "iogpucommandbuf",
                                        "mtlcommandb", "libmlx", "mpsbackend", NULL};
    static const char *const tpu[] = {"xla:tpu", "tpu_driver", "libtpu", "memoryspacehbm", NULL};
    bool is_drawing = frag_message_stands_near(text, at, graphics) &&
                      !frag_message_stands_near(text, at, computing);
    return (is_drawing ? FRAG_SCENE_GRAPHICS : 0u) |
           (frag_message_stands_near(text, at, metal) ? FRAG_SCENE_METAL : 0u) |
           (frag_message_stands_near(text, at, tpu) ? FRAG_SCENE_TPU : 0u);
}

/* Several ranks that ran out on the same device. */
static void find_ranks(frag_messages *messages)
{
    for (size_t i = 1; i < messages->count; i++) {
        const frag_message *one = &messages->items[i - 1];
        const frag_message *other = &messages->items[i];
        if (one->kind == FRAG_MESSAGE_OOM && other->kind == FRAG_MESSAGE_OOM && one->has_device &&
            other->has_device && one->device == other->device && one->owner != other->owner &&
            one->owner != 0 && other->owner != 0)
            messages->scenes |= FRAG_SCENE_RANKS;
    }
    const frag_message *best = frag_messages_best(messages);
    bool has_many = best != NULL && (best->owner != 0 || (messages->scenes & FRAG_SCENE_MANY) != 0);
    if (has_many && best->process_count >= 2)
        messages->scenes |= FRAG_SCENE_RANKS;
}

static void read_messages(frag_messages *messages, const char *text, size_t length,
                          bool has_wordings)
{
    *messages = (frag_messages){0};
    reader state = {.messages = messages};
    frag_text converted;
    frag_text unescaped;
    if (frag_escape_utf16(text, length, &converted)) {
        text = converted.bytes;
        length = converted.length;
    }
    messages->scenes = length == 0                          ? FRAG_SCENE_EMPTY
                       : memchr(text, '\0', length) != NULL ? FRAG_SCENE_BINARY
                                                            : 0;
    if (frag_escape_unicode(text, length, &unescaped)) {
        text = unescaped.bytes;
        length = unescaped.length;
    }
    frag_message_text_make(&state.text, text, length);
    if (has_wordings)
        read_wordings(&state);
    close_message(&state);
    bool is_host = messages->count > 0 && is_guessing(messages) &&
                   frag_messages_best(messages)->kind == FRAG_MESSAGE_HOST;
    for (frag_message_rigour rigour = is_host ? FRAG_MESSAGE_PRESUMED : FRAG_MESSAGE_REPORTED;
         rigour < FRAG_MESSAGE_WITNESSED && is_guessing(messages); rigour++)
        guess_messages(&state, rigour);
    if (messages->count == 0)
        guess_messages(&state, FRAG_MESSAGE_WITNESSED);
    sort_by_place(messages);
    if (messages->count > 0) {
        frag_message *best = &messages->items[messages->best];
        collect_around(&state, best);
        messages->scenes |= platforms_near(&state.text, best->at);
    }
    for (size_t at = 0, end = 0; messages->count == 0 && at < state.text.length && at < REST_MAX;
         at = end + 1) {
        end = frag_message_text_line_end(&state.text, at, AROUND);
        frag_message_quantities(&state.text, at, end, &messages->rest);
    }
    messages->is_windows = frag_message_text_has_windows_path(text, length);
    name_jax(messages);
    for (size_t i = 0; i < messages->count; i++)
        name_program(&state.text, &messages->items[i]);
    find_ranks(messages);
    frag_message_text_destroy(&state.text);
    frag_text_destroy(&converted);
    frag_text_destroy(&unescaped);
}

void frag_messages_read(frag_messages *messages, const char *text, size_t length)
{
    read_messages(messages, text, length, true);
}

void frag_messages_guess(frag_messages *messages, const char *text, size_t length)
{
    read_messages(messages, text, length, false);
}

void frag_messages_destroy(frag_messages *messages)
{
    frag_free(messages->items);
    *messages = (frag_messages){0};
}

const frag_message *frag_messages_best(const frag_messages *messages)
{
    return messages->count > 0 ? &messages->items[messages->best] : NULL;
}
