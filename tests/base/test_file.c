/* Tests of file.c: reading and writing files. _GNU_SOURCE is for O_TMPFILE. */
#define _GNU_SOURCE 1

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/formats/codec.h"
#include "base/memory.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/fraglab-test-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *name, const char *content)
{
    char bytes[64] = {0};
    FILE *file = fopen(path_of(name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof bytes - 1, file), strlen(content));
    fclose(file);
    assert_string_equal(bytes, content);
}

static void a_window_shows_bytes_without_taking_them(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_input *input = frag_input_from_memory("abcdef", 6, "six");
    const unsigned char *bytes = NULL;
    size_t count = 0;
    assert_true(frag_input_peek(input, 3, &bytes, &count, &error));
    assert_true(count >= 3);
    assert_memory_equal(bytes, "abc", 3);
    frag_input_skip(input, 2);
    assert_int_equal(frag_input_offset(input), 2);
    char read[5] = {0};
    assert_true(frag_input_read(input, read, 4, &error));
    assert_string_equal(read, "cdef");
    assert_true(frag_input_peek(input, 1, &bytes, &count, &error));
    assert_int_equal(count, 0);
    assert_false(frag_input_read(input, read, 1, &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.where, "six");
    assert_int_equal(error.offset, 6);
    frag_input_close(input);
    frag_input_close(NULL);
}

static void reading_goes_on_where_it_is_told(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    char read[3] = {0};
    frag_input *input = frag_input_from_memory("abcdefgh", 8, "eight");
    static const struct {
        uint64_t offset;
        const char *found;
    } places[] = {{5, "fg"}, {0, "ab"}, {2, "cd"}, {6, "gh"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_true(frag_input_seek(input, places[i].offset));
        assert_int_equal(frag_input_offset(input), places[i].offset);
        assert_true(frag_input_read(input, read, 2, &error));
        assert_string_equal(read, places[i].found);
    }
    assert_true(frag_input_seek(input, 8));
    assert_false(frag_input_seek(input, 9));
    assert_false(frag_input_read(input, read, 1, &error));
    frag_input_close(input);
}

static void an_empty_file_is_at_its_end_at_once(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    write_file("empty", "", 0);
    frag_input *input = frag_input_open(path_of("empty"), &error);
    assert_non_null(input);
    const unsigned char *bytes = NULL;
    size_t count = 9;
    assert_true(frag_input_peek(input, 16, &bytes, &count, &error));
    assert_int_equal(count, 0);
    frag_input_close(input);
    unlink(path_of("empty"));
}

static void compressed_input_reads_like_plain(void **state)
{
    (void)state;
    enum { COUNT = 3000000 };
    unsigned char *plain = frag_alloc(COUNT, 1);
    unsigned char *back = frag_alloc(COUNT, 1);
    for (uint32_t i = 0; i < COUNT; i++)
        plain[i] = (unsigned char)(i * 2654435761u >> 24);
    unsigned char *packed = frag_alloc(frag_compress_bound(COUNT), 1);
    size_t packed_count = frag_compress(packed, frag_compress_bound(COUNT), plain, COUNT);
    write_file("packed", packed, packed_count);
    frag_error error = {.code = FRAG_E_NONE};
    frag_input *input = frag_input_open(path_of("packed"), &error);
    assert_non_null(input);
    assert_true(frag_input_is_compressed(input));
    assert_int_equal(frag_input_raw_bytes(input), packed_count);
    const unsigned char *bytes = NULL;
    size_t count = 0;
    assert_true(frag_input_peek(input, 2500000, &bytes, &count, &error));
    assert_true(count >= 2500000);
    assert_memory_equal(bytes, plain, 2500000);
    assert_true(frag_input_read(input, back, COUNT, &error));
    assert_memory_equal(plain, back, COUNT);
    assert_int_equal(frag_input_offset(input), COUNT);
    assert_int_equal(frag_input_raw_offset(input), packed_count);
    /* 10 items are free, and 3 for each byte. */
    assert_false(frag_input_outgrows(input, 10 + 3 * (uint64_t)packed_count, 10, 3));
    assert_true(frag_input_outgrows(input, 11 + 3 * (uint64_t)packed_count, 10, 3));
    frag_input_close(input);
    input = frag_input_from_memory("plain", 5, "plain");
    assert_false(frag_input_outgrows(input, UINT64_MAX, 0, 1));
    frag_input_close(input);

    /* Cut anywhere, the end is an error and never taken for the end of the data. */
    for (size_t cut = 5; cut < packed_count; cut += packed_count / 13) {
        error = (frag_error){.code = FRAG_E_NONE};
        input = frag_input_from_memory(packed, cut, "cut");
        assert_false(frag_input_read(input, back, COUNT, &error));
        assert_int_equal(error.code, FRAG_E_INPUT);
        assert_string_equal(error.where, "cut");
        frag_input_close(input);
    }
    unlink(path_of("packed"));
    free(plain);
    free(back);
    free(packed);
}

static void assert_reads(const void *packed, size_t count, const char *content)
{
    char back[64] = {0};
    frag_error error = {.code = FRAG_E_NONE};
    frag_input *input = frag_input_from_memory(packed, count, "memory");
    assert_true(frag_input_read(input, back, strlen(content), &error));
    assert_string_equal(back, content);
    assert_int_equal(frag_input_offset(input), strlen(content));
    assert_false(frag_input_read(input, back, 1, &error));
    assert_int_equal(error.offset, strlen(content));
    frag_input_close(input);
}

static void a_small_compressed_file_is_in_memory_at_once(void **state)
{
    (void)state;
    enum { COUNT = 3000000 };
    unsigned char *plain = frag_alloc(COUNT, 1);
    unsigned char *packed = frag_alloc(frag_compress_bound(COUNT), 1);
    size_t packed_count = frag_compress(packed, frag_compress_bound(COUNT), plain, COUNT);
    frag_input *input = frag_input_from_memory(packed, packed_count, "memory");
    assert_int_equal(frag_input_visible_bytes(input), COUNT);
    frag_input_close(input);
    free(plain);
    free(packed);
}

static void gzip_is_read_step_by_step(void **state)
{
    (void)state;
    size_t count = 0;
    void *packed = frag_codec_pack(FRAG_CODEC_GZIP, "hello", 5, &count);
    assert_reads(packed, count, "hello");
    free(packed);
    packed = frag_codec_pack(FRAG_CODEC_ZSTD, "", 0, &count);
    assert_reads(packed, count, "");
    free(packed);
}

static void frames_that_do_not_tell_their_size_are_read(void **state)
{
    (void)state;
    /* A frame of one block that is stored as it is, twice; then one with a block of no known kind.
     */
    static const char frames[] = "\x28\xb5\x2f\xfd\0\0\x29\0\0hello"
                                 "\x28\xb5\x2f\xfd\0\0\x29\0\0world"
                                 "\x28\xb5\x2f\xfd\0\0\x2f\0\0wrong";
    assert_reads(frames, 14, "hello");
    assert_reads(frames, 28, "helloworld");
    char back[16];
    frag_error error = {.code = FRAG_E_NONE};
    frag_input *input = frag_input_from_memory(frames + 28, 14, "memory");
    assert_false(frag_input_read(input, back, 5, &error));
    assert_non_null(strstr(error.sentence, "broken"));
    frag_input_close(input);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    assert_null(frag_input_open(path_of("nothing"), &error));
    assert_int_equal(error.code, FRAG_E_INPUT);
    assert_string_equal(error.where, path_of("nothing"));
    error = (frag_error){.code = FRAG_E_NONE};
    assert_null(frag_input_open("", &error));
    assert_non_null(strstr(error.sentence, "empty"));
    error = (frag_error){.code = FRAG_E_NONE};
    assert_null(frag_input_open(folder, &error));
    assert_non_null(strstr(error.sentence, "it is a folder"));
}

static void output_appears_whole_or_not_at_all(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_output *output = frag_output_open(path_of("out"), false, &error);
    assert_non_null(output);
    fprintf(frag_output_stream(output), "first");
    assert_int_equal(access(path_of("out"), F_OK), -1);
    assert_true(frag_output_finish(output, &error));
    assert_content("out", "first");
    struct stat status;
    assert_int_equal(stat(path_of("out"), &status), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(status.st_mode & 0777, 0666 & ~mask);

    assert_null(frag_output_open(path_of("out"), false, &error));
    assert_int_equal(error.code, FRAG_E_USAGE);
    output = frag_output_open(path_of("out"), true, &error);
    fprintf(frag_output_stream(output), "second");
    frag_output_abandon(output);
    assert_content("out", "first");
    output = frag_output_open(path_of("out"), true, &error);
    fprintf(frag_output_stream(output), "third");
    assert_true(frag_output_finish(output, &error));
    assert_content("out", "third");
    unlink(path_of("out"));
    /* The folder is empty again: remove_folder fails otherwise. */
}

static void a_file_that_is_replaced_keeps_its_permissions(void **state)
{
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0666, 0444};
    frag_error error = {.code = FRAG_E_NONE};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct stat status;
        write_file("out", "old", 3);
        assert_int_equal(chmod(path_of("out"), modes[i]), 0);
        frag_output *output = frag_output_open(path_of("out"), true, &error);
        assert_non_null(output);
        fprintf(frag_output_stream(output), "new");
        assert_true(frag_output_finish(output, &error));
        assert_content("out", "new");
        assert_int_equal(stat(path_of("out"), &status), 0);
        assert_int_equal(status.st_mode & 07777, modes[i]);
        unlink(path_of("out"));
    }
}

static bool is_folder_empty(void)
{
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    size_t count = 0;
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count == 2; /* . and .. */
}

static void output_on_its_way_has_no_name(void **state)
{
    (void)state;
    /* Some file systems have no files without a name; a temporary one has to do there. */
    int probe = open(folder, O_TMPFILE | O_WRONLY, 0600);
    if (probe < 0)
        skip();
    close(probe);
    frag_error error = {.code = FRAG_E_NONE};
    frag_output *output = frag_output_open(path_of("out"), false, &error);
    assert_non_null(output);
    fprintf(frag_output_stream(output), "never finished");
    fflush(frag_output_stream(output));
    assert_true(is_folder_empty());
    frag_output_abandon(output);
    assert_true(is_folder_empty());
}

static void a_symbolic_link_is_followed(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    write_file("target", "old", 3);
    assert_int_equal(symlink("target", path_of("link")), 0);
    assert_null(frag_output_open(path_of("link"), false, &error));
    frag_output *output = frag_output_open(path_of("link"), true, &error);
    assert_non_null(output);
    fprintf(frag_output_stream(output), "new");
    assert_true(frag_output_finish(output, &error));
    assert_content("target", "new");
    struct stat status;
    assert_int_equal(lstat(path_of("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    unlink(path_of("link"));
    unlink(path_of("target"));
}

static void a_name_may_be_as_long_as_the_system_allows(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    frag_output *output = frag_output_open(path, false, &error);
    assert_non_null(output);
    fprintf(frag_output_stream(output), "long");
    assert_true(frag_output_finish(output, &error));
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

static void dev_stdout_is_stdout_and_stays_what_it_is(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    frag_output *output = frag_output_open("/dev/stdout", true, &error);
    assert_non_null(output);
    assert_ptr_equal(frag_output_stream(output), stdout);
    frag_output_abandon(output);
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    assert_null(frag_output_open(path_of("no/such/folder"), false, &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
    assert_null(frag_output_open(folder, true, &error));
    frag_output *output = frag_output_open("/dev/full", false, &error);
    assert_non_null(output);
    fprintf(frag_output_stream(output), "lost");
    error = (frag_error){.code = FRAG_E_NONE};
    assert_false(frag_output_finish(output, &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_shows_bytes_without_taking_them),
        cmocka_unit_test(reading_goes_on_where_it_is_told),
        cmocka_unit_test(an_empty_file_is_at_its_end_at_once),
        cmocka_unit_test(compressed_input_reads_like_plain),
        cmocka_unit_test(a_small_compressed_file_is_in_memory_at_once),
        cmocka_unit_test(gzip_is_read_step_by_step),
        cmocka_unit_test(frames_that_do_not_tell_their_size_are_read),
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(output_appears_whole_or_not_at_all),
        cmocka_unit_test(a_file_that_is_replaced_keeps_its_permissions),
        cmocka_unit_test(output_on_its_way_has_no_name),
        cmocka_unit_test(a_symbolic_link_is_followed),
        cmocka_unit_test(a_name_may_be_as_long_as_the_system_allows),
        cmocka_unit_test(dev_stdout_is_stdout_and_stays_what_it_is),
        cmocka_unit_test(output_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
