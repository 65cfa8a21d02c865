#include "sim/device/card_table.h"

#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/data_folder.h"

#define FOLDER "devices"
#define SUFFIX ".yaml"

static bool is_file_name(const char *name)
{
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static bool take_card(char *name)
{
    bool ok = is_file_name(name);
    if (ok)
        name[strlen(name) - strlen(SUFFIX)] = '\0';
    return ok;
}

char **frag_card_names(size_t *count, frag_error *error)
{
    char *folder = frag_data_find(FOLDER);
    char **names = folder != NULL ? frag_folder_names(folder, take_card, count) : NULL;
    frag_free(folder);
    if (names == NULL) {
        *count = 0;
        frag_fail(error, FRAG_E_SYSTEM,
                  "the folder " FOLDER "/ is not beside the program; run 'make install'");
    }
    return names;
}

/* ---- names as people write them */

#define PLAIN_NAME_BYTES 64u

/* Letters and digits alone, small, without the maker and the family: "RTX 4090", "rtx-4090" and
 * "NVIDIA GeForce RTX 4090" are one name. */
static void plain_name(const char *name, char plain[PLAIN_NAME_BYTES])
{
    static const char *const families[] = {"nvidia", "amd",      "geforce",
                                           "tesla",  "instinct", "jetson"};
    size_t length = 0;
    for (; *name != '\0' && length + 1 < PLAIN_NAME_BYTES; name++)
        if (isalnum((unsigned char)*name))
            plain[length++] = (char)tolower((unsigned char)*name);
    plain[length] = '\0';
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t bytes = strlen(families[i]);
        if (strncmp(plain, families[i], bytes) == 0 && length > bytes) {
            memmove(plain, plain + bytes, length - bytes + 1);
            length -= bytes;
        }
    }
}

static bool has_name(const frag_card_aliases *names, const char *wanted)
{
    char plain[PLAIN_NAME_BYTES];
    for (uint32_t i = 0; i < names->count; i++) {
        plain_name(names->names[i], plain);
        if (strcmp(plain, wanted) == 0)
            return true;
    }
    return false;
}

typedef struct card_table {
    char **names;
    frag_device_description *cards; /* in the order of the names */
    size_t count;
} card_table;

static void destroy_table(card_table *table)
{
    frag_folder_names_destroy(table->names, table->count);
    frag_free(table->cards);
}

static bool load_file(const char *name, frag_device_description *card, frag_error *error)
{
    frag_text relative = {.bytes = NULL};
    frag_text_add(&relative, FOLDER "/%s" SUFFIX, name);
    char *path = frag_data_find(relative.bytes);
    frag_text_destroy(&relative);
    bool ok = path != NULL && frag_device_description_load(path, card, error);
    frag_free(path);
    return ok;
}

static bool load_table(card_table *table, frag_error *error)
{
    *table = (card_table){.names = NULL};
    table->names = frag_card_names(&table->count, error);
    if (table->names == NULL)
        return false;
    table->cards = frag_alloc(table->count, sizeof *table->cards);
    for (size_t i = 0; i < table->count; i++)
        if (!load_file(table->names[i], &table->cards[i], error)) {
            destroy_table(table);
            return false;
        }
    return true;
}

/* The number of the card that a plain name is of; the count: of none. */
static size_t find_card(const card_table *table, const char *wanted)
{
    char plain[PLAIN_NAME_BYTES];
    for (size_t i = 0; i < table->count; i++) {
        plain_name(table->names[i], plain);
        if (strcmp(plain, wanted) == 0)
            return i;
        plain_name(table->cards[i].name, plain);
        if (strcmp(plain, wanted) == 0 || has_name(&table->cards[i].aliases, wanted))
            return i;
    }
    size_t number = 0;
    while (number < table->count && !has_name(&table->cards[number].meanings, wanted))
        number++;
    return number;
}

/* "'a100' is taken for a100-40gb; there is a100-80gb too". Nothing where the name is of one card.
 */
static void note_choice(const card_table *table, size_t chosen, const char *name,
                        const char *wanted, frag_text *note)
{
    char plain[PLAIN_NAME_BYTES];
    if (note == NULL || !has_name(&table->cards[chosen].meanings, wanted))
        return;
    plain_name(table->names[chosen], plain);
    if (strcmp(plain, wanted) == 0)
        frag_text_add(note, "'%s' is %s", name, table->cards[chosen].name);
    else
        frag_text_add(note, "'%s' is taken for %s", name, table->names[chosen]);
    size_t others = 0;
    for (size_t i = 0; i < table->count; i++) {
        plain_name(table->names[i], plain);
        if (i != chosen && strstr(plain, wanted) != NULL)
            frag_text_add(note, "%s%s", others++ == 0 ? "; other cards of that name: " : ", ",
                          table->names[i]);
    }
}

/* "24GiB", "24G": where a size may be given instead of a card, only one that is not well written
 * comes here. */
static bool is_like_size(const char *name)
{
    size_t digits = strspn(name, "0123456789.");
    const char *unit = name + digits + strspn(name + digits, " ");
    size_t letters = strspn(unit, "KMGTkmgtIiBb");
    return digits > 0 && letters > 0 && unit[letters] == '\0';
}

static bool fail_unknown(const card_table *table, const char *name, frag_error *error)
{
    uint64_t bytes = 0;
    if (is_like_size(name))
        return frag_bytes_parse(name, &bytes, error) &&
               frag_fail(error, FRAG_E_USAGE,
                         "'%s' is a size; expected a card that 'fraglab device list' prints, or "
                         "the size as --capacity",
                         name);
    size_t length = strlen(name);
    enum { GIB_DIGITS_MAX = 3, BYTES_DIGITS_MIN = 9 };
    bool is_number = length > 0 && strspn(name, "0123456789.") == length;
    if (is_number && (length <= GIB_DIGITS_MAX || length >= BYTES_DIGITS_MIN))
        return frag_fail(error, FRAG_E_USAGE,
                         "no card is called '%s'; if it is a size, write its unit too: %s%s", name,
                         name, length <= GIB_DIGITS_MAX ? "GiB" : "B");
    size_t capacity = 0;
    size_t count = 0;
    const char **names = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const frag_device_description *card = &table->cards[i];
        names = frag_grow(names, &capacity, count + 1 + card->aliases.count + card->meanings.count,
                          sizeof *names);
        names[count++] = table->names[i];
        for (uint32_t k = 0; k < card->aliases.count; k++)
            names[count++] = card->aliases.names[k];
        for (uint32_t k = 0; k < card->meanings.count; k++)
            names[count++] = card->meanings.names[k];
    }
    const char *nearest = frag_nearest_name(name, names, count);
    if (nearest != NULL)
        frag_fail(error, FRAG_E_USAGE, "no card is called '%s'; did you mean %s?", name, nearest);
    else
        frag_fail(error, FRAG_E_USAGE,
                  "no card is called '%s'; 'fraglab device list' prints them, a file needs a slash "
                  "or .yaml in its name",
                  name);
    frag_free(names);
    return false;
}

bool frag_card_load(const char *name, frag_device_description *description, frag_text *note,
                    frag_error *error)
{
    char wanted[PLAIN_NAME_BYTES];
    card_table table;
    if (strchr(name, '/') != NULL || is_file_name(name) || strcmp(name, "-") == 0)
        return frag_device_description_load(name, description, error);
    /* As listed: the other files need not be read. */
    frag_error missing = {0};
    if (load_file(name, description, &missing))
        return true;
    if (!load_table(&table, error))
        return false;
    plain_name(name, wanted);
    size_t number = find_card(&table, wanted);
    bool is_known = number < table.count;
    if (is_known) {
        *description = table.cards[number];
        note_choice(&table, number, name, wanted, note);
    } else {
        fail_unknown(&table, name, error);
    }
    destroy_table(&table);
    return is_known;
}
