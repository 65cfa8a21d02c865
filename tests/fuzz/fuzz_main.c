/* Runs a fuzz target without libFuzzer: over every given file, then over random changes of them.
 *
 *     fuzz_TARGET [--runs N] [--seconds S] [--seed N] [--keep FILE] PATH...
 *
 * The same seed makes the same inputs. The input being run is kept in FILE, which stays behind when
 * the target crashes or is killed for taking longer than 60 s. An input that takes more than a
 * second (and a second for each MiB) is reported, and makes the exit code 1. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

#define CHANGED_BYTES_MAX ((size_t)1 << 17)
#define SECONDS_KILLED 60

typedef struct seed {
    char *path;
    unsigned char *bytes;
    size_t count;
} seed;

typedef struct fuzz_run {
    seed *seeds;
    size_t seed_count;
    size_t seed_capacity;
    uint64_t random;
    uint64_t runs_max;
    uint64_t seconds_max;
    uint64_t run_count;
    uint64_t slow_count;
    double slowest_seconds;
    const char *keep;
    int keep_descriptor;
} fuzz_run;

/* splitmix64: small, and every seed is a good one. */
static uint64_t next_random(fuzz_run *fuzz)
{
    uint64_t z = fuzz->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(fuzz_run *fuzz, size_t limit)
{
    return limit == 0 ? 0 : (size_t)(next_random(fuzz) % limit);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void fail(const char *what, const char *about)
{
    fprintf(stderr, "fuzz: %s '%s'\n", what, about);
    exit(2);
}

static void keep(const fuzz_run *fuzz, const unsigned char *bytes, size_t count)
{
    if (fuzz->keep_descriptor < 0)
        return;
    if (pwrite(fuzz->keep_descriptor, bytes, count, 0) != (ssize_t)count ||
        ftruncate(fuzz->keep_descriptor, (off_t)count) != 0)
        fail("cannot write", fuzz->keep);
}

static void run_one(fuzz_run *fuzz, const char *name, const unsigned char *bytes, size_t count)
{
    /* A copy of exactly that size, so that a sanitizer sees a read beyond it. */
    unsigned char *copy = frag_alloc(count, 1);
    memcpy(copy, bytes, count);
    keep(fuzz, copy, count);
    alarm(SECONDS_KILLED);
    double start = now();
    LLVMFuzzerTestOneInput(copy, count);
    double seconds = now() - start;
    alarm(0);
    free(copy);
    fuzz->run_count++;
    fuzz->slowest_seconds = seconds > fuzz->slowest_seconds ? seconds : fuzz->slowest_seconds;
    if (seconds > 1 + (double)count / (double)FRAG_MIB) {
        fuzz->slow_count++;
        printf("slow: %s, change %llu, %zu bytes take %.1f s\n", name,
               (unsigned long long)fuzz->run_count, count, seconds);
    }
}

/* One random change in place; count stays in 0 to CHANGED_BYTES_MAX. */
static size_t change(fuzz_run *fuzz, unsigned char *bytes, size_t count)
{
    static const unsigned char telling[] = {0,    1,   0x7f, 0x80, 0xff, '0', '-',
                                            '\n', ' ', ',',  ':',  '"',  '{', '['};
    size_t at = below(fuzz, count);
    size_t length = 1 + below(fuzz, below(fuzz, 4) == 0 ? 256 : 8);
    switch (below(fuzz, 8)) {
    case 0:
        if (count > 0)
            bytes[at] ^= (unsigned char)(1u << below(fuzz, 8));
        return count;
    case 1:
        if (count > 0)
            bytes[at] = telling[below(fuzz, sizeof telling)];
        return count;
    case 2:
        if (count > 0)
            bytes[at] = (unsigned char)next_random(fuzz);
        return count;
    case 3: /* remove */
        length = length < count - at ? length : count - at;
        memmove(bytes + at, bytes + at + length, count - at - length);
        return count - length;
    case 4: /* repeat a piece of itself */
        length = length < count - at ? length : count - at;
        if (count + length > CHANGED_BYTES_MAX)
            return count;
        memmove(bytes + at + length, bytes + at, count - at);
        return count + length;
    case 5: { /* move a piece over another */
        size_t from = below(fuzz, count);
        length = length < count - at ? length : count - at;
        length = length < count - from ? length : count - from;
        memmove(bytes + at, bytes + from, length);
        return count;
    }
    case 6: { /* a piece of another seed */
        const seed *other = &fuzz->seeds[below(fuzz, fuzz->seed_count)];
        size_t from = below(fuzz, other->count);
        length = length < count - at ? length : count - at;
        length = length < other->count - from ? length : other->count - from;
        memcpy(bytes + at, other->bytes + from, length);
        return count;
    }
    default: /* cut off, seldom: most of it is needed to get anywhere */
        return below(fuzz, 8) == 0 ? at : count;
    }
}

static void add_file(fuzz_run *fuzz, const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail("cannot read", path);
    seed *added = FRAG_APPEND(fuzz->seeds, fuzz->seed_count, fuzz->seed_capacity);
    *added = (seed){.path = frag_copy_text(path), .bytes = frag_alloc(bytes, 1)};
    added->count = fread(added->bytes, 1, bytes, file);
    fclose(file);
}

static void add_path(fuzz_run *fuzz, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        fail("there is no", path);
    if (!S_ISDIR(status.st_mode)) {
        add_file(fuzz, path, (size_t)status.st_size);
        return;
    }
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            add_path(fuzz, inner);
        free(entries[i]);
    }
    free(entries);
}

static void run_all(fuzz_run *fuzz)
{
    double end = now() + (double)fuzz->seconds_max;
    for (size_t i = 0; i < fuzz->seed_count; i++)
        run_one(fuzz, fuzz->seeds[i].path, fuzz->seeds[i].bytes, fuzz->seeds[i].count);
    unsigned char *bytes = frag_alloc(CHANGED_BYTES_MAX, 1);
    for (uint64_t run = 0; run < fuzz->runs_max && fuzz->seed_count > 0 && now() < end; run++) {
        const seed *from = &fuzz->seeds[below(fuzz, fuzz->seed_count)];
        if (from->count > CHANGED_BYTES_MAX)
            continue;
        memcpy(bytes, from->bytes, from->count);
        size_t count = from->count;
        for (size_t changes = 1 + below(fuzz, 6); changes > 0; changes--)
            count = change(fuzz, bytes, count);
        run_one(fuzz, from->path, bytes, count);
    }
    free(bytes);
}

static uint64_t number_after(int argc, char **argv, int *at)
{
    uint64_t value = 0;
    frag_error error = {.code = FRAG_E_NONE};
    if (*at + 1 >= argc || !frag_count_parse(argv[*at + 1], 0, UINT64_MAX, &value, &error))
        fail("expected a number after", argv[*at]);
    (*at)++;
    return value;
}

int main(int argc, char **argv)
{
    fuzz_run fuzz = {.runs_max = UINT64_MAX, .seconds_max = 10, .random = 1, .keep_descriptor = -1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--runs") == 0)
            fuzz.runs_max = number_after(argc, argv, &i);
        else if (strcmp(argv[i], "--seconds") == 0)
            fuzz.seconds_max = number_after(argc, argv, &i);
        else if (strcmp(argv[i], "--seed") == 0)
            fuzz.random = number_after(argc, argv, &i);
        else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
            fuzz.keep = argv[++i];
        else
            add_path(&fuzz, argv[i]);
    }
    if (fuzz.keep != NULL &&
        (fuzz.keep_descriptor = open(fuzz.keep, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0)
        fail("cannot write", fuzz.keep);
    run_all(&fuzz);
    printf("%llu inputs from %zu files, slowest %.3f s, %llu slow\n",
           (unsigned long long)fuzz.run_count, fuzz.seed_count, fuzz.slowest_seconds,
           (unsigned long long)fuzz.slow_count);
    if (fuzz.keep != NULL)
        unlink(fuzz.keep);
    for (size_t i = 0; i < fuzz.seed_count; i++) {
        free(fuzz.seeds[i].path);
        free(fuzz.seeds[i].bytes);
    }
    bool has_failed = fuzz.slow_count > 0 || fuzz.run_count == 0;
    free(fuzz.seeds);
    return has_failed ? 1 : 0;
}
