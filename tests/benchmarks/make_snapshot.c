/* make_snapshot GIGABYTES FILE [FRAMES]: a torch.cuda.memory snapshot of any size, for measuring.
 *
 * Nothing in it was recorded; its shapes are those of a snapshot that pickle.dump has written: one
 * dictionary an entry, a list of its own for each call stack that was gathered, frames that are
 * spelled out once and named from then on, MEMOIZE after all that can be named, lists filled a
 * thousand items at a time, frames of 64 KiB. The program is a training loop of 60 layers with
 * steps of several lengths and call stacks of 30 to 90 frames, or of a third of FRAMES to FRAMES
 * (0: entries have none, and are small); each request takes 3 entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdbool.h>
#include "base/memory.h"

enum {
    FRAME_BYTES = 1 << 16,
    BUFFER_BYTES = 1 << 18,
    BATCH = 1000, /* items that the pickler adds to a list at a time */
    LAYERS = 60,
    LAYER_BLOCKS = 20,
    BLOCKS = LAYERS * LAYER_BLOCKS,
    STACKS = 2400,
    FRAMES = 4000,
    FILES = 80,
    FRAMES_MOST = 90, /* of a stack */
    FRAMES_LAST = 12 /* of a stack, the innermost: of this stack alone */
};

static const char *const keys[] = {"action",
                                   "addr",
                                   "size",
                                   "stream",
                                   "time_us",
                                   "compile_context",
                                   "user_metadata",
                                   "frames",
                                   "alloc",
                                   "free_requested",
                                   "free_completed",
                                   "segment_alloc",
                                   "N/A",
                                   "",
                                   "filename",
                                   "line",
                                   "name",
                                   "segments",
                                   "device_traces",
                                   "device",
                                   "address",
                                   "total_size",
                                   "segment_type",
                                   "large",
                                   "blocks",
                                   "requested_size",
                                   "state",
                                   "inactive",
                                   "is_expandable"};

enum {
    ACTION,
    ADDR,
    SIZE,
    STREAM,
    TIME_US,
    COMPILE_CONTEXT,
    USER_METADATA,
    STACK,
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    NOT_AVAILABLE,
    EMPTY,
    FILENAME,
    LINE,
    NAME,
    SEGMENTS,
    DEVICE_TRACES,
    DEVICE,
    ADDRESS,
    TOTAL_SIZE,
    SEGMENT_TYPE,
    LARGE,
    BLOCK_LIST,
    REQUESTED_SIZE,
    STATE,
    INACTIVE,
    IS_EXPANDABLE,
    KEYS
};

/* Names are given from 1 on; 0: not yet written. */
typedef struct maker {
    FILE *stream;
    unsigned char bytes[BUFFER_BYTES]; /* of the frame in the making */
    size_t count;
    uint64_t written;
    uint32_t names;
    uint32_t key_names[KEYS];
    uint32_t file_names[FILES];
    uint32_t function_names[FRAMES];
    uint32_t frame_names[FRAMES];
    uint64_t time_us;
    uint64_t entries;
    uint32_t frames_most;
} maker;

static void put(maker *made, unsigned byte)
{
    made->bytes[made->count++] = (unsigned char)byte;
}

static void put_little(maker *made, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put(made, (unsigned)(value >> 8 * i & 0xff));
}

static uint32_t memoize(maker *made)
{
    put(made, 0x94);
    return ++made->names;
}

static void put_name(maker *made, uint32_t name)
{
    bool is_short = name - 1 <= UINT8_MAX;
    put(made, is_short ? 'h' : 'j');
    put_little(made, name - 1, is_short ? 1 : 4);
}

static void put_string(maker *made, uint32_t *name, const char *text)
{
    size_t length = strlen(text);
    if (*name != 0) {
        put_name(made, *name);
        return;
    }
    put(made, 0x8c);
    put(made, (unsigned)length);
    memcpy(made->bytes + made->count, text, length);
    made->count += length;
    *name = memoize(made);
}

static void put_key(maker *made, int key)
{
    put_string(made, &made->key_names[key], keys[key]);
}

static void put_number(maker *made, uint64_t value)
{
    unsigned bytes = 5;
    if (value <= UINT8_MAX) {
        put(made, 'K');
        bytes = 1;
    } else if (value <= UINT16_MAX) {
        put(made, 'M');
        bytes = 2;
    } else if (value <= INT32_MAX) {
        put(made, 'J');
        bytes = 4;
    } else {
        while (value >> (8 * bytes - 1) != 0)
            bytes++;
        put(made, 0x8a);
        put(made, bytes);
    }
    put_little(made, value, bytes);
}

static void put_pair(maker *made, int key, uint64_t value)
{
    put_key(made, key);
    put_number(made, value);
}

static uint32_t begin_container(maker *made, int operation)
{
    put(made, (unsigned)operation);
    uint32_t name = memoize(made);
    put(made, '(');
    return name;
}

/* Writes the frame if it is large enough; with `is_last` in any case. */
static void end_frame(maker *made, bool is_last)
{
    if (made->count < FRAME_BYTES && !is_last)
        return;
    unsigned char head[9] = {0x95};
    for (unsigned i = 0; i < 8; i++)
        head[1 + i] = (unsigned char)((uint64_t)made->count >> 8 * i & 0xff);
    fwrite(head, 1, sizeof head, made->stream);
    fwrite(made->bytes, 1, made->count, made->stream);
    made->written += sizeof head + made->count;
    made->count = 0;
}

/* ---- call stacks */

static uint32_t frame_of(uint32_t stack, uint32_t index)
{
    if (index < FRAMES_LAST)
        return (stack * 7 + index * 331) % FRAMES;
    return (stack / 40 * 97 + index * 13) % FRAMES;
}

static void put_frame(maker *made, uint32_t frame)
{
    static const char *const folders[] = {"torch/nn/modules", "transformers/models", "trainer",
                                          "accelerate/utils"};
    char text[128];
    if (made->frame_names[frame] != 0) {
        put_name(made, made->frame_names[frame]);
        return;
    }
    made->frame_names[frame] = begin_container(made, '}');
    uint32_t file = frame % FILES;
    put_key(made, FILENAME);
    snprintf(text, sizeof text, "/usr/lib/python3/site-packages/%s/part_%u.py", folders[file % 4],
             file);
    put_string(made, &made->file_names[file], text);
    put_pair(made, LINE, 10 + frame * 3 % 1500);
    put_key(made, NAME);
    snprintf(text, sizeof text, "function_%u", frame);
    put_string(made, &made->function_names[frame], text);
    put(made, 'u');
}

/* A list of its own, empty where the autograd thread has no stack; returns its name. */
static uint32_t put_stack(maker *made, uint32_t stack)
{
    put(made, ']');
    uint32_t name = memoize(made);
    if (stack % 12 == 0)
        return name;
    put(made, '(');
    uint32_t least = made->frames_most / 3;
    uint32_t depth = least + stack % (made->frames_most - least + 1);
    for (uint32_t i = 0; i < depth; i++)
        put_frame(made, frame_of(stack, i));
    put(made, 'e');
    return name;
}

/* ---- entries */

typedef struct entry {
    int action;
    uint64_t address;
    uint64_t bytes;
    uint32_t stack;
    uint32_t stack_name; /* 0: a list of its own */
} entry;

static uint32_t put_entry(maker *made, const entry *of)
{
    if (made->entries++ % BATCH == 0) {
        if (made->entries > 1)
            put(made, 'e');
        put(made, '(');
    }
    uint32_t stack_name = of->stack_name;
    begin_container(made, '}');
    put_key(made, ACTION);
    put_key(made, of->action);
    put_pair(made, ADDR, of->address);
    put_pair(made, SIZE, of->bytes);
    put_pair(made, STREAM, 0);
    put_pair(made, TIME_US, made->time_us++);
    put_key(made, COMPILE_CONTEXT);
    put_key(made, NOT_AVAILABLE);
    put_key(made, USER_METADATA);
    put_key(made, EMPTY);
    if (made->frames_most > 0) {
        put_key(made, STACK);
        if (stack_name != 0)
            put_name(made, stack_name);
        else
            stack_name = put_stack(made, of->stack);
    }
    put(made, 'u');
    end_frame(made, false);
    return stack_name;
}

static uint64_t place_of(uint32_t block)
{
    return 0x7f0000000000 + ((uint64_t)block << 27);
}

/* A multiple of 512, at most 96 MiB, larger in longer steps. */
static uint64_t bytes_of(uint32_t block, uint32_t step)
{
    uint64_t length = 8 + step * 7 % 41;
    return length * ((uint64_t)1 << (11 + block % 7)) * (1 + block % 12);
}

static void alloc_block(maker *made, uint32_t block, uint32_t step)
{
    put_entry(made, &(entry){ALLOC, place_of(block), bytes_of(block, step), block * 2 % STACKS, 0});
}

static void free_block(maker *made, uint32_t block, uint32_t step)
{
    entry at = {FREE_REQUESTED, place_of(block), bytes_of(block, step), (block * 2 + 1) % STACKS,
                0};
    at.stack_name = put_entry(made, &at);
    at.action = FREE_COMPLETED;
    put_entry(made, &at);
}

/* Forward, two of three blocks stay for the way back; then all go, the last first. */
static void put_step(maker *made, uint32_t step)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        alloc_block(made, i, step);
        if (i % 3 == 0)
            free_block(made, i, step);
    }
    for (uint32_t i = BLOCKS; i-- > 0;)
        if (i % 3 != 0)
            free_block(made, i, step);
    made->time_us += 1000;
}

static uint64_t segment_bytes(void)
{
    return (uint64_t)96 << 20;
}

static void put_segment(maker *made, uint32_t block)
{
    begin_container(made, '}');
    put_pair(made, DEVICE, 0);
    put_pair(made, ADDRESS, place_of(block));
    put_pair(made, TOTAL_SIZE, segment_bytes());
    put_pair(made, STREAM, 0);
    put_key(made, SEGMENT_TYPE);
    put_key(made, LARGE);
    put_key(made, IS_EXPANDABLE);
    put(made, 0x89);
    put_key(made, BLOCK_LIST);
    put(made, ']');
    memoize(made);
    begin_container(made, '}');
    put_pair(made, ADDRESS, place_of(block));
    put_pair(made, SIZE, segment_bytes());
    put_pair(made, REQUESTED_SIZE, 0);
    put_key(made, STATE);
    put_key(made, INACTIVE);
    put(made, 'u');
    put(made, 'a');
    put(made, 'u');
    end_frame(made, false);
}

static void put_segments(maker *made)
{
    put_key(made, SEGMENTS);
    put(made, ']');
    memoize(made);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        if (block % BATCH == 0) {
            if (block > 0)
                put(made, 'e');
            put(made, '(');
        }
        put_segment(made, block);
    }
    put(made, 'e');
}

static void put_trace(maker *made, uint64_t bytes)
{
    put_key(made, DEVICE_TRACES);
    put(made, ']');
    memoize(made);
    put(made, ']');
    memoize(made);
    for (uint32_t i = 0; i < BLOCKS; i++)
        put_entry(made, &(entry){SEGMENT_ALLOC, place_of(i), segment_bytes(), i * 2 % STACKS, 0});
    for (uint32_t step = 0; made->written < bytes; step++)
        put_step(made, step);
    put(made, 'e');
    put(made, 'a');
}

static int fail(const char *problem)
{
    fprintf(stderr, "make_snapshot: %s; usage: make_snapshot GIGABYTES FILE [FRAMES]\n", problem);
    return 2;
}

int main(int count, char **arguments)
{
    char *end = NULL;
    if (count != 3 && count != 4)
        return fail("expected two or three arguments");
    double gigabytes = strtod(arguments[1], &end);
    if (*end != '\0' || !(gigabytes >= 0 && gigabytes <= 1000))
        return fail("GIGABYTES is not a number of 0 to 1000");
    double frames = count == 4 ? strtod(arguments[3], &end) : FRAMES_MOST;
    if (*end != '\0' || !(frames >= 0 && frames <= 1000))
        return fail("FRAMES is not a number of 0 to 1000");
    FILE *stream = fopen(arguments[2], "wb");
    if (stream == NULL)
        return fail("FILE cannot be written");
    maker *made = frag_alloc(1, sizeof *made);
    made->stream = stream;
    made->time_us = 1700000000000000;
    made->frames_most = (uint32_t)frames;
    fwrite("\x80\x04", 1, 2, stream);
    begin_container(made, '}');
    put_segments(made);
    put_trace(made, (uint64_t)(gigabytes * 1e9));
    put(made, 'u');
    put(made, '.');
    end_frame(made, true);
    bool is_written = ferror(stream) == 0;
    is_written &= fclose(stream) == 0;
    printf("%llu entries\n", (unsigned long long)made->entries);
    frag_free(made);
    return is_written ? 0 : fail("FILE cannot be written");
}
