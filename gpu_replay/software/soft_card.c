/* The card that the settings describe. What they leave open follows from the compute capability, as
 * in the table of technical specifications of NVIDIA's CUDA C++ programming guide; what that leaves
 * open is a large data-centre card's. */
#include "gpu_replay/software/soft_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"

/* From this compute capability on. */
typedef struct generation {
    uint32_t compute_capability;
    uint32_t threads;
    uint32_t blocks;
    uint32_t shared_kib;
    uint32_t shared_opt_in_kib;
} generation;

static const generation generations[] = {
    {50, 2048, 32, 64, 48},   {52, 2048, 32, 96, 48},    {53, 2048, 32, 64, 48},
    {60, 2048, 32, 64, 48},   {61, 2048, 32, 96, 48},    {62, 2048, 32, 64, 48},
    {70, 2048, 32, 96, 96},   {75, 1024, 16, 64, 64},    {80, 2048, 32, 164, 163},
    {86, 1536, 16, 100, 99},  {87, 1536, 16, 164, 163},  {89, 1536, 24, 100, 99},
    {90, 2048, 32, 228, 227}, {100, 2048, 32, 228, 227}, {110, 1536, 24, 228, 227},
    {120, 1536, 24, 100, 99},
};

static const generation *find_generation(uint32_t compute_capability)
{
    const generation *found = &generations[0];
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (generations[i].compute_capability <= compute_capability)
            found = &generations[i];
    return found;
}

static void fill_in(uint32_t *field, uint32_t usual)
{
    if (*field == 0)
        *field = usual;
}

static void complete(frag_software_card *card)
{
    const generation *usual = find_generation(card->compute_capability);
    if (card->name[0] == '\0')
        snprintf(card->name, sizeof card->name, "Software GPU");
    fill_in(&card->multiprocessor_count, 108);
    fill_in(&card->threads_per_multiprocessor, usual->threads);
    fill_in(&card->blocks_per_multiprocessor, usual->blocks);
    fill_in(&card->registers_per_multiprocessor, 65536);
    fill_in(&card->shared_bytes_per_block, 48 * (uint32_t)FRAG_KIB);
    fill_in(&card->shared_bytes_per_block_opt_in, usual->shared_opt_in_kib * (uint32_t)FRAG_KIB);
    fill_in(&card->shared_bytes_per_multiprocessor, usual->shared_kib * (uint32_t)FRAG_KIB);
    fill_in(&card->clock_khz, 1410000);
    fill_in(&card->memory_clock_khz, 1215000);
    fill_in(&card->memory_bus_bits, 5120);
    if (card->l2_bytes == 0)
        card->l2_bytes = 40 * FRAG_MIB;
}

uint32_t frag_soft_device_of_card(uint32_t card)
{
    uint32_t device = 0;
    while (device + 1 < FRAG_SOFT_DEVICES_MAX && frag_soft.card_of[device] != card)
        device++;
    return device;
}

/* "3", or "GPU-" and the first digits of what identifies a card and no other. */
static bool read_card(const char *text, size_t length, uint32_t *card)
{
    static const char common[] = "GPU-736f6674-7761-7265-2d64-6576696365"; /* two digits follow */
    enum { COMMON = sizeof common - 1 };
    char *end = NULL;
    if (length > 0 && text[0] >= '0' && text[0] <= '9') {
        unsigned long number = strtoul(text, &end, 10);
        *card = (uint32_t)number;
        return end == text + length && number < FRAG_SOFT_DEVICES_MAX;
    }
    *card = 0;
    if (length < 4 || strncmp(text, common, length < COMMON ? length : COMMON) != 0)
        return false;
    if (length == COMMON + 2) {
        *card = (uint32_t)strtoul(text + COMMON, &end, 16);
        return end == text + length && *card < frag_soft.card_count;
    }
    return length <= COMMON && frag_soft.card_count == 1;
}

/* The real driver takes what stands before the first name that is wrong, and nothing when a card is
 * named twice. */
static uint32_t read_visible(const char *visible, uint32_t cards[FRAG_SOFT_DEVICES_MAX])
{
    uint32_t count = 0;
    bool is_taken[FRAG_SOFT_DEVICES_MAX] = {false};
    while (count < FRAG_SOFT_DEVICES_MAX) {
        uint32_t card = 0;
        visible += strspn(visible, " ");
        size_t length = strcspn(visible, ", ");
        if (!read_card(visible, length, &card))
            break;
        if (is_taken[card])
            return 0;
        is_taken[card] = true;
        cards[count++] = card;
        visible += length;
        visible += strspn(visible, " ");
        if (*visible++ != ',')
            break;
    }
    return count;
}

void frag_soft_cards_choose(const char *visible)
{
    frag_soft_settings *settings = &frag_soft.settings;
    uint64_t capacity_bytes[FRAG_SOFT_DEVICES_MAX];
    bool is_taken[FRAG_SOFT_DEVICES_MAX] = {false};
    uint32_t place = settings->device_count;
    frag_soft.card_count = settings->device_count;
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++)
        frag_soft.card_of[d] = d;
    if (visible == NULL || settings->device_count == 0)
        return;
    place = settings->device_count = read_visible(visible, frag_soft.card_of);
    for (uint32_t d = 0; d < place; d++) {
        uint32_t card = frag_soft.card_of[d];
        is_taken[card] = true;
        frag_soft.card_count = card >= frag_soft.card_count ? card + 1 : frag_soft.card_count;
    }
    for (uint32_t card = 0; card < FRAG_SOFT_DEVICES_MAX; card++)
        if (!is_taken[card])
            frag_soft.card_of[place++] = card;
    memcpy(capacity_bytes, settings->capacity_bytes, sizeof capacity_bytes);
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++)
        settings->capacity_bytes[d] = capacity_bytes[frag_soft.card_of[d]];
}

void frag_soft_cards_start(void)
{
    const frag_soft_settings *settings = &frag_soft.settings;
    for (uint32_t d = 0; d < FRAG_SOFT_DEVICES_MAX; d++) {
        frag_software_card *card = &frag_soft.cards[d];
        *card = settings->card;
        complete(card);
        memcpy(card->uuid, "software-device", sizeof card->uuid - 1);
        card->uuid[sizeof card->uuid - 1] = (unsigned char)frag_soft.card_of[d];
        card->capacity_bytes = settings->capacity_bytes[d];
        card->context_bytes = settings->context_bytes;
        card->reserved_bytes = settings->reserved_bytes;
    }
}

/* ---- what programs ask by number; runtime and driver number alike */

typedef struct attribute {
    int32_t number;
    int32_t value;
} attribute;

/* Limits and abilities that all cards since 2017 share. Everything else is 0. */
static const attribute attributes[] = {
    {1, 1024},                                     /* threads of a block */
    {2, 1024},                                     /* and its three dimensions */
    {3, 1024},        {4, 64},    {5, 2147483647}, /* dimensions of a grid */
    {6, 65535},       {7, 65535},                  /* */
    {9, 65536},                                    /* constant memory */
    {10, 32},                                      /* threads of a warp */
    {11, 2147483647},                              /* pitch of a copy */
    {12, 65536},                                   /* registers of a block */
    {14, 512},                                     /* alignment of textures */
    {15, 1},                                       /* copies beside kernels */
    {19, 1},                                       /* maps host memory */
    {31, 1},                                       /* concurrent kernels */
    {32, 1},                                       /* ECC */
    {40, 3},                                       /* copy engines */
    {41, 1},                                       /* unified addresses */
    {78, 1},                                       /* stream priorities */
    {79, 1},          {80, 1},                     /* caches in L1 */
    {83, 1},                                       /* managed memory */
    {89, 1},                                       /* managed memory on both sides at once */
    {90, 1},                                       /* preemption of computing */
    {95, 1},                                       /* cooperative launch */
    {99, 1},                                       /* registers host memory */
    {102, 1},                                      /* virtual memory management */
    {103, 1},                                      /* exports memory as a file descriptor */
    {110, 1},                                      /* GPUDirect RDMA with virtual memory */
    {115, 1},                                      /* memory pools */
    {119, 1},                                      /* registers read-only host memory */
};

static bool of_card(const frag_software_card *card, int32_t number, uint64_t *value)
{
    const struct {
        int32_t number;
        uint64_t value;
    } known[] = {
        {8, card->shared_bytes_per_block},
        {13, card->clock_khz},
        {16, card->multiprocessor_count},
        {36, card->memory_clock_khz},
        {37, card->memory_bus_bits},
        {38, card->l2_bytes},
        {39, card->threads_per_multiprocessor},
        {75, card->compute_capability / 10},
        {76, card->compute_capability % 10},
        {81, card->shared_bytes_per_multiprocessor},
        {82, card->registers_per_multiprocessor},
        {97, card->shared_bytes_per_block_opt_in},
        {106, card->blocks_per_multiprocessor},
        {120, card->compute_capability >= 90}, /* clusters of blocks */
        {127, card->compute_capability >= 90}, /* descriptors of tensors */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].number != number)
            continue;
        *value = known[i].value;
        return true;
    }
    return false;
}

int32_t frag_soft_attribute(int32_t number, uint32_t device)
{
    enum { PCI_BUS = 33 };
    uint64_t value = 0;
    if (number == PCI_BUS)
        return 1 + (int32_t)device;
    if (of_card(&frag_soft.cards[device], number, &value))
        return (int32_t)value;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].number == number)
            return attributes[i].value;
    return 0;
}

/* ---- limits: stack, printf, heap, synchronisation and launch depth, L2 fetches, and three that
 * are off. As a real card answers before anything was set; what is set is kept for the process. */

#define UNSUPPORTED_LIMIT 215
static size_t limits[] = {1024, FRAG_MIB, 8 * FRAG_MIB, 2, 2048, 128, 0, 0, 0};

static int32_t exchange_limit(int32_t limit, size_t *value, bool is_set)
{
    int32_t result = 0;
    bool is_known = limit >= 0 && (size_t)limit < sizeof limits / sizeof limits[0];
    frag_soft_enter(&result);
    if (is_set && is_known && result == FRAG_CUDA_OK)
        limits[limit] = *value;
    else if (!is_set)
        *value = is_known ? limits[limit] : 0;
    frag_soft_leave();
    if (result == FRAG_CUDA_OK && !is_known)
        result = UNSUPPORTED_LIMIT;
    return result;
}

int32_t frag_soft_limit_get(int32_t limit, size_t *value)
{
    return exchange_limit(limit, value, false);
}

int32_t frag_soft_limit_set(int32_t limit, size_t value)
{
    return exchange_limit(limit, &value, true);
}

/* ---- kernels: none is looked into, so each is what a simple one would be */

#define REGISTERS_OF_KERNEL 32
#define SHARED_BYTES_RESERVED 1024u /* of each block, from compute capability 8.0 on */

/* A card runs the code of the nearest older capability that PyTorch's wheels hold code for: an 8.9
 * runs that of 8.6. CUB compares the answer with the list that it was built for, and fails if it is
 * not there. */
static int32_t code_capability(const frag_software_card *card)
{
    static const int32_t built[] = {50, 60, 70, 75, 80, 86, 90, 100, 120};
    int32_t own = (int32_t)card->compute_capability;
    int32_t found = own;
    for (size_t i = 0; i < sizeof built / sizeof built[0]; i++)
        if (built[i] <= own)
            found = built[i];
    return found;
}

int32_t frag_soft_function_attribute(int32_t number)
{
    const frag_software_card *card = &frag_soft.cards[frag_soft_device_current()];
    switch (number) {
    case FRAG_FUNCTION_THREADS:
        return 1024;
    case FRAG_FUNCTION_REGISTERS:
        return REGISTERS_OF_KERNEL;
    case FRAG_FUNCTION_PTX:
    case FRAG_FUNCTION_BINARY:
        return code_capability(card);
    case FRAG_FUNCTION_DYNAMIC_SHARED:
        return (int32_t)card->shared_bytes_per_block;
    default:
        return 0;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int32_t frag_soft_occupancy(int32_t threads, uint64_t shared_bytes)
{
    enum { WARP = 32 };
    const frag_software_card *card = &frag_soft.cards[frag_soft_device_current()];
    if (threads <= 0 || threads > 1024 || shared_bytes > card->shared_bytes_per_block_opt_in)
        return 0;
    uint64_t rounded = frag_align_up((uint64_t)threads, WARP);
    uint64_t reserved = card->compute_capability >= 80 ? SHARED_BYTES_RESERVED : 0;
    uint64_t blocks =
        least(card->blocks_per_multiprocessor, card->threads_per_multiprocessor / rounded);
    blocks = least(blocks, card->registers_per_multiprocessor / (rounded * REGISTERS_OF_KERNEL));
    if (shared_bytes + reserved > 0)
        blocks = least(blocks, card->shared_bytes_per_multiprocessor / (shared_bytes + reserved));
    return (int32_t)blocks;
}

uint64_t frag_soft_shared_left(int32_t block_count)
{
    const frag_software_card *card = &frag_soft.cards[frag_soft_device_current()];
    uint64_t reserved = card->compute_capability >= 80 ? SHARED_BYTES_RESERVED : 0;
    uint64_t share =
        card->shared_bytes_per_multiprocessor / (block_count > 0 ? (uint64_t)block_count : 1);
    return least(share > reserved ? share - reserved : 0, card->shared_bytes_per_block_opt_in);
}

const frag_software_card *frag_software_get_card(int device)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    bool is_there = device >= 0 && device < (int)frag_soft.settings.device_count;
    frag_soft_leave();
    return is_there ? &frag_soft.cards[device] : NULL;
}
