# The software CUDA as files: names, version nodes, what programs link to and look up in it.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/../.." && out=$BATS_TEST_TMPDIR
    libraries=build/release/software-cuda
    export LC_ALL=C
}

# "NODE name" of everything a library defines; the file's name where it has no nodes.
defined() { # library
    nm -D --defined-only "$1" | awk -v file="$(basename "$1")" '$2 == "T" {
        name = $3; node = file
        if (split(name, part, "@@") == 2) { name = part[1]; node = part[2] }
        print node, name
    }'
}

all_defined() {
    defined $libraries/12/libcudart.so.12
    defined $libraries/13/libcudart.so.13
    defined $libraries/libcuda.so.1
    defined $libraries/libnvidia-ml.so.1
}

@test "each library has the name that programs look for" {
    for file in 12/libcudart.so.12 13/libcudart.so.13 libcuda.so.1 libnvidia-ml.so.1; do
        readelf -d $libraries/$file | grep -q "SONAME.*\[$(basename $file)\]"
    done
}

@test "both folders hold one and the same driver" {
    [ "$(readlink -f $libraries/12/libcuda.so.1)" = "$(readlink -f $libraries/13/libcuda.so.1)" ]
    [ "$(readlink -f $libraries/12/libnvidia-ml.so.1)" = "$(readlink -f $libraries/13/libnvidia-ml.so.1)" ]
}

@test "everything that PyTorch imports is there, under its version node" {
    # A name asked from the driver stands for its second version too.
    { all_defined; defined $libraries/libcuda.so.1 | sed 's/_v2$//'; } | sort -u >"$out/defined"
    sort -u tests/data/cuda/imports.txt >"$out/imports"
    [ "$(wc -l <"$out/imports")" -gt 100 ]
    run comm -23 "$out/imports" "$out/defined"
    [ "$output" = "" ]
}

@test "everything that fraglab looks up is there, by its name or that of its second version" {
    all_defined | cut -d' ' -f2 | sed 's/_v[23]$//' | sort -u >"$out/defined"
    grep -ohE '"(cuda|cu|nvml)[A-Z][A-Za-z0-9]*(_v[23])?"' gpu_replay/*.c | tr -d '"' | sed 's/_v[23]$//' | sort -u >"$out/asked" || true
    run comm -23 "$out/asked" "$out/defined"
    [ "$output" = "" ]
}

@test "nothing of fraglab itself is visible but the control interface" {
    # And the function of PyTorch that the driver stands in front of (soft_torch.c).
    run sh -c "nm -D --defined-only $libraries/libcuda.so.1 | awk '{ print \$3 }' | grep -vE '^(cu[A-Z]|frag_soft|_ZN2at6native21_coalesce_sparse_cudaE)'"
    [ "$output" = "" ]
    for file in 12/libcudart.so.12 13/libcudart.so.13; do
        run sh -c "nm -D --defined-only $libraries/$file | awk '{ print \$3 }' | grep -vE '^(__cuda|cuda|libcudart)'"
        [ "$output" = "" ]
    done
}

@test "the libraries need nothing but the C library and each other" {
    for file in 12/libcudart.so.12 13/libcudart.so.13 libcuda.so.1 libnvidia-ml.so.1; do
        run sh -c "readelf -d $libraries/$file | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | grep -vE '^(libc|libm|libpthread|libdl|libcuda|ld-linux.*)\.so'"
        [ "$output" = "" ]
    done
}

@test "a program linked to the runtime is led to it by LD_LIBRARY_PATH" {
    cat >"$out/ask.c" <<'END'
#include <stdio.h>
int cudaMalloc(void **, unsigned long);
int cudaMemGetInfo(unsigned long *, unsigned long *);
int main(void)
{
    unsigned long left = 0, total = 0;
    void *memory = 0;
    int code = cudaMalloc(&memory, 3 << 20);
    cudaMemGetInfo(&left, &total);
    printf("%d %lu %lu\n", code, left >> 20, total >> 20);
    return 0;
}
END
    for major in 12 13; do
        ${CC:-gcc} -o "$out/ask" "$out/ask.c" $libraries/$major/libcudart.so.$major -Wl,-rpath-link,$libraries/$major
        LD_LIBRARY_PATH=$libraries/$major FRAGLAB_SOFTWARE_CUDA=capacity=10MiB run "$out/ask"
        [ "$output" = "0 6 10" ]
    done
}

@test "the properties of a device lie where NVIDIA's header has them" {
    include=$(for d in "${CUDA_INCLUDE:-}" /usr/local/cuda/include; do [ ! -e "$d/cuda_runtime_api.h" ] || { echo "$d"; break; }; done)
    [ -n "$include" ] || skip "there are no headers of CUDA (CUDA_INCLUDE)"
    cat >"$out/properties.c" <<'END'
#include <cuda_runtime_api.h>
#include <stdio.h>
static int value(enum cudaDeviceAttr attribute)
{
    int answer = -1;
    cudaDeviceGetAttribute(&answer, attribute, 0);
    return answer;
}
int main(void)
{
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, 0) != cudaSuccess)
        return 1;
    printf("%s %zu %d.%d %d %d %zu %zu %zu %d %d %d %d %d %d\n", p.name, p.totalGlobalMem >> 20, p.major, p.minor, p.multiProcessorCount,
           p.maxThreadsPerMultiProcessor, p.sharedMemPerBlock, p.sharedMemPerBlockOptin, p.sharedMemPerMultiprocessor, p.regsPerMultiprocessor,
           p.l2CacheSize, p.warpSize, p.maxThreadsPerBlock, p.maxBlocksPerMultiProcessor, p.memoryBusWidth);
    return !(p.multiProcessorCount == value(cudaDevAttrMultiProcessorCount) && p.l2CacheSize == value(cudaDevAttrL2CacheSize) &&
             p.clusterLaunch == value(cudaDevAttrClusterLaunch) && p.concurrentManagedAccess == value(cudaDevAttrConcurrentManagedAccess) &&
             p.memoryPoolsSupported == value(cudaDevAttrMemoryPoolsSupported) && p.cooperativeLaunch == value(cudaDevAttrCooperativeLaunch) &&
             p.pciBusID == value(cudaDevAttrPciBusId) && p.unifiedAddressing == value(cudaDevAttrUnifiedAddressing));
}
END
    major=$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\)[0-9][0-9][0-9]$/\1/p' "$include/cuda_runtime_api.h")
    [ "$major" = 12 ] || [ "$major" = 13 ]
    ${CC:-gcc} -I"$include" -o "$out/properties" "$out/properties.c" $libraries/$major/libcudart.so.$major -Wl,-rpath-link,$libraries/$major
    card="name=NVIDIA GeForce RTX 4090,compute-capability=8.9,multiprocessors=128,capacity=24207MiB,l2=72MiB,bus=384"
    LD_LIBRARY_PATH=$libraries/$major FRAGLAB_SOFTWARE_CUDA=$card run "$out/properties"
    [ "$status" = 0 ]
    [ "$output" = "NVIDIA GeForce RTX 4090 24207 8.9 128 1536 49152 101376 102400 65536 75497472 32 1024 24 384" ]
}

@test "request scripts are those of the logs that came along" {
    command -v python3 >/dev/null || skip "python3 is not installed"
    # The first requests of a log are those of its script; the whole is compared by make oracle.
    script=$(python3 gpu_replay/oracle/request_generator.py tight def.1 --length 6)
    [ "$(echo "$script" | head -n 4)" = "cap 1073741824
devices 1
profile tight
seed def.1" ]
    [ "$(echo "$script" | sed -n '5,$p' | wc -l)" = 6 ]
    [ "$(python3 gpu_replay/oracle/request_generator.py graph def.2 --length 3000 | cksum)" = "$(cat tests/data/cuda/graph-def-2.cksum)" ]
}

@test "the stand-ins have the functions that every release of PyTorch looks for, under their version nodes" {
    for major in 12 13; do
        while read -r file; do
            [ -e $libraries/$major/$file ] || continue
            readelf -d $libraries/$major/$file | grep -q "SONAME.*\[$file\]"
            nm -D --defined-only $libraries/$major/$file | awk '{ print $3 }' | sed 's/@.*//' | sort -u > $out/has
            nm -D --defined-only $libraries/$major/$file | awk '$2 == "T" { print $3 }' | sed 's/@@*/ /' | sort -u > $out/nodes
            awk -F'\t' -v file=$file '$2 == file && $3 != "-" { print $3 }' gpu_replay/software/libraries/imports.tsv | sort -u > $out/wanted
            comm -13 $out/has $out/wanted | sed "s/^/$file lacks /" >> $out/missing
            awk -F'\t' -v file=$file '$2 == file && $4 != "-" { print $3, $4 }' gpu_replay/software/libraries/imports.tsv | sort -u |
                comm -13 $out/nodes - | sed "s/^/$file lacks the node /" >> $out/missing
        done < $libraries/$major/preload
    done
    cat $out/missing
    [ ! -s $out/missing ]
}

@test "no function that PyTorch looks for is without a table" {
    for major in 12 13; do
        for table in gpu_replay/software/libraries/tables/*.calls; do
            awk -v major=$major -v what=missing -f gpu_replay/software/libraries/generate.awk gpu_replay/software/libraries/imports.tsv $table
        done
    done > $out/missing
    cat $out/missing
    [ ! -s $out/missing ]
}

@test "the tables say what the vendor's headers say" {
    include=$(ls -d /usr/local/cuda/include 2>/dev/null) || skip "no CUDA headers"
    command -v g++ > /dev/null || skip "no g++"
    major=$(sed -n 's/^#define CUDART_VERSION *\([0-9]*\)...$/\1/p' $include/cuda_runtime_api.h)
    run -0 bash tests/gpu_replay/standin_headers.sh $include "$major"
    # A kind that is changed is found.
    cp -r gpu_replay tests $out/
    sed -i 's/^cufftSetStream(i32, h)/cufftSetStream(i64, h)/' $out/gpu_replay/software/libraries/tables/cufft.calls
    find $out/gpu_replay/software/libraries/tables -type f ! -name cufft.calls -delete
    run -1 bash $out/tests/gpu_replay/standin_headers.sh $include "$major"
    [[ $output == "cufftSetStream: parameter 1 is no i64"* ]]
}

@test "a table with a mistake is refused with its line" {
    table=$out/wrong.calls
    for line in 'wrong(i31)' 'wrong i32)' 'wrong(set32)' 'wrong(zero)' 'wrong(i32 a b)'; do
        printf 'library wrong\nsoname 13 libwrong.so\n%s\n' "$line" > $table
        run -1 awk -v major=13 -v what=code -f gpu_replay/software/libraries/generate.awk $table
        [[ $output == "$table:3: "* ]]
    done
}

@test "objects of a tensor's size lie where the main thread's count of them says, whatever other threads do" {
    command -v g++ > /dev/null || skip "no g++"
    cat >"$out/objects.cpp" <<'END'
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

struct Object { char bytes[184]; };

static bool is_mapped(void *at, bool is_used = false) {
    unsigned char in_core = 0;
    void *page = reinterpret_cast<void *>(reinterpret_cast<unsigned long>(at) & ~4095ul);
    return mincore(page, 1, &in_core) == 0 && (in_core & 1) >= is_used;
}

int main(int count, char **words) {
    // What another thread gives back to malloc differs from run to run.
    unsigned noise = static_cast<unsigned>(atoi(words[1]));
    std::vector<Object *> made;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 20000; i++) made.push_back(new Object);
        std::vector<void *> taken;
        for (unsigned i = 0; i < noise; i++) taken.push_back(malloc(150 + i % 60));
        std::thread([&] {
            for (unsigned i = 0; i < made.size(); i += 2) { delete made[i]; made[i] = nullptr; }
            for (void *one : taken) free(one);
            for (unsigned i = 0; i < noise; i++) delete new Object;
        }).join();
    }
    for (Object *object : made) if (object != nullptr) printf("%p\n", static_cast<void *>(object));
    void *first = made[1];
    bool was_mapped = is_mapped(first);
    // One object keeps its page; the other pages of its chunk are empty.
    for (unsigned i = 0; i < made.size(); i++) if (i != 1) delete made[i];
    void *other = made[1001];
    printf("given back %d %d %d\n", is_mapped(first, true), is_mapped(other), is_mapped(other, true));
    delete made[1];
    printf("given back %d %d\n", was_mapped, !is_mapped(first));
    try {
        delete[] new char[static_cast<unsigned long>(-1) / 4 * (count > 0)];
    } catch (const std::bad_alloc &) {
        printf("caught\n");
    }
}
END
    g++ -O0 -pthread -o "$out/objects" "$out/objects.cpp"
    for noise in 0 1000 4321; do
        LD_PRELOAD=$PWD/$libraries/12/libfraglab-objects.so.1 "$out/objects" $noise >"$out/places-$noise"
    done
    [ "$(sort -u "$out/places-0" | wc -l)" -gt 20000 ]
    grep -q '^0x18' "$out/places-0"
    grep -qx 'given back 1 1 0' "$out/places-0"
    grep -qx 'given back 1 1' "$out/places-0"
    grep -qx caught "$out/places-0"
    cmp "$out/places-0" "$out/places-1000"
    cmp "$out/places-0" "$out/places-4321"
}
