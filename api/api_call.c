#include "api/api_call.h"

#include <string.h>

#include "base/text.h"

/* More than any header of this library will ever say: the member was not set. */
#define STRUCTURE_BYTES_MAX 65536u

typedef struct guarded_work {
    frag_call_work *work;
    void *arguments;
    frag_error error;
    bool ok;
} guarded_work;

static void run_guarded(void *context)
{
    guarded_work *guarded = context;
    guarded->ok = guarded->work(guarded->arguments, &guarded->error);
}

static int tell(fraglab_error *error, const frag_error *found, int code)
{
    fraglab_error full = {.size = error != NULL ? error->size : 0,
                          .code = code,
                          .has_offset = found->has_offset,
                          .line = found->line,
                          .column = found->column,
                          .offset = found->offset};
    if (error == NULL)
        return code;
    memcpy(full.where, found->where, sizeof full.where);
    memcpy(full.sentence, found->sentence, sizeof full.sentence);
    memcpy(error, &full, error->size < sizeof full ? error->size : sizeof full);
    return code;
}

int frag_call_refuse(fraglab_error *error, int code, const char *where, const char *sentence)
{
    frag_error found = {.code = FRAG_E_USAGE};
    frag_fail(&found, FRAG_E_USAGE, "%s", sentence);
    frag_error_in(&found, where);
    return tell(error, &found, code);
}

static int refuse_memory(fraglab_error *error)
{
    return frag_call_refuse(error, FRAGLAB_E_MEMORY, "",
                            "host memory ran out; free some or use a smaller input");
}

int frag_call_in(frag_scope *scope, frag_call_work *work, void *arguments, fraglab_error *error)
{
    guarded_work guarded = {.work = work, .arguments = arguments};
    if (frag_scope_active() != NULL)
        return frag_call_refuse(error, FRAGLAB_E_USAGE, "",
                                "a function of a context called the library; let it return first");
    if (!frag_scope_enter(scope, run_guarded, &guarded))
        return refuse_memory(error);
    if (guarded.ok)
        return FRAGLAB_OK;
    return tell(error, &guarded.error, (int)guarded.error.code);
}

static int call_in_new(frag_call_work *work, void *arguments, bool is_kept, fraglab_error *error)
{
    frag_scope *scope = frag_scope_create();
    if (scope == NULL)
        return refuse_memory(error);
    int code = frag_call_in(scope, work, arguments, error);
    if (!is_kept || code != FRAGLAB_OK)
        frag_scope_destroy(scope);
    return code;
}

int frag_call_new(frag_call_work *work, void *arguments, fraglab_error *error)
{
    return call_in_new(work, arguments, true, error);
}

int frag_call_once(frag_call_work *work, void *arguments, fraglab_error *error)
{
    return call_in_new(work, arguments, false, error);
}

char *frag_call_hand_out(char *text)
{
    frag_scope_remove(text);
    return text;
}

static bool check_size(size_t size, const char *what, frag_error *error)
{
    if (size >= sizeof size && size <= STRUCTURE_BYTES_MAX)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, what,
                        "its size is %zu; set it to sizeof the structure", size);
}

bool frag_call_read(const void *given, void *ours, size_t our_bytes, const char *what,
                    frag_error *error)
{
    size_t size = 0;
    memset(ours, 0, our_bytes);
    if (given == NULL)
        return true;
    memcpy(&size, given, sizeof size);
    if (!check_size(size, what, error))
        return false;
    memcpy(ours, given, size < our_bytes ? size : our_bytes);
    for (size_t i = our_bytes; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return frag_fail_in(
                error, FRAG_E_USAGE, what,
                "byte %zu is set, and this library knows %zu; it is older than the header", i,
                our_bytes);
    return true;
}

bool frag_call_goes_on(const frag_context *context, frag_error *error)
{
    return !frag_is_cancelled(context) ||
           frag_fail(error, (frag_error_code)FRAGLAB_E_CANCELLED, "the call was cancelled");
}

bool frag_call_write(const void *ours, size_t our_bytes, void *given, const char *what,
                     frag_error *error)
{
    size_t size = 0;
    memcpy(&size, given, sizeof size);
    if (!check_size(size, what, error))
        return false;
    size_t bytes = size < our_bytes ? size : our_bytes;
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)ours + sizeof size,
           bytes - sizeof size);
    return true;
}
