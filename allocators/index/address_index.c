#include "allocators/index/address_index.h"

enum {
    WIDTH = FRAG_ADDRESS_NODE_WIDTH,
    FILL_MIN = 5,    /* entries of a node that is no root */
    JOINED_MAX = 12, /* two nodes are joined up to here, so that the next few entries fit too */
    HALF = WIDTH / 2
};

#define NONE FRAG_ADDRESS_NONE
#define NODE_MAX (((uint32_t)1 << 28) - 1)

/* Leaves hold at least five holes each and inner nodes five children, so there are at most
 * n (1/5 + 1/25 + ...) = n/4 of them, and the roots. Places leave 28 bits to a node, enough for a
 * billion holes. */
static uint32_t node_max_of(uint32_t id_count, uint64_t index_count)
{
    uint64_t roots = index_count < id_count ? index_count : id_count;
    uint64_t count = id_count / 4 + roots + 1;
    return count < NODE_MAX ? (uint32_t)count : NODE_MAX;
}

size_t frag_address_index_store_bytes(uint32_t id_count, uint64_t index_count)
{
    size_t node_max = node_max_of(id_count, index_count);
    return node_max * sizeof(frag_address_node) + (node_max + id_count) * sizeof(uint32_t) + 2 * 64;
}

void frag_address_index_store_create(frag_address_index_store *store, frag_arena *arena,
                                     const frag_block *blocks, uint32_t id_count,
                                     uint64_t index_count, uint64_t unit)
{
    uint32_t node_max = node_max_of(id_count, index_count);
    FRAG_ASSERT(id_count <= UINT32_MAX - node_max && frag_is_power_of_two(unit));
    *store = (frag_address_index_store){.blocks = blocks,
                                        .node_max = node_max,
                                        .spare = NONE,
                                        .unit_log2 = frag_bit_low(unit),
                                        .id_count = id_count};
    store->nodes = frag_arena_take(arena, node_max, sizeof *store->nodes);
    store->places = frag_arena_take(arena, (size_t)node_max + id_count, sizeof *store->places);
}

static uint32_t take_node(frag_address_index_store *store)
{
    uint32_t at = store->spare;
    if (at != NONE) {
        store->spare = store->nodes[at].refs[0];
        store->nodes[at].refs[0] = 0;
        return at;
    }
    FRAG_ASSERT(store->node_count < store->node_max);
    return store->node_count++;
}

/* The node has no entries. */
static void give_node(frag_address_index_store *store, uint32_t at)
{
    store->nodes[at].refs[0] = store->spare;
    store->spare = at;
}

/* ---- entries of one node */

/* Entries lie without gaps, from 0 on. */
static inline uint32_t count_of(const frag_address_node *node)
{
    return frag_bit_low(~frag_lanes_above(&node->sizes, 0));
}

static int32_t largest_of(const frag_address_index_store *store, uint32_t at)
{
    return frag_lanes_largest(&store->nodes[at].sizes);
}

static inline void set_entry(frag_address_index_store *store, uint32_t at, uint32_t slot,
                             uint32_t ref, int32_t size)
{
    frag_address_node *node = &store->nodes[at];
    node->sizes.values[slot] = size;
    node->refs[slot] = ref;
    store->places[ref] = at * WIDTH + slot;
}

/* Puts an entry in front of the one in a slot of a node that has count and room for one more. */
static inline void insert_entry(frag_address_index_store *store, uint32_t at, uint32_t count,
                                uint32_t slot, uint32_t ref, int32_t size)
{
    const frag_address_node *node = &store->nodes[at];
    for (uint32_t i = count; i > slot; i--)
        set_entry(store, at, i, node->refs[i - 1], node->sizes.values[i - 1]);
    set_entry(store, at, slot, ref, size);
}

/* Takes one of count entries out. */
static inline void remove_entry(frag_address_index_store *store, uint32_t at, uint32_t count,
                                uint32_t slot)
{
    frag_address_node *node = &store->nodes[at];
    for (; slot + 1 < count; slot++)
        set_entry(store, at, slot, node->refs[slot + 1], node->sizes.values[slot + 1]);
    node->sizes.values[slot] = 0;
}

/* Moves one entry to a slot of another node. */
static void move_entry(frag_address_index_store *store, uint32_t from, uint32_t slot, uint32_t to,
                       uint32_t to_slot)
{
    const frag_address_node *node = &store->nodes[from];
    insert_entry(store, to, count_of(&store->nodes[to]), to_slot, node->refs[slot],
                 node->sizes.values[slot]);
    remove_entry(store, from, count_of(node), slot);
}

/* ---- changes */

/* The slot of the first entry that does not begin below the address. */
static uint32_t slot_of(const frag_address_index_store *store, uint32_t at, uint64_t address)
{
    const frag_address_node *node = &store->nodes[at];
    uint32_t slot = 0;
    for (; slot < WIDTH && node->sizes.values[slot] != 0; slot++) {
        uint32_t ref = node->refs[slot];
        while (ref < store->node_max)
            ref = store->nodes[ref].refs[0];
        if (store->blocks[ref - store->node_max].address >= address)
            break;
    }
    return slot;
}

/* The leaf and slot of the first hole that does not begin below the address; the slot behind the
 * last one of a leaf stands for the next leaf's first. */
static uint32_t locate(const frag_address_index *index, uint64_t address, uint32_t *slot)
{
    const frag_address_index_store *store = index->store;
    uint32_t at = index->root;
    for (;;) {
        *slot = slot_of(store, at, address);
        uint32_t child = store->nodes[at].refs[*slot == 0 ? 0 : *slot - 1];
        if (child >= store->node_max)
            return at;
        at = child;
    }
}

static void add_entry(frag_address_index *index, uint32_t at, uint32_t slot, uint32_t ref,
                      int32_t size);

/* The upper half of a full node becomes a node of its own, which is returned. */
static uint32_t split(frag_address_index *index, uint32_t at)
{
    frag_address_index_store *store = index->store;
    uint32_t upper = take_node(store);
    for (uint32_t i = WIDTH; i-- > HALF;)
        move_entry(store, at, i, upper, 0);
    if (store->places[at] == NONE) {
        index->root = take_node(store);
        store->places[index->root] = NONE;
        insert_entry(store, index->root, 0, 0, at, largest_of(store, at));
    } else {
        frag_address_node_raise(store, at);
    }
    uint32_t place = store->places[at];
    add_entry(index, place / WIDTH, place % WIDTH + 1, upper, largest_of(store, upper));
    return upper;
}

static void add_entry(frag_address_index *index, uint32_t at, uint32_t slot, uint32_t ref,
                      int32_t size)
{
    frag_address_index_store *store = index->store;
    uint32_t count = count_of(&store->nodes[at]);
    if (FRAG_UNLIKELY(count == WIDTH)) {
        uint32_t upper = split(index, at);
        count = HALF;
        at = slot > HALF ? upper : at;
        slot -= slot > HALF ? HALF : 0;
    }
    insert_entry(store, at, count, slot, ref, size);
    frag_address_node_raise(store, at);
}

void frag_address_index_insert(frag_address_index *index, uint32_t id)
{
    frag_address_index_store *store = index->store;
    const frag_block *block = &store->blocks[id];
    FRAG_ASSERT(id < store->id_count && block->bytes >> store->unit_log2 != 0);
    uint32_t slot = 0;
    uint32_t at = index->root;
    if (at == NONE) {
        at = take_node(store);
        store->places[at] = NONE;
        index->root = at;
    } else {
        at = locate(index, block->address, &slot);
    }
    add_entry(index, at, slot, store->node_max + id, frag_address_size_of(store, block->bytes));
}

/* Two neighbours of which one has too few entries become one, or share evenly. true: one. */
static bool balance(frag_address_index_store *store, uint32_t left, uint32_t right)
{
    uint32_t left_count = count_of(&store->nodes[left]);
    uint32_t all = left_count + count_of(&store->nodes[right]);
    bool is_joined = all <= JOINED_MAX;
    uint32_t wanted = is_joined ? all : all / 2;
    for (; left_count < wanted; left_count++)
        move_entry(store, right, 0, left, left_count);
    for (; left_count > wanted; left_count--)
        move_entry(store, left, left_count - 1, right, 0);
    return is_joined;
}

/* A root without entries is none, and one with a single child gives way to it. */
static void lower_root(frag_address_index *index)
{
    frag_address_index_store *store = index->store;
    uint32_t at = index->root;
    uint32_t count = count_of(&store->nodes[at]);
    uint32_t only = store->nodes[at].refs[0];
    if (count > 1 || (count == 1 && only >= store->node_max))
        return;
    index->root = NONE;
    if (count == 1) {
        index->root = only;
        store->places[only] = NONE;
        remove_entry(store, at, 1, 0);
    }
    give_node(store, at);
}

/* An entry has left the node, which may have too few now: sees to it, and upwards. */
static void refill(frag_address_index *index, uint32_t at)
{
    frag_address_index_store *store = index->store;
    uint32_t place = 0;
    while ((place = store->places[at]) != NONE && count_of(&store->nodes[at]) < FILL_MIN) {
        uint32_t slot = place % WIDTH;
        slot -= slot != 0;
        at = place / WIDTH;
        frag_address_node *node = &store->nodes[at];
        uint32_t left = node->refs[slot];
        uint32_t right = node->refs[slot + 1];
        bool is_joined = balance(store, left, right);
        node->sizes.values[slot] = largest_of(store, left);
        if (is_joined) {
            remove_entry(store, at, count_of(node), slot + 1);
            give_node(store, right);
        } else {
            node->sizes.values[slot + 1] = largest_of(store, right);
        }
    }
    if (place == NONE)
        lower_root(index);
    else
        frag_address_node_raise(store, at);
}

void frag_address_index_remove(frag_address_index *index, uint32_t id)
{
    frag_address_index_store *store = index->store;
    uint32_t ref = store->node_max + id;
    uint32_t at = store->places[ref] / WIDTH;
    uint32_t slot = store->places[ref] % WIDTH;
    FRAG_ASSERT(id < store->id_count && store->nodes[at].refs[slot] == ref);
    uint32_t count = count_of(&store->nodes[at]);
    remove_entry(store, at, count, slot);
    if (FRAG_LIKELY(count > FILL_MIN))
        frag_address_node_raise(store, at);
    else
        refill(index, at);
}

/* ---- searches */

/* The first hole of at least that size from a slot of a leaf on. */
static bool find_from(const frag_address_index_store *store, uint32_t at, uint32_t slot,
                      int32_t size, uint32_t *id)
{
    uint32_t mask = 0;
    for (;;) {
        mask = frag_lanes_above(&store->nodes[at].sizes, size - 1) >> slot << slot;
        uint32_t place = store->places[at];
        if (mask != 0)
            break;
        if (place == NONE)
            return false;
        at = place / WIDTH;
        slot = place % WIDTH + 1;
    }
    uint32_t ref = store->nodes[at].refs[frag_bit_low(mask)];
    while (ref < store->node_max) {
        const frag_address_node *node = &store->nodes[ref];
        ref = node->refs[frag_bit_low(frag_lanes_above(&node->sizes, size - 1))];
    }
    *id = ref - store->node_max;
    return true;
}

/* The same, by bytes. */
static bool find_bytes_from(const frag_address_index_store *store, uint32_t at, uint32_t slot,
                            uint64_t bytes, uint32_t *id)
{
    int32_t size = frag_address_size_of(store, bytes);
    FRAG_ASSERT(size > 0);
    while (find_from(store, at, slot, size, id)) {
        if (size < FRAG_ADDRESS_SIZE_MAX || store->blocks[*id].bytes >= bytes)
            return true;
        uint32_t place = store->places[store->node_max + *id];
        at = place / WIDTH;
        slot = place % WIDTH + 1;
    }
    return false;
}

bool frag_address_index_above(const frag_address_index *index, uint64_t bytes, uint32_t id,
                              uint32_t *found)
{
    const frag_address_index_store *store = index->store;
    uint32_t place = store->places[store->node_max + id];
    return find_bytes_from(store, place / WIDTH, place % WIDTH + 1, bytes, found);
}

bool frag_address_index_next(const frag_address_index *index, uint64_t bytes, uint64_t from,
                             uint32_t *id)
{
    if (index->root == NONE)
        return false;
    uint32_t slot = 0;
    uint32_t at = locate(index, from, &slot);
    return find_bytes_from(index->store, at, slot, bytes, id) ||
           frag_address_index_first(index, bytes, id);
}

bool frag_address_index_largest(const frag_address_index *index, uint64_t bytes, uint32_t *id)
{
    const frag_address_index_store *store = index->store;
    if (index->root == NONE)
        return false;
    uint64_t unit = (uint64_t)1 << store->unit_log2;
    int32_t size = frag_lanes_largest(&store->nodes[index->root].sizes);
    bool is_there = frag_address_index_first(index, (uint64_t)size << store->unit_log2, id);
    for (uint32_t next = *id; is_there && size == FRAG_ADDRESS_SIZE_MAX; *id = next)
        if (!frag_address_index_above(index, store->blocks[*id].bytes + unit, *id, &next))
            break;
    return is_there && store->blocks[*id].bytes >= bytes;
}

void frag_address_index_visit(const frag_address_index *index, frag_address_index_visitor *visit,
                              void *context)
{
    uint32_t id = 0;
    uint64_t unit = (uint64_t)1 << index->store->unit_log2;
    bool is_there = frag_address_index_first(index, unit, &id);
    for (; is_there; is_there = frag_address_index_above(index, unit, id, &id))
        visit(context, id);
}

/* ---- audit */

typedef struct index_audit {
    const frag_address_index_store *store;
    uint64_t reached; /* where the hole before ends */
    uint32_t node_count;
    uint32_t leaf_depth; /* of the first leaf; 0: none was seen yet */
    frag_error *error;
} index_audit;

static bool check_node(index_audit *audit, uint32_t at, uint32_t place, uint32_t depth);

/* Audits a hole, or what is below a child. */
static bool check_entry(index_audit *audit, uint32_t at, uint32_t slot, uint32_t depth)
{
    const frag_address_index_store *store = audit->store;
    const frag_address_node *node = &store->nodes[at];
    uint32_t ref = node->refs[slot];
    if (ref >= store->node_max + store->id_count || store->places[ref] != at * WIDTH + slot)
        return frag_fail(audit->error, FRAG_E_INPUT,
                         "address index: entry %u of node %u does not know its place", slot, at);
    int32_t size = 0;
    if (ref < store->node_max) {
        if (!check_node(audit, ref, at * WIDTH + slot, depth + 1))
            return false;
        size = largest_of(store, ref);
    } else {
        const frag_block *block = &store->blocks[ref - store->node_max];
        if (block->address < audit->reached)
            return frag_fail(audit->error, FRAG_E_INPUT, "address index: hole %u is out of order",
                             ref - store->node_max);
        audit->reached = block->address + block->bytes;
        size = frag_address_size_of(store, block->bytes);
    }
    return node->sizes.values[slot] == size ||
           frag_fail(audit->error, FRAG_E_INPUT,
                     "address index: entry %u of node %u has another size", slot, at);
}

static bool check_node(index_audit *audit, uint32_t at, uint32_t place, uint32_t depth)
{
    const frag_address_index_store *store = audit->store;
    const frag_address_node *node = &store->nodes[at];
    bool is_leaf = node->refs[0] >= store->node_max;
    uint32_t count = count_of(node);
    uint32_t least = place != NONE ? FILL_MIN : is_leaf ? 1 : 2;
    if (is_leaf && audit->leaf_depth == 0)
        audit->leaf_depth = depth;
    if (++audit->node_count > store->node_count || is_leaf != (depth == audit->leaf_depth) ||
        store->places[at] != place || count < least)
        return frag_fail(audit->error, FRAG_E_INPUT, "address index: node %u is misplaced", at);
    for (uint32_t slot = 0; slot < count; slot++)
        if (!check_entry(audit, at, slot, depth))
            return false;
    for (uint32_t slot = count; slot < WIDTH; slot++)
        if (node->sizes.values[slot] != 0)
            return frag_fail(audit->error, FRAG_E_INPUT, "address index: node %u has a gap", at);
    return true;
}

bool frag_address_index_check(const frag_address_index *index, frag_error *error)
{
    index_audit audit = {.store = index->store, .error = error};
    return index->root == NONE || check_node(&audit, index->root, NONE, 1);
}
