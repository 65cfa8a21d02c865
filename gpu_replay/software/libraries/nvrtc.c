/* Programs that are compiled to something: PTX that assembles to nothing, and an ELF file for the
 * GPU without sections. The software driver takes any module and finds any function in it, so
 * lowered names are the expressions themselves. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvrtc_calls.h>

enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, NAME_EXPRESSION_NOT_VALID = 10 };

/* A name expression lives as long as its program. */
typedef struct name_expression {
    struct name_expression *next;
    char text[];
} name_expression;

enum { FIELD_NAMES, FIELD_CAPABILITY };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static name_expression *names_of(const void *program)
{
    return (name_expression *)(uintptr_t)frag_standin_get(program, FIELD_NAMES);
}

int32_t nvrtcCreateProgram(void **program, const void *source, const void *name,
                           int32_t header_count, const void *headers, const void *include_names)
{
    (void)source, (void)name, (void)header_count, (void)headers, (void)include_names;
    if (program == NULL)
        return INVALID_INPUT;
    *program = frag_standin_new();
    return 0;
}

/* The argument is the place of the handle, which becomes NULL. */
int32_t nvrtcDestroyProgram(const void *place)
{
    void **program = (void **)(uintptr_t)place;
    if (program == NULL || *program == NULL)
        return INVALID_PROGRAM;
    for (name_expression *name = names_of(*program), *next; name != NULL; name = next) {
        next = name->next;
        free(name);
    }
    frag_standin_end(*program);
    *program = NULL;
    return 0;
}

static const name_expression *find_name(const void *program, const char *text)
{
    const name_expression *name = names_of(program);
    while (name != NULL && strcmp(name->text, text) != 0)
        name = name->next;
    return name;
}

int32_t nvrtcAddNameExpression(void *program, const void *expression)
{
    if (program == NULL || expression == NULL)
        return INVALID_INPUT;
    size_t bytes = strlen(expression) + 1;
    name_expression *added = malloc(sizeof *added + bytes);
    if (added == NULL)
        return 1;
    memcpy(added->text, expression, bytes);
    pthread_mutex_lock(&lock);
    added->next = names_of(program);
    frag_standin_set(program, FIELD_NAMES, (uint64_t)(uintptr_t)added);
    bool was_kept = names_of(program) == added;
    pthread_mutex_unlock(&lock);
    if (!was_kept)
        free(added);
    return was_kept ? 0 : INVALID_PROGRAM;
}

int32_t nvrtcGetLoweredName(void *program, const void *expression, const char **lowered)
{
    if (lowered == NULL)
        return INVALID_INPUT;
    const name_expression *found = expression == NULL ? NULL : find_name(program, expression);
    *lowered = found == NULL ? NULL : found->text;
    return found == NULL ? NAME_EXPRESSION_NOT_VALID : 0;
}

/* The compute capability from --gpu-architecture=sm_80, or -arch=compute_80; the last one holds. */
static uint64_t find_capability(int32_t option_count, const char *const *options)
{
    uint64_t found = 0;
    for (int32_t i = 0; options != NULL && i < option_count; i++) {
        const char *number = options[i] == NULL ? NULL : strrchr(options[i], '_');
        if (number != NULL && strstr(options[i], "arch") != NULL)
            found = strtoul(number + 1, NULL, 10);
    }
    return found;
}

int32_t nvrtcCompileProgram(void *program, int32_t option_count, const void *options)
{
    enum { DEFAULT_CAPABILITY = FRAG_CUDART == 12 ? 52 : 75 };
    uint64_t capability = find_capability(option_count, options);
    frag_standin_set(program, FIELD_CAPABILITY, capability == 0 ? DEFAULT_CAPABILITY : capability);
    return 0;
}

static size_t write_ptx(const void *program, char *out, size_t out_bytes)
{
    int length =
        snprintf(out, out_bytes, ".version %d.0\n.target sm_%-3u\n.address_size 64\n",
                 FRAG_CUDART == 12 ? 8 : 9, (unsigned)frag_standin_get(program, FIELD_CAPABILITY));
    return (size_t)length + 1;
}

int32_t nvrtcGetPTXSize(void *program, int64_t *bytes)
{
    if (bytes == NULL)
        return INVALID_INPUT;
    *bytes = (int64_t)write_ptx(program, NULL, 0);
    return 0;
}

int32_t nvrtcGetPTX(void *program, void *out)
{
    char text[128];
    if (out == NULL)
        return INVALID_INPUT;
    memcpy(out, text, write_ptx(program, text, sizeof text));
    return 0;
}

/* The header of a 64-bit little-endian executable for machine 190, and nothing after it. */
static const unsigned char cubin[64] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7, [16] = 2, [18] = 190, [20] = 1, [52] = 64,
};

int32_t nvrtcGetCUBINSize(void *program, int64_t *bytes)
{
    (void)program;
    if (bytes == NULL)
        return INVALID_INPUT;
    *bytes = sizeof cubin;
    return 0;
}

int32_t nvrtcGetCUBIN(void *program, void *out)
{
    (void)program;
    if (out == NULL)
        return INVALID_INPUT;
    memcpy(out, cubin, sizeof cubin);
    return 0;
}

enum { CAPABILITY_COUNT = 8 };
static const int32_t capabilities[CAPABILITY_COUNT] = {75, 80, 86, 87, 89, 90, 100, 120};

int32_t nvrtcGetNumSupportedArchs(int32_t *count)
{
    if (count == NULL)
        return INVALID_INPUT;
    *count = CAPABILITY_COUNT;
    return 0;
}

int32_t nvrtcGetSupportedArchs(void *out)
{
    if (out == NULL)
        return INVALID_INPUT;
    memcpy(out, capabilities, sizeof capabilities);
    return 0;
}

const char *nvrtcGetErrorString(int32_t result)
{
    static const char *const names[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    };
    bool is_known = result >= 0 && (size_t)result < sizeof names / sizeof *names;
    return is_known ? names[result] : "NVRTC_ERROR unknown";
}
