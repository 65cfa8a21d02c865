#include "messages/message_line.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

enum { FAR = 1200 /* where else the text may say that it is about a device */ };

static bool is_letter(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool starts_word(const frag_message_text *text, size_t at)
{
    return at == 0 || (text->marks[at] & (FRAG_MESSAGE_WORD | FRAG_MESSAGE_CAPITAL)) != 0 ||
           !is_letter(text->bytes[at - 1]);
}

static bool begins_one(const char *text, const char *const *names)
{
    for (size_t j = 0; names[j] != NULL; j++)
        if (text[0] == names[j][0] && strncmp(text, names[j], strlen(names[j])) == 0)
            return true;
    return false;
}

/* Each word of failing in a long line looks around itself: the first two bytes of a name, of the
 * second its last five bits, rule out nearly every place before a name is compared. */
static bool stands_before(const frag_message_text *text, size_t at, size_t to,
                          const char *const *names, bool is_word)
{
    uint32_t second[UCHAR_MAX + 1] = {0};
    for (size_t j = 0; names[j] != NULL; j++)
        second[(unsigned char)names[j][0]] |=
            names[j][1] == '\0' ? UINT32_MAX : UINT32_C(1) << (names[j][1] & 31);
    const char *bytes = text->bytes;
    for (size_t i = at > FAR ? at - FAR : 0; i < to; i++)
        if ((second[(unsigned char)bytes[i]] >> (bytes[i + 1] & 31) & 1) != 0 &&
            (!is_word || starts_word(text, i)) && begins_one(bytes + i, names))
            return true;
    return false;
}

static bool stands_near(const frag_message_text *text, size_t at, const char *const *names,
                        bool is_word)
{
    size_t to = at + FAR < text->length ? at + FAR : text->length;
    return stands_before(text, at, to, names, is_word);
}

bool frag_message_stands_before(const frag_message_text *text, size_t at, const char *const *names)
{
    return stands_before(text, at, frag_message_text_line_end(text, at, FAR), names, false);
}

bool frag_message_stands_near(const frag_message_text *text, size_t at, const char *const *names)
{
    return stands_near(text, at, names, false);
}

bool frag_message_is_about_device(const frag_message_text *text, size_t at)
{
    static const char *const devices[] = {
        "cuda",   "gpu",     "vulkan", "opencl", "tensorrt",          "ascend",
        "vram",   "directx", "opengl", "nvenc",  "hresult",           "webgl",
        "webgpu", "texture", "shader", "gltex",  "torch.outofmemory", "fp16",
        "bf16",   "float16", NULL};
    /* "input" and "output" have no NPU and no TPU in them */
    static const char *const words[] = {"hip",      "npu",     "xpu",    "tpu",    "hpu",   "metal",
                                        "rocm",     "d3d",     "render", "cublas", "cudnn", "cufft",
                                        "cusolver", "nccl",    "thrust", "mtl",    "vk",    "cl_",
                                        "nvidia",   "geforce", "radeon", "rtx",    "a100",  "h100",
                                        "v100",     "3090",    "4090",   "bfc_",   NULL};
    return stands_near(text, at, devices, false) || stands_near(text, at, words, true);
}

/* "malloc_failed", "on_oom": two words of one small name, which a program gives to a field or an
 * option, not to what it reports. */
bool frag_message_line_is_joined(const frag_message_split_line *read, size_t i)
{
    if (i == 0 || i >= read->count)
        return false;
    size_t before = read->words[i - 1].end;
    return read->words[i].at == before + 1 && read->text->bytes[before] == '_' &&
           (read->text->marks[read->words[i].at] & FRAG_MESSAGE_CAPITAL) == 0;
}

/* "20 GiB on the device, 0 failed allocations", but not "GPU 0 failed to allocate" */
static bool is_none(const frag_message_split_line *read, size_t i)
{
    if (i == 0 || i + 1 >= read->count || !frag_message_line_has(read, i, FRAG_WORD_FAIL) ||
        !frag_message_line_has(read, i - 1, FRAG_WORD_NUMBER) ||
        !read->words[i - 1].amount.is_known || read->words[i - 1].amount.bytes != 0)
        return false;
    size_t zero = read->words[i - 1].at;
    bool is_counted = i == 1 || strchr(",;:(", read->text->bytes[zero - 1]) != NULL;
    return is_counted && read->words[i].at == zero + 1 && !frag_message_line_is(read, i + 1, "to");
}

/* "SKIP_MEM_CHECK=1", "vmw_shader_define": of a name, not what the program does */
static bool is_of_name(const frag_message_text *text, const frag_message_word *word)
{
    return text->bytes[word->end] == '_' || (word->at > 0 && text->bytes[word->at - 1] == '_');
}

/* "i915": a letter and a number, no word of a sentence */
static bool is_part_of_name(const frag_message_text *text, const frag_message_word *word)
{
    char behind = text->bytes[word->end];
    return word->end == word->at + 1 && behind >= '0' && behind <= '9' &&
           (text->marks[word->end] & FRAG_MESSAGE_WORD) == 0;
}

/* "0/4 nodes are available: 2 Insufficient memory", "InsufficientDriver: the version is
 * insufficient"
 */
static bool is_of_others(const frag_message_split_line *read, size_t i)
{
    static frag_word_list others = {"driver*", "permission*", "privilege*", "rights", "funds",
                                    "credit*", "balance",     "data",       NULL};
    bool is_count = frag_message_line_has(read, i - 1, FRAG_WORD_NUMBER) &&
                    read->words[i].at == read->words[i - 1].end && read->words[i - 1].at > 1 &&
                    strchr(":,", read->text->bytes[read->words[i - 1].at - 1]) != NULL &&
                    /* "10:02:18 insufficient memory" */
                    strchr("0123456789", read->text->bytes[read->words[i - 1].at - 2]) == NULL;
    return is_count || frag_message_line_is_any(read, i + 1, others) ||
           frag_message_line_is(read, i - 2, "version");
}

/* "restart the app and retry", "do not keep retrying": what a person is to do or not */
static bool is_advised(const frag_message_split_line *read, size_t i)
{
    static frag_word_list before = {"and", "or", "then", "please", "again", NULL};
    static frag_word_list nots = {"not", "t", "never", "stop", "without", NULL};
    bool is_plain = frag_message_line_is(read, i, "retry") || frag_message_line_is(read, i, "skip");
    return i > 0 && ((is_plain && frag_message_line_is_any(read, i - 1, before)) ||
                     frag_message_line_has_any(read, i > 2 ? i - 2 : 0, i, nots));
}

/* "evicting nothing (all pinned)": kept in a cache, not pinned memory of the computer */
static bool is_kept(const frag_message_split_line *read, size_t i)
{
    const char *behind = read->text->bytes + read->words[i].end;
    return frag_message_line_is(read, i, "pinned") && i > 0 &&
           (read->words[i - 1].kinds & FRAG_WORD_ALLOCATE) == 0 && *behind != '\0' &&
           strchr("),.;\n", *behind) != NULL;
}

/* "no space for [mem size 0x400000000 64bit pref]": addresses on a bus */
static bool is_window(const frag_message_split_line *read, size_t i)
{
    return frag_message_line_is(read, i, "mem") && frag_message_line_is(read, i + 1, "size") &&
           read->words[i].at > 0 && read->text->bytes[read->words[i].at - 1] == '[';
}

/* "IDirect3DDevice9": no person says "I". */
static void join_interfaces(frag_message_split_line *read)
{
    size_t count = 0;
    for (size_t i = 0; i < read->count; i++) {
        bool is_begun = i + 1 < read->count && frag_message_line_is(read, i, "i") &&
                        read->words[i].end == read->words[i + 1].at &&
                        (read->words[i + 1].kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) == 0 &&
                        (read->text->marks[read->words[i + 1].at] & FRAG_MESSAGE_WORD) == 0;
        if (is_begun)
            read->words[i + 1].at = read->words[i].at;
        else
            read->words[count++] = read->words[i];
    }
    read->count = count;
}

void frag_message_line_read(frag_message_split_line *read, const frag_message_text *text,
                            size_t from, size_t to)
{
    read->text = text;
    read->count = frag_message_words(text, from, to, read->words);
    join_interfaces(read);
    read->kinds = 0;
    for (size_t i = 0; i < read->count; i++) {
        /* "what(): " is a call */
        if (text->bytes[read->words[i].end] == '(' || is_part_of_name(text, &read->words[i]))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_PROSE;
        if (frag_message_line_is_joined(read, i) || frag_message_line_is_joined(read, i + 1))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_FAIL;
        if (is_none(read, i))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_FAIL;
        if (frag_message_line_is(read, i, "insufficient") && is_of_others(read, i))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_LACK;
        if (is_of_name(text, &read->words[i]))
            read->words[i].kinds &= ~(uint32_t)(FRAG_WORD_WARNING | FRAG_WORD_CODE);
        if ((read->words[i].kinds & FRAG_WORD_WARNING) != 0 && is_advised(read, i))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_WARNING;
        if (is_window(read, i))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_MEMORY;
        if (is_kept(read, i))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_HOST;
        static frag_word_list before_case = {"this", "that", "the", NULL}; /* no line of a switch */
        if (i > 0 && frag_message_line_is(read, i, "case") &&
            frag_message_line_is_any(read, i - 1, before_case))
            read->words[i].kinds &= ~(uint32_t)FRAG_WORD_CODE;
        read->kinds |= read->words[i].kinds;
    }
}

bool frag_message_line_is(const frag_message_split_line *read, size_t index, const char *name)
{
    return index < read->count && frag_message_word_is(read->text, &read->words[index], name);
}

bool frag_message_line_ends(const frag_message_split_line *read, size_t index, const char *ending)
{
    if (index >= read->count)
        return false;
    const frag_message_word *word = &read->words[index];
    size_t length = strlen(ending);
    return word->end - word->at > length &&
           memcmp(read->text->bytes + word->end - length, ending, length) == 0;
}

bool frag_message_line_has(const frag_message_split_line *read, size_t index, uint32_t kinds)
{
    return index < read->count && (read->words[index].kinds & kinds) != 0;
}

bool frag_message_line_is_model(const frag_message_split_line *read, size_t i)
{
    if (i >= read->count)
        return false;
    const frag_message_word *word = &read->words[i];
    char behind = read->text->bytes[word->end];
    return word->end - word->at <= 2 && behind >= '0' && behind <= '9' &&
           read->text->bytes[word->at] >= 'a' && read->text->bytes[word->at] <= 'z' &&
           (read->text->marks[word->end] & FRAG_MESSAGE_WORD) == 0;
}

bool frag_message_line_has_within(const frag_message_split_line *read, size_t from, size_t to,
                                  uint32_t kinds)
{
    for (size_t i = from; i < to && i < read->count; i++)
        if (frag_message_line_has(read, i, kinds))
            return true;
    return false;
}

bool frag_message_line_is_any(const frag_message_split_line *read, size_t i,
                              const char *const *words)
{
    if (i >= read->count)
        return false;
    const char *text = read->text->bytes + read->words[i].at;
    size_t length = read->words[i].end - read->words[i].at;
    for (; *words != NULL; words++) {
        if (**words != *text)
            continue;
        size_t letters = strlen(*words);
        bool is_head = (*words)[letters - 1] == '*';
        letters -= is_head;
        if (length >= letters && (is_head || length == letters) &&
            memcmp(text, *words, letters) == 0)
            return true;
    }
    return false;
}

bool frag_message_line_has_any(const frag_message_split_line *read, size_t from, size_t to,
                               const char *const *words)
{
    for (size_t i = from; i < to && i < read->count; i++)
        if (frag_message_line_is_any(read, i, words))
            return true;
    return false;
}

static bool ends_sentence(const frag_message_split_line *read, size_t i, const char *signs)
{
    const frag_message_text *text = read->text;
    for (size_t at = read->words[i].end; at < read->words[i + 1].at; at++)
        if (strchr(signs, text->bytes[at]) != NULL &&
            (text->marks[at + 1] & FRAG_MESSAGE_WORD) != 0)
            return true;
    return false;
}

frag_word_range frag_message_line_sentence(const frag_message_split_line *read, size_t i,
                                           const char *signs)
{
    frag_word_range range = {.from = i, .to = i + 1};
    while (range.from > 0 && !ends_sentence(read, range.from - 1, signs))
        range.from--;
    while (range.to < read->count && !ends_sentence(read, range.to - 1, signs))
        range.to++;
    return range;
}
