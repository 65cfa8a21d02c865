/* What an error is: the words in which programs say that memory ran out, and the signs by which
 * they set off what they report. */
#ifndef FRAG_GUESS_MESSAGE_FAILURE_H
#define FRAG_GUESS_MESSAGE_FAILURE_H

#include "messages/message_line.h"

/* What was found in a line, and whether it is the mere name of an error, which sources and
 * sentences use too. */
typedef struct frag_message_failure {
    bool is_found;
    bool is_allocation;
    bool is_name;
    size_t at; /* the first word of it */
} frag_message_failure;

frag_message_failure frag_message_find_failure(const frag_message_split_line *read);

/* Is a failure of another kind told ("illegal address", "launch failed")? */
bool frag_message_is_other(const frag_message_split_line *read);

/* Is something else than memory allocated, by a kernel or a scheduler? */
bool frag_message_is_of_system(const frag_message_split_line *read);

/* Is the word i of a test's name, "test_out_of_memory_is_raised"? Of "OUT_OF_POOL_MEMORY", a pool
 * of descriptors? */
bool frag_message_is_of_test(const frag_message_split_line *read, size_t i);
bool frag_message_is_pool_name(const frag_message_split_line *read, size_t i);

/* Of "out_of_memory+0x218", a function in the back trace of a kernel? One of the examples in "(e.g.
 * socket, malloc)"? */
bool frag_message_is_of_trace(const frag_message_split_line *read, size_t i);
bool frag_message_is_example(const frag_message_split_line *read, size_t i);

/* Does a mark such as "Error:" or "[E]" stand before the word at to? */
bool frag_message_has_mark(const frag_message_split_line *read, size_t to);

/* Is the failure at the word at told as something that happened ("ran out of memory")? */
bool frag_message_is_told(const frag_message_split_line *read, size_t at);

/* Does the failure stand near the start of its line, or behind the sign that ends a prefix? */
bool frag_message_is_headed(const frag_message_split_line *read, size_t at);

/* "out of memory", "OutOfMemory", "OOM" at the word i; the status of Windows for it, as a number;
 * an exception that was thrown ("GpuOOM: "). */
bool frag_message_is_out_of(const frag_message_split_line *read, size_t i);
bool frag_message_is_status(const frag_message_split_line *read, size_t i);
bool frag_message_is_thrown(const frag_message_split_line *read, size_t i);

/* "[Bug]: OOM error while running LoRA": the title of what a person tells of a model */
bool frag_message_is_title(const frag_message_split_line *read);

/* "ran out of memory, skipping batch 12": is a piece of the program's work skipped, which is lost,
 * as a part of a program that does without it is not ("skipping the cache")? */
bool frag_message_is_lost_work(const frag_message_split_line *read);

/* "clCreateBuffer failed: -4", "vkCreateImage returned -2", "CUDA error 2": is the word i the
 * number by which an interface says that memory ran out? */
bool frag_message_is_status_number(const frag_message_split_line *read, size_t i);

#endif
