#include "messages/message_quantity.h"

#include <string.h>

#include "messages/message_line.h"
#include "messages/message_size.h"
#include "messages/message_words.h"

enum {
    KEY = 4,                /* words that name a figure */
    LIST_MAX = 6,           /* lines below a message that name its figures, */
    LIST_LINE = 200,        /* of so many bytes */
    DEVICES_MAX = 64,       /* a larger number is that of a model, */
    CARD = 4,               /* words from a device to what it has */
    WORDS_BEFORE = 4,       /* so far off a label may stand before its size */
    WORDS_BEHIND = 3,       /* and behind it, */
    WORDS_ARGUMENT = 10,    /* so far off the name of a call stands before its last argument */
    WORDS_PAREN = 9,        /* and before one in parentheses the allocation that failed */
    CARD_NAME_MAX = 10000,  /* the number in the name of a card is smaller, */
    BARE_BYTES_MIN = 256,   /* a smaller number without a unit is something else, */
    BARE_SIZE_MIN = 1 << 20 /* and such a one behind mere words of memory, too */
};

/* What a word says of the size beside it. */
static const struct {
    frag_figure figure;
    const char *words; /* a blank before and behind each */
} labels[] = {
    {FRAG_FIGURE_REQUESTED,
     " request requested requesting requests requirements requires required require need needs "
     "needed allocate "
     "allocating allocation alloc malloc asked demanded wanted trying upstream estimated "},
    {FRAG_FIGURE_FREE,
     " free available avail remaining remain remains left unused allocatable freemem have usable "},
    {FRAG_FIGURE_TOTAL, " total capacity "},
    {FRAG_FIGURE_LIMIT, " limit max maximum maximal cap capped allowed budget threshold exceed "
                        "exceeds exceeding than "},
    {FRAG_FIGURE_ALLOCATED, " used using usage occupied allocated consumed inuse live current "},
    {FRAG_FIGURE_RESERVED, " reserved cached "},
    {FRAG_FIGURE_LARGEST, " largest "},
};

/* "in_use_bytes", "2 GB in use" */
static bool is_in_use(const frag_message_text *text, const frag_message_word *word)
{
    size_t in = word->at > 0 && text->bytes[word->at - 1] == '_' ? word->at - 1 : word->at;
    return frag_message_word_is(text, word, "use") && in >= 2 &&
           memcmp(text->bytes + in - 2, "in", 2) == 0;
}

static bool label_of(const frag_message_text *text, const frag_message_word *word,
                     frag_figure *figure)
{
    char padded[20];
    size_t length = word->end - word->at;
    if (length + 3 > sizeof padded || (word->kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0)
        return false;
    if (is_in_use(text, word)) {
        *figure = FRAG_FIGURE_ALLOCATED;
        return true;
    }
    padded[0] = ' ';
    memcpy(padded + 1, text->bytes + word->at, length);
    padded[length + 1] = ' ';
    padded[length + 2] = '\0';
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strstr(labels[i].words, padded) != NULL) {
            *figure = labels[i].figure;
            return true;
        }
    return false;
}

static bool has_sign(const frag_message_text *text, size_t from, size_t to, const char *signs)
{
    for (size_t at = from; at < to; at++)
        if (strchr(signs, text->bytes[at]) != NULL)
            return true;
    return false;
}

/* "exceeds available memory. Estimated 6 GiB", but not "alloc.size" */
static bool ends_sentence(const frag_message_text *text, size_t from, size_t to)
{
    for (size_t at = from; at < to; at++)
        if (text->bytes[at] == '.' &&
            (text->marks[at + 1] & (FRAG_MESSAGE_WORD | FRAG_MESSAGE_CAPITAL)) != 0)
            return true;
    return false;
}

/* "free: 1 GiB", "requested=1 GiB": the word before is its label, whatever follows. */
static bool is_named(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    return index > 0 && has_sign(text, words[index - 1].end, words[index].at, ":=");
}

/* "the device store has 5 GB total": all of a pool, not of the device */
static bool is_of_pool(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    return index > 1 && frag_message_word_is(text, &words[index - 1], "has") &&
           (frag_message_word_is(text, &words[index - 2], "store") ||
            frag_message_word_is(text, &words[index - 2], "pool") ||
            frag_message_word_is(text, &words[index - 2], "cache"));
}

/* "free memory (GiB): 0.95": the label stands before the unit. */
static bool has_unit_before(const frag_message_text *text, const frag_message_word *words,
                            size_t index)
{
    const frag_message_word *unit = &words[index] - (index > 0);
    return unit->at > 0 && strchr("([", text->bytes[unit->at - 1]) != NULL &&
           strchr(")]", text->bytes[unit->end]) != NULL && text->bytes[unit->end] != '\0' &&
           (words[index].kinds & FRAG_WORD_SIZE) != 0 && unit->end < words[index].at;
}

/* "card 0 has 7.6 GiB", "the GPU only has 12 GB": all of it, unless a label behind says otherwise
 */
static bool is_of_card(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    size_t has =
        index > 0 && frag_message_word_is(text, &words[index - 1], "only") ? index - 1 : index;
    if (has == 0 || !frag_message_word_is(text, &words[has - 1], "has") ||
        is_of_pool(text, words, index) || words[index].amount.bytes < BARE_SIZE_MIN)
        return false;
    for (size_t i = has - 1; i > 0 && i + CARD > has; i--)
        if ((words[i - 1].kinds & FRAG_WORD_DEVICE) != 0 ||
            frag_message_word_is(text, &words[i - 1], "card"))
            return !has_sign(text, words[i - 1].end, words[has - 1].at, ",;.\n");
    return false;
}

static bool is_amount(const frag_message_word *word)
{
    return (word->kinds & FRAG_WORD_SIZE) != 0 ||
           ((word->kinds & FRAG_WORD_NUMBER) != 0 && word->amount.is_known &&
            word->amount.bytes >= BARE_SIZE_MIN);
}

/* "3758096384 + 1073741824 > 4294967296": what is held, what is asked, and the limit of both */
static bool label_of_sum(const frag_message_text *text, const frag_message_word *words,
                         size_t count, size_t index, frag_figure *figure)
{
    static const frag_figure parts[] = {FRAG_FIGURE_ALLOCATED, FRAG_FIGURE_REQUESTED,
                                        FRAG_FIGURE_LIMIT};
    for (size_t part = 0; part < 3 && part <= index; part++) {
        size_t first = index - part;
        bool is_sum = first + 2 < count && words[first + 1].at == words[first].end + 1 &&
                      words[first + 2].at == words[first + 1].end + 1 &&
                      text->bytes[words[first].end] == '+' &&
                      text->bytes[words[first + 1].end] == '>';
        for (size_t i = first; i < first + 3 && is_sum; i++)
            is_sum = is_amount(&words[i]);
        *figure = parts[part];
        if (is_sum)
            return true;
    }
    return false;
}

/* "exceeds the budget by 536870912 bytes", "(3.1 GB over)" */
static bool is_excess(const frag_message_text *text, const frag_message_word *words, size_t count,
                      size_t index)
{
    if (index + 1 < count && frag_message_word_is(text, &words[index + 1], "over") &&
        strchr(").\n", text->bytes[words[index + 1].end]) != NULL)
        return true;
    for (size_t i = index;
         i > 1 && frag_message_word_is(text, &words[index - 1], "by") && i + WORDS_PAREN > index;
         i--)
        if ((words[i - 2].kinds & FRAG_WORD_EXCEED) != 0)
            return !has_sign(text, words[i - 2].end, words[index].at, ",;.:\n");
    return false;
}

/* "need ~4 GB free": what is needed, not what there is */
static bool is_needed(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    static const char *const needs[] = {"need", "needs", "requires", "require"};
    if (index == 0 || has_sign(text, words[index - 1].end, words[index].at, ",;.\n"))
        return false;
    for (size_t k = 0; k < sizeof needs / sizeof *needs; k++)
        if (frag_message_word_is(text, &words[index - 1], needs[k]))
            return true;
    return false;
}

static bool label_behind(const frag_message_text *text, const frag_message_word *words,
                         size_t count, size_t index, frag_figure *figure)
{
    /* "Process 3427 has 2 GB memory in use": one of several */
    if (index > 2 && frag_message_word_is(text, &words[index - 1], "has") &&
        frag_message_word_is(text, &words[index - 3], "process"))
        return false;
    /* "300 MB of device memory left" */
    bool is_of = index + 1 < count && frag_message_word_is(text, &words[index + 1], "of");
    /* "Out of memory(1285) @ uploadMaxMips": a status */
    if ((words[index].kinds & FRAG_WORD_NUMBER) != 0 && text->bytes[words[index].end] == ')' &&
        words[index].amount.bytes < BARE_SIZE_MIN)
        return false;
    for (size_t i = index + 1; i < count && i <= index + WORDS_BEHIND + is_of; i++) {
        /* "requested 5 bytes with usage Storage" */
        if (has_sign(text, words[i - 1].end, words[i].at, ",;:=.\n/\"") ||
            (words[i].kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0 ||
            frag_message_word_is(text, &words[i], "with") ||
            (i > index + WORDS_BEHIND && has_sign(text, words[i - 1].end, words[i].at, "(")))
            return false;
        /* "(150 bytes) exceeds the limit": the limit comes after it */
        if (i + 1 < count && (words[i].kinds & FRAG_WORD_EXCEED) != 0)
            return false;
        /* "Epoch 395 requires 4 GB": the size comes after it */
        if (frag_message_word_is(text, &words[i], "requires") ||
            frag_message_word_is(text, &words[i], "needs"))
            return false;
        /* a count of what is loaded has no unit */
        if ((words[index].kinds & FRAG_WORD_SIZE) != 0 &&
            (frag_message_word_is(text, &words[i], "loaded") ||
             frag_message_word_is(text, &words[i], "resident"))) {
            *figure = FRAG_FIGURE_ALLOCATED;
            return true;
        }
        if (label_of(text, &words[i], figure)) {
            if (*figure == FRAG_FIGURE_TOTAL && is_of_pool(text, words, index))
                *figure = FRAG_FIGURE_RESERVED;
            return true;
        }
        /* "(150 bytes) could not be allocated" */
        if ((words[i].kinds & FRAG_WORD_FAIL) != 0 ||
            frag_message_word_is(text, &words[i], "could")) {
            *figure = FRAG_FIGURE_REQUESTED;
            return true;
        }
    }
    return false;
}

/* "exceeds the budget: 20 GB loaded + 9 GB requested": the word behind is its label, not the one
 * before the colon, which is of the whole list. */
static bool is_of_list(const frag_message_text *text, const frag_message_word *words, size_t count,
                       size_t index)
{
    frag_figure figure;
    return index + 2 < count && label_behind(text, words, index + 2, index, &figure) &&
           has_sign(text, words[index + 1].end, words[index + 1].end + 1, "+,;)") &&
           (words[index + 2].kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0;
}

/* "exceeds GPU memory (24 GB)", "larger than the 12 GB of VRAM": what is exceeded is the device. */
static bool is_of_device(const frag_message_text *text, const frag_message_word *words,
                         size_t count, size_t label, size_t index)
{
    static const char *const verbs[] = {"exceed", "exceeds", "exceeding"};
    static const char *const than[] = {"larger", "bigger", "greater"};
    bool is_verb = false;
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
        is_verb |= frag_message_word_is(text, &words[label], verbs[k]) ||
                   (label > 0 && frag_message_word_is(text, &words[label], "than") &&
                    (frag_message_word_is(text, &words[label - 1], than[k]) ||
                     (words[label - 1].kinds & FRAG_WORD_MEMORY) != 0));
    /* "needs more VRAM than the RTX 3090's 24GB" */
    uint32_t kinds = label > 0 ? words[label - 1].kinds & FRAG_WORD_MEMORY : 0;
    for (size_t i = label + 1; i < count && i <= index + WORDS_BEHIND; i++) {
        if (i > index && has_sign(text, words[i - 1].end, words[i].at, ".,;:()\n"))
            break;
        kinds |= words[i].kinds;
    }
    return is_verb && (kinds & FRAG_WORD_DEVICE) != 0 && (kinds & FRAG_WORD_MEMORY) != 0;
}

/* "using an A6000 with 48 GB", "I have an 8 GB card": what there is, not what is in use or free;
 * label: the word that says so */
static bool is_of_owned_card(const frag_message_text *text, const frag_message_word *words,
                             size_t label, size_t index)
{
    bool is_card = label > 0 && frag_message_word_is(text, &words[label], "have") &&
                   frag_message_word_is(text, &words[label - 1], "i");
    for (size_t i = label + 1; i < index; i++) {
        char last = text->bytes[words[i].end - 1];
        is_card |= (words[i].kinds & FRAG_WORD_DEVICE) != 0 || (last >= '0' && last <= '9') ||
                   frag_message_word_is(text, &words[i], "with");
    }
    return is_card && (frag_message_word_is(text, &words[label], "using") ||
                       frag_message_word_is(text, &words[label], "have") ||
                       frag_message_word_is(text, &words[label], "use"));
}

/* "size" alone is that of the request; a word before it may say more: "total memory size". */
static bool label_before(const frag_message_text *text, const frag_message_word *words,
                         size_t count, size_t index, frag_figure *figure)
{
    bool is_size = false;
    for (size_t i = index; i > 0 && i + WORDS_BEFORE > index; i--) {
        const frag_message_word *word = &words[i - 1];
        if ((word->kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0 ||
            ends_sentence(text, word->end, words[i].at) ||
            has_sign(text, word->end, words[i].at, i == index ? ",;\n)]" : ",;\n)"))
            break;
        /* "5 GB total and 2 GB": the label of the size before it */
        if (i < index && i > 1 && frag_message_word_is(text, &words[i], "and") &&
            (words[i - 2].kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0)
            break;
        if (label_of(text, word, figure)) {
            /* "max allocation" is no request */
            frag_figure more = FRAG_FIGURE_REQUESTED;
            if (*figure == FRAG_FIGURE_REQUESTED && i > 1 && label_of(text, word - 1, &more) &&
                (more == FRAG_FIGURE_LIMIT || more == FRAG_FIGURE_LARGEST))
                *figure = more;
            if (*figure == FRAG_FIGURE_LIMIT && is_of_device(text, words, count, i - 1, index))
                *figure = FRAG_FIGURE_TOTAL;
            if (is_of_owned_card(text, words, i - 1, index))
                *figure = FRAG_FIGURE_TOTAL;
            /* "Current total 5003256884": of what is held, not of the device */
            if (*figure == FRAG_FIGURE_TOTAL && i > 1 &&
                frag_message_word_is(text, word - 1, "current"))
                *figure = FRAG_FIGURE_RESERVED;
            /* "the largest region of free memory is" */
            for (size_t j = i; *figure == FRAG_FIGURE_FREE && j > 1 && j + WORDS_BEFORE > i &&
                               !has_sign(text, words[j - 2].end, words[j - 1].at, ",;:\n");
                 j--)
                if (frag_message_word_is(text, &words[j - 2], "largest"))
                    *figure = FRAG_FIGURE_LARGEST;
            return true;
        }
        is_size |= frag_message_word_is(text, word, "size") ||
                   (frag_message_word_is(text, word, "length") &&
                    words[index].amount.bytes >= BARE_SIZE_MIN);
    }
    *figure = FRAG_FIGURE_REQUESTED;
    return is_size;
}

/* "failed to allocate device memory for d_A (1024.00 MB)", "allocation failed on cuda:0 for 120
 * bytes", "CreateResource failed 0x8007000E (5 bytes)": farther off, but nothing else can be meant.
 */
static bool is_of_allocation(const frag_message_text *text, const frag_message_word *words,
                             size_t index)
{
    bool is_for = index > 0 && frag_message_word_is(text, &words[index - 1], "for");
    if (index == 0 || (!is_for && !has_sign(text, words[index - 1].end, words[index].at, "(")))
        return false;
    const char *const ends = is_for ? ";\n" : ",;:\n)";
    for (size_t i = index; i > 0 && i + WORDS_PAREN > index; i--) {
        const frag_message_word *word = &words[i - 1];
        bool is_status = strncmp(text->bytes + word->at, "0x", 2) == 0 ||
                         ((word->kinds & FRAG_WORD_NUMBER) != 0 && /* "(error 2)" */
                          word->amount.bytes < BARE_BYTES_MIN);
        if ((!is_status && (word->kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0) ||
            (i < index && (has_sign(text, word->end, words[i].at, ends) ||
                           ends_sentence(text, word->end, words[i].at))))
            return false;
        if ((word->kinds & (FRAG_WORD_ALLOCATE | FRAG_WORD_FAIL)) != 0)
            return true;
    }
    return false;
}

/* "Global memory: 536543232", "MEM_SIZE = 2147483648", "buffer size (870585948)", "GPU memory
 * 25447170048": no date is so big */
static bool is_of_memory(const frag_message_text *text, const frag_message_word *words,
                         size_t index)
{
    if (index > 0 && (words[index - 1].kinds & FRAG_WORD_MEMORY) != 0 &&
        words[index - 1].end == words[index].at && words[index].amount.bytes >> 28 != 0)
        return true;
    if (index == 0 || words[index].amount.bytes < BARE_SIZE_MIN ||
        (!has_sign(text, words[index - 1].end, words[index].at, ":=(") &&
         !frag_message_word_is(text, &words[index - 1], "of")))
        return false;
    for (size_t i = index; i > 0 && i + WORDS_BEFORE > index; i--) {
        const frag_message_word *word = &words[i - 1];
        if ((word->kinds & (FRAG_WORD_NUMBER | FRAG_WORD_SIZE)) != 0)
            return false;
        if ((word->kinds & (FRAG_WORD_MEMORY | FRAG_WORD_ALLOCATE)) != 0 ||
            frag_message_word_is(text, word, "size") || frag_message_word_is(text, word, "bytes"))
            return true;
        /* "BufferTooBig(2156988480)" */
        if (i == index && i > 1 && frag_message_word_is(text, word - 1, "too"))
            return true;
    }
    return false;
}

/* "hipMalloc((void**)&buffer, 1073741824) = 2", "clCreateBuffer(context, 1, 48771072, ...)" */
static bool is_argument(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    if (words[index].amount.bytes < BARE_SIZE_MIN ||
        !has_sign(text, words[index].end, words[index].end + 1, ",)"))
        return false;
    for (size_t i = index; i > 0 && i + WORDS_ARGUMENT > index; i--)
        if ((words[i - 1].kinds & FRAG_WORD_ALLOCATE) != 0 ||
            frag_message_word_is(text, &words[i - 1], "create"))
            return has_sign(text, words[i - 1].end, words[index].at, "(");
    return false;
}

/* "322MB/8188MB in use": is the word index the part of the whole behind it? */
static bool is_slashed(const frag_message_text *text, const frag_message_word *words, size_t count,
                       size_t index)
{
    return index + 1 < count &&
           (words[index].kinds & words[index + 1].kinds & FRAG_WORD_SIZE) != 0 &&
           words[index + 1].at == words[index].end + 1 && text->bytes[words[index].end] == '/' &&
           words[index].amount.bytes < words[index + 1].amount.bytes;
}

/* "only 812646400 of 8589934592 bytes are free", "3 GiB free of 16 GiB": which of the two is the
 * word index, a part or the whole? Returns the other; index: neither. */
static size_t part_of(const frag_message_text *text, const frag_message_word *words, size_t count,
                      size_t index, bool *is_whole)
{
    frag_figure figure;
    *is_whole = index > 0 && is_slashed(text, words, count, index - 1);
    if (*is_whole || is_slashed(text, words, count, index))
        return *is_whole ? index - 1 : index + 1;
    for (size_t gap = 2; gap <= 3; gap++) {
        bool is_label =
            gap == 2 || (index + 1 < count && label_of(text, &words[index + 1], &figure));
        *is_whole = false;
        if (is_label && index + gap < count && is_amount(&words[index + gap]) &&
            frag_message_word_is(text, &words[index + gap - 1], "of"))
            return index + gap;
        *is_whole = true;
        bool was_label = gap == 2 || (index >= 3 && label_of(text, &words[index - 2], &figure));
        if (was_label && index >= gap && is_amount(&words[index - gap]) &&
            frag_message_word_is(text, &words[index - 1], "of"))
            return index - gap;
    }
    return index;
}

static bool is_big_number(const frag_message_word *word)
{
    return (word->kinds & FRAG_WORD_NUMBER) != 0 && word->amount.is_known &&
           word->amount.bytes >= BARE_SIZE_MIN;
}

/* Does one of the signs alone stand between the word index and the one before it? */
static bool is_joined(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    size_t sign = words[index - 1].end;
    return words[index].at == sign + 1 && strchr("/+<>", text->bytes[sign]) != NULL;
}

/* "at 3317279728/4100456448", "3758096384 + 1073741824 > 4294967296 bytes": what is used or asked
 * of what there is; "from 268435456 to 536870912 bytes" */
static bool is_of_pair(const frag_message_text *text, const frag_message_word *words, size_t count,
                       size_t index)
{
    bool is_first =
        index + 1 < count && is_joined(text, words, index + 1) && is_big_number(&words[index + 1]);
    bool is_second = index > 0 && is_joined(text, words, index) && is_big_number(&words[index - 1]);
    bool is_range = index + 2 < count && frag_message_word_is(text, &words[index + 1], "to") &&
                    (words[index + 2].kinds & FRAG_WORD_SIZE) != 0;
    return (is_first || is_second || is_range) && is_big_number(&words[index]);
}

/* "0x8007000e", a status of Windows; "cuMemAlloc(0x7ffd3, ", an address; "cl::alloc:284", a place;
 * "GPU ID 0x00000100" */
static bool is_no_number(const frag_message_text *text, const frag_message_word *words,
                         size_t index)
{
    const frag_message_word *word = &words[index];
    const char *bytes = text->bytes + word->at;
    bool is_address = word->at > 0 && ((bytes[-1] == '(' && text->bytes[word->end] == ',') ||
                                       bytes[-1] == '@'); /* "[h264_nvenc @ 0x7f616007d540]" */
    size_t name = index > 0 && bytes[-1] == ':' ? word->at - 2 : 0;
    while (name > 0 && text->bytes[name] >= 'a' && text->bytes[name] <= 'z')
        name--;
    bool is_place = name > 0 && memcmp(text->bytes + name - 1, "::", 2) == 0;
    return (word->end - word->at == 10 && memcmp(bytes, "0x8", 3) == 0) || is_place ||
           (is_address && memcmp(bytes, "0x", 2) == 0) ||
           (index > 0 && frag_message_word_is(text, &words[index - 1], "id"));
}

/* "1080Ti(11G)", "my 3060 12GB": the name of a card, with letters or its size behind */
static bool is_card_name(const frag_message_text *text, const frag_message_word *words,
                         size_t count, size_t index)
{
    const frag_message_word *word = &words[index];
    char behind = text->bytes[word->end];
    bool is_glued =
        behind >= 'a' && behind <= 'z' && (text->marks[word->end] & FRAG_MESSAGE_WORD) == 0;
    return word->amount.bytes < CARD_NAME_MAX &&
           (is_glued || (index + 1 < count && (word[1].kinds & FRAG_WORD_SIZE) != 0 &&
                         !has_sign(text, word->end, word[1].at, ",;:=/+|")));
}

/* "#394", "RTX 3090", "[alloc:512]", "256x256", "7680×4320", "buffer.hpp(360)", "pool.py:444" */
static bool is_numbered(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    const frag_message_word *word = &words[index];
    const frag_message_word *file = index > 0 ? word - 1 : word;
    bool is_beside = text->bytes[word->end] == FRAG_MESSAGE_FOREIGN ||
                     (word->at > 0 && text->bytes[word->at - 1] == FRAG_MESSAGE_FOREIGN);
    if (is_beside && word->amount.bytes < BARE_SIZE_MIN)
        return true;
    static const char *const products[] = {"rtx", "gtx", "rx", "arc", "geforce", "quadro", "tesla"};
    for (size_t k = 0; k < sizeof products / sizeof *products && index > 0; k++)
        if (frag_message_word_is(text, word - 1, products[k]))
            return true;
    bool is_line = word->at > 0 && text->bytes[word->at - 1] == ':' &&
                   (text->bytes[word->end] == ']' || text->bytes[word->end] == '>');
    return (is_line && word->amount.bytes < BARE_SIZE_MIN) ||
           (word->at > 0 && text->bytes[word->at - 1] == '#') || text->bytes[word->end] == 'x' ||
           (file->end + 1 == word->at && strchr("(:", text->bytes[file->end]) != NULL &&
            file->at > 0 && text->bytes[file->at - 1] == '.' &&
            (text->marks[file->at] & FRAG_MESSAGE_WORD) == 0);
}

/* "max seq len (60000)", "max_num_batched_tokens=8192", "process 4242": not of bytes */
static bool is_counted(const frag_message_text *text, const frag_message_word *words, size_t count,
                       size_t index)
{
    static const char *const counted[] = {"seq",     "sequence", "len",   "tokens", "batch",
                                          "blocks",  "layers",   "slots", "images", "steps",
                                          "context", "pages",    "tile",  "tiles"};
    if (index > 0 && (frag_message_word_is(text, &words[index - 1], "process") ||
                      frag_message_word_is(text, &words[index - 1], "pid")))
        return true;
    size_t from = index > WORDS_BEFORE ? index - WORDS_BEFORE : 0;
    for (size_t i = from; i < count && i <= index + 1; i++)
        for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
            if (i != index && frag_message_word_is(text, &words[i], counted[k]) &&
                !has_sign(text, words[i < index ? i : index].end, words[i < index ? index : i].at,
                          ",;.\n"))
                return words[index].amount.bytes < BARE_SIZE_MIN;
    return false;
}

/* "required=8589934592 headroom=268435456": of bytes as is the one before it, unless its key is
 * that of a process or a time */
static bool is_keyed(const frag_message_text *text, const frag_message_word *words, size_t index)
{
    static const char *const others[] = {"pid", "tid",  "id",   "seed", "time", "ts",
                                         "ptr", "addr", "hash", "step", "at"};
    frag_figure figure = FRAG_FIGURE_REQUESTED;
    if (index < 3 || text->bytes[words[index].at - 1] != '=' ||
        text->bytes[words[index - 2].at - 1] != '=' || !is_big_number(&words[index]) ||
        strncmp(text->bytes + words[index].at, "0x", 2) == 0 || !is_big_number(&words[index - 2]))
        return false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (frag_message_word_is(text, &words[index - 1], others[k]))
            return false;
    return label_of(text, &words[index - 3], &figure);
}

/* "Requested 17476.96875": no number of bytes has decimals, so these are megabytes. */
static void read_decimals(const frag_message_text *text, const frag_message_word *word,
                          frag_amount *amount)
{
    enum { DIGITS_MAX = 24, WHOLE_MIN = 100 };
    static const char digits[] = "0123456789";
    char number[DIGITS_MAX + sizeof "mb"];
    const char *bytes = text->bytes + word->at;
    size_t whole = strspn(bytes, digits);
    size_t decimals = bytes[whole] == '.' ? strspn(bytes + whole + 1, digits) : 0;
    bool is_round = strspn(bytes + whole + 1, "0") == decimals; /* "8589934592.0" */
    if (decimals == 0 || is_round || whole + 1 + decimals > DIGITS_MAX || amount->bytes < WHOLE_MIN)
        return;
    memcpy(number, bytes, whole + 1 + decimals);
    memcpy(number + whole + 1 + decimals, "mb", sizeof "mb");
    frag_message_size(number, amount);
}

/* "system RAM free: 23 GB": of the computer */
static bool is_of_computer(const frag_message_text *text, const frag_message_word *words,
                           size_t index)
{
    static const char *const names[] = {"ram", "system", "host", "swap"};
    for (size_t i = index; i > 0 && i + WORDS_BEFORE > index; i--) {
        if (has_sign(text, words[i - 1].end, words[i].at, ",;.|\n"))
            break;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (frag_message_word_is(text, &words[i - 1], names[k]))
                return i < 2 || (words[i - 2].kinds & FRAG_WORD_DEVICE) == 0; /* "GPU RAM" */
    }
    return false;
}

static void add(frag_message *message, frag_message_quantity quantity)
{
    for (uint32_t i = 0; i < message->size_count; i++) {
        const frag_message_quantity *other = &message->sizes[i];
        if (other->amount.bytes == quantity.amount.bytes &&
            other->is_labelled == quantity.is_labelled && other->figure == quantity.figure)
            return;
    }
    if (message->size_count < FRAG_MESSAGE_SIZES)
        message->sizes[message->size_count++] = quantity;
}

void frag_message_quantities(const frag_message_text *text, size_t from, size_t to,
                             frag_message *message)
{
    frag_message_word words[FRAG_MESSAGE_WORDS_MAX];
    size_t count = from < to ? frag_message_words(text, from, to, words) : 0;
    for (size_t i = 0; i < count; i++) {
        frag_message_quantity quantity = {.amount = words[i].amount};
        bool is_size = (words[i].kinds & FRAG_WORD_SIZE) != 0;
        bool is_number = (words[i].kinds & FRAG_WORD_NUMBER) != 0;
        if ((!is_size && !is_number) || !quantity.amount.is_known ||
            (is_number && is_no_number(text, words, i)))
            continue;
        bool is_whole = false;
        size_t other = is_amount(&words[i]) ? part_of(text, words, count, i, &is_whole) : i;
        bool named = is_named(text, words, i) && !is_of_list(text, words, count, i);
        size_t label = i - has_unit_before(text, words, i);
        quantity.is_labelled =
            (named && label_before(text, words, count, label, &quantity.figure)) ||
            ((is_size || !named) && label_behind(text, words, count, i, &quantity.figure)) ||
            (!named && label_before(text, words, count, i, &quantity.figure)) ||
            (is_size && is_of_allocation(text, words, i)) || is_argument(text, words, i);
        if (other != i && is_whole) {
            quantity.is_labelled = true;
            quantity.figure = FRAG_FIGURE_TOTAL;
        } else if (other != i && !quantity.is_labelled) {
            quantity.is_labelled = label_behind(text, words, count, other, &quantity.figure);
        } else if (!quantity.is_labelled && i + 1 < count) {
            /* "a working set (5 GB) exceeds free VRAM" */
            quantity.is_labelled = (words[i + 1].kinds & FRAG_WORD_EXCEED) != 0 && is_size;
        }
        if (is_size && is_needed(text, words, i))
            quantity.figure = FRAG_FIGURE_REQUESTED;
        if (is_size && is_excess(text, words, count, i)) {
            quantity.is_labelled = true;
            quantity.figure = FRAG_FIGURE_EXCESS;
        }
        if (is_size && !quantity.is_labelled && is_of_card(text, words, i)) {
            quantity.is_labelled = true;
            quantity.figure = FRAG_FIGURE_TOTAL;
        }
        frag_figure part;
        if (label_of_sum(text, words, count, i, &part)) {
            quantity.is_labelled = true;
            quantity.figure = part;
        }
        if (quantity.is_labelled && quantity.figure != FRAG_FIGURE_REQUESTED &&
            message->kind != FRAG_MESSAGE_HOST && is_of_computer(text, words, i))
            quantity.is_labelled = false;
        if (!quantity.is_labelled)
            quantity.figure = FRAG_FIGURE_REQUESTED;
        bool is_bytes = is_size || (other != i && (words[other].kinds & FRAG_WORD_SIZE) != 0) ||
                        is_of_memory(text, words, i) || is_of_pair(text, words, count, i) ||
                        is_keyed(text, words, i) ||
                        (quantity.is_labelled && quantity.amount.bytes >= BARE_BYTES_MIN &&
                         !is_numbered(text, words, i) && !is_card_name(text, words, count, i) &&
                         !is_counted(text, words, count, i));
        if (is_bytes && is_number)
            read_decimals(text, &words[i], &quantity.amount);
        if (is_bytes)
            add(message, quantity);
    }
}

/* "  file: src/grid.cu:77": begins with a key, and tells no failure */
static bool has_key(const frag_message_text *text, size_t from, size_t to)
{
    frag_message_split_line read;
    frag_message_line_read(&read, text, from, to);
    bool is_key = false;
    for (size_t i = 0; i < KEY - 1 && i + 1 < read.count; i++)
        is_key |= strchr(":=", text->bytes[read.words[i].end]) != NULL;
    return is_key && (read.kinds & (FRAG_WORD_FAIL | FRAG_WORD_ERROR)) == 0;
}

/* "  free: 100 MB", "free=3418 total=3424": nothing but figures by their names */
static bool is_list(const frag_message_text *text, size_t from, size_t to)
{
    frag_message_split_line read;
    frag_message_line_read(&read, text, from, to);
    size_t values = 0;
    size_t names = 0; /* words since the last value */
    size_t first = 0; /* behind the date and time of a log */
    while (first + 1 < read.count && frag_message_line_has(&read, first, FRAG_WORD_NUMBER) &&
           strchr("-:.,/]+tz", text->bytes[read.words[first].end]) != NULL)
        first++;
    for (size_t i = first; i < read.count && names <= KEY; i++) {
        names++;
        if (!frag_message_line_has(&read, i, FRAG_WORD_NUMBER | FRAG_WORD_SIZE))
            continue;
        char sign = i > first ? text->bytes[read.words[i - 1].end] : '\0';
        if (sign != ':' && sign != '=')
            return false;
        values++;
        names = 0;
    }
    const uint32_t others = FRAG_WORD_FAIL | FRAG_WORD_ERROR | FRAG_WORD_HOST;
    return values > 0 && names < KEY && (read.kinds & others) == 0;
}

size_t frag_message_quantities_below(const frag_message_text *text, size_t end,
                                     frag_message *message)
{
    size_t at = end;
    for (size_t i = 0; i < LIST_MAX && text->bytes[at] == '\n'; i++) {
        size_t from = at + 1;
        uint64_t owner = frag_message_text_owner(text, from);
        at = frag_message_text_line_end(text, from, LIST_LINE);
        bool is_other = owner != message->owner && owner != 0 && message->owner != 0;
        if (is_other || !has_key(text, from, at))
            break;
        if (!is_list(text, from, at))
            continue;
        frag_message_quantities(text, from, at, message);
        end = at;
    }
    return end;
}

/* "GPU 0", "deviceId: [0]", "cuda:1", "dev 0": does the word i name a device by its number? */
static bool is_device(const frag_message_split_line *read, size_t i, uint64_t *device)
{
    static frag_word_list names = {"gpu", "device", "dev", "npu", "xpu", "vulkan", NULL};
    static frag_word_list apis = {"cuda", "hip", NULL};
    static frag_word_list keys = {"id", "index", "ordinal", NULL};
    static frag_word_list counts = {"num", "n", "number", "count", "max", "per", "total", NULL};
    const char *bytes = read->text->bytes;
    const unsigned char *marks = read->text->marks;
    bool is_api = frag_message_line_is_any(read, i, apis);
    size_t last = frag_message_line_is_any(read, i + 1, keys) ? i + 1 : i;
    if ((!is_api && !frag_message_line_is_any(read, i, names)) ||
        !frag_message_line_has(read, last + 1, FRAG_WORD_NUMBER) ||
        frag_message_line_is_any(read, i - 1, counts))
        return false;
    bool is_place = i > 0 && read->words[i - 1].end == read->words[i].at && /* "CreateGPU:50" */
                    (marks[read->words[i].at] & FRAG_MESSAGE_WORD) == 0;
    size_t sign = read->words[last].end;
    size_t number = read->words[last + 1].at;
    bool is_joined = is_api ? number == sign + 1 && bytes[sign] == ':'
                            : strspn(bytes + sign, ":=[#\"") >= number - sign;
    /* "2x", "0.8", "01:00.0" go on */
    size_t end = read->words[last + 1].end;
    bool is_dotted = (bytes[end] == '.' || bytes[end] == ':') && bytes[end + 1] >= '0' &&
                     bytes[end + 1] <= '9' && (marks[end + 1] & FRAG_MESSAGE_WORD) == 0;
    bool goes_on = bytes[end] == '%' || bytes[end] == '/' || is_dotted ||
                   (bytes[end] >= 'a' && bytes[end] <= 'z');
    *device = read->words[last + 1].amount.bytes;
    return *device < DEVICES_MAX && !is_place && is_joined &&
           (!goes_on || (marks[end] & FRAG_MESSAGE_WORD) != 0);
}

bool frag_message_device(const frag_message_text *text, size_t from, size_t to, uint64_t *device)
{
    frag_message_split_line read;
    frag_message_line_read(&read, text, from, to);
    for (size_t i = 0; i + 1 < read.count; i++)
        if (is_device(&read, i, device))
            return true;
    return false;
}
