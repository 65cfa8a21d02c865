"""Golden logs of PyTorch's own allocator, without a GPU: docs/oracle.md. `make oracle TORCH=2.9.1` calls this.

Gets the official wheels with pip, keeps libc10*.so and the headers, builds golden_writer over the software CUDA, generates
request scripts, plays them, and counts how many logs are the same, byte for byte, as the ones that came along.
"""
import argparse
import concurrent.futures
import ctypes
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile

import request_generator

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TAGS = ["--only-binary=:all:", "--python-version", "311", "--implementation", "cp", "--abi", "cp311", "--abi", "none",
        "--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64", "--platform", "manylinux_2_28_x86_64",
        "--platform", "manylinux_2_17_x86_64"]
# The headers of CUDA, by major version: only declarations, so one of each is enough.
CUDA_HEADERS = {12: ("nvidia-cuda-runtime-cu12==12.6.77", "nvidia/cuda_runtime/include"),
                13: ("nvidia-cuda-runtime==13.0.96", "nvidia/cu13/include")}

ROUNDUP = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
# Settings of the allocator: short name, text, the release that first knows them.
SETTINGS = {
    "def": ("", "2.1"),
    "ms21": ("max_split_size_mb:21", "2.1"),
    "ms64": ("max_split_size_mb:64", "2.1"),
    "ms128": ("max_split_size_mb:128", "2.1"),
    "ms512": ("max_split_size_mb:512", "2.1"),
    "exp": ("expandable_segments:True", "2.1"),
    "exp-ms64": ("expandable_segments:True,max_split_size_mb:64", "2.1"),
    "exp-gc5": ("expandable_segments:True,garbage_collection_threshold:0.5", "2.1"),
    "gc5": ("garbage_collection_threshold:0.5", "2.1"),
    "gc8": ("garbage_collection_threshold:0.8", "2.1"),
    "gc8-ms64": ("garbage_collection_threshold:0.8,max_split_size_mb:64", "2.1"),
    "rp4": ("roundup_power2_divisions:4", "2.1"),
    "rpl": (ROUNDUP, "2.1"),
    "exp-rpl": ("expandable_segments:True," + ROUNDUP, "2.1"),
    "rl": ("release_lock_on_cudamalloc:True", "2.2"),
    "all": ("max_split_size_mb:128,garbage_collection_threshold:0.6," + ROUNDUP, "2.1"),
    "exp-all": ("expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.6," + ROUNDUP, "2.1"),
    "mnsr": ("max_split_size_mb:64,max_non_split_rounding_mb:40", "2.6"),
    "mnsr-l": ("max_split_size_mb:64,max_non_split_rounding_mb:512", "2.6"),
    "ppf": ("per_process_memory_fraction:0.5", "2.10"),
    "ppf-gc6": ("per_process_memory_fraction:0.7,garbage_collection_threshold:0.6", "2.10"),
    "lss40": ("large_segment_size_mb:40", "2.11"),
    "exp-lss40": ("expandable_segments:True,large_segment_size_mb:40", "2.11"),
    "lss12-ms32": ("large_segment_size_mb:12,max_split_size_mb:32", "2.11"),
    "toc": ("per_process_memory_fraction:0.6,throw_on_cudamalloc_oom:True", "2.12"),
    "exp-toc": ("expandable_segments:True,per_process_memory_fraction:0.6,throw_on_cudamalloc_oom:True", "2.12"),
}
# How many seeds of each profile are played under each of these.
PLAN = {
    "def": "tiny 2, train 2, powerlaw 2, bounds 2, streams 3, tight 4, empty 1, fraction 2, gc 1, oversize 1, twodev 2, "
           "graph 3, nested 2, mempool 2, mempooloom 2, mempoolnosplit 1, settings 3, zero 2",
    "ms21": "bounds 1, tight 1, oversize 1",
    "ms64": "tight 1, oversize 2, bounds 1, powerlaw 1",
    "ms128": "tight 1, oversize 1, train 1, streams 1",
    "ms512": "powerlaw 1, oversize 1",
    "exp": "tiny 1, train 1, powerlaw 1, bounds 1, streams 2, tight 3, empty 1, fraction 1, twodev 1, graph 2, mempool 1, "
           "zero 1, mempooloom 1",
    "exp-ms64": "tight 1, oversize 1, bounds 1",
    "exp-gc5": "gc 1, fraction 1",
    "gc5": "gc 2, fraction 1",
    "gc8": "gc 2, fraction 1, zero 1",
    "gc8-ms64": "gc 1, zero 1",
    "rp4": "bounds 1, powerlaw 1, tight 1",
    "rpl": "bounds 1, powerlaw 1, train 1, zero 1",
    "exp-rpl": "bounds 1",
    "rl": "streams 1",
    "all": "bounds 1, tight 1, zero 1",
    "exp-all": "zero 1",
    "mnsr": "oversize 1, bounds 1",
    "mnsr-l": "oversize 1",
    "ppf": "tight 1",
    "ppf-gc6": "tight 1",
    "lss40": "bounds 1, tight 1",
    "exp-lss40": "bounds 1, tight 1",
    "lss12-ms32": "bounds 1, oversize 1",
    "toc": "tight 1",
    "exp-toc": "tight 1",
}
# With private pools the logs tell in which order segments were registered, which then shows where.
REGISTRATION = ("graph", "mempool", "mempooloom", "mempoolnosplit")
PROFILE_FIRST = {"mempool": "2.8", "mempooloom": "2.8", "mempoolnosplit": "2.10", "nested": "2.3"}
# Long scripts: profile, settings.
LONG = [("train", "def"), ("powerlaw", "def"), ("tight", "def"), ("train", "exp")]
LONG_REQUESTS = 200000
LONG_STATISTICS_EVERY = 10000


def say(text):
    print(text, flush=True)


def stop(text):
    sys.exit(f"oracle: {text}")


def release(version):
    """(2, 9) of "2.9.1"."""
    return tuple(int(part) for part in version.split(".")[:2])


# ---- wheels and headers

def download(package, folder, members, prefix=""):
    """The files of a wheel whose names match, below folder."""
    waiting = folder + ".part"
    shutil.rmtree(waiting, ignore_errors=True)
    os.makedirs(waiting)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", *TAGS, "-d", waiting, package]
    if subprocess.run(command, cwd=waiting).returncode != 0:
        shutil.rmtree(waiting)
        stop(f"pip could not get {package}")
    wheel = glob.glob(waiting + "/*.whl")[0]
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if re.match(members, name) and not name.endswith("/"):
                archive.extract(name, waiting)
    os.remove(wheel)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(os.path.join(waiting, prefix) if prefix else waiting, folder)
    shutil.rmtree(waiting, ignore_errors=True)


def fetch(version, wheels):
    folder = os.path.join(wheels, version)
    if not os.path.isdir(folder):
        say(f"getting torch {version}: the wheel is large, 5 MB of it are kept")
        download(f"torch=={version}", folder, r"torch/(lib/libc10[^/]*\.so|include/(c10|torch/headeronly)/)")
    library = os.path.join(folder, "torch/lib/libc10_cuda.so")
    if not os.path.exists(library):
        stop(f"the wheel of {version} has no libc10_cuda.so: it was built without CUDA")
    with open(library, "rb") as file:
        content = file.read()
    major = 13 if b"libcudart.so.13" in content else 12
    headers = os.path.join(wheels, f"cudart{major}")
    if not os.path.isdir(headers):
        package, inside = CUDA_HEADERS[major]
        download(package, headers, re.escape(inside) + "/", os.path.dirname(inside))
    return folder, headers, major, re.search(rb"CUDACachingAllocator\w*7__cxx11", content) is not None


# ---- building

def build(version, options):
    """The path of golden_writer for a version."""
    folder, headers, major, has_new_abi = fetch(version, options.wheels)
    writer = os.path.join(options.build, f"golden_writer-{version}")
    sources = [os.path.join(HERE, name) for name in ("golden_writer.cpp", "request_script.cpp", "device_calls.cpp")]
    own = sources + glob.glob(HERE + "/*.hpp") + [ROOT + "/gpu_replay/software/software_cuda.h"]
    if os.path.exists(writer) and all(os.path.getmtime(writer) > os.path.getmtime(path) for path in own):
        return writer, major
    number = release(version)[0] * 100 + release(version)[1]
    software = os.path.join(os.path.abspath(options.software), str(major))
    library = os.path.join(folder, "torch/lib")
    command = [options.compiler, "-O2", "-w", "-std=c++" + ("20" if number >= 212 else "17"), "-I" + ROOT,
               "-isystem", os.path.join(folder, "torch/include"), "-isystem", os.path.join(headers, "include"),
               f"-D_GLIBCXX_USE_CXX11_ABI={int(has_new_abi)}", f"-DTORCH_NUMBER={number}", f"-DFRAG_CUDART={major}",
               f'-DTORCH_VERSION_TEXT="{version}"', *sources, "-o", writer, "-L" + library, "-lc10_cuda", "-lc10",
               os.path.join(software, f"libcudart.so.{major}"), "-Wl,--no-as-needed", os.path.join(software, "libcuda.so.1"),
               os.path.join(software, "libnvidia-ml.so.1"), "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags",
               "-Wl,-rpath," + software + ":" + library]
    if subprocess.run(command).returncode != 0:
        stop(f"golden_writer does not build for {version}")
    return writer, major


# ---- scripts

def plan(options):
    """(name, settings name, first release, arguments of golden_writer, script text) of every script wanted."""
    offset = options.first_seed - 1
    for settings, row in PLAN.items():
        for part in row.split(", "):
            profile, count = part.split()
            for i in range(int(count)):
                number = offset + i + 1
                yield short_script(profile, settings, number)
    for profile, settings in LONG if options.long else []:
        number = offset + 1
        seed = f"200k.{number}"
        yield (f"{profile}-{settings}-200k-{number}", settings, max(SETTINGS[settings][1], "2.1", key=release),
               ["--statistics-every", str(LONG_STATISTICS_EVERY)],
               lambda p=profile, s=seed: request_generator.generate(p, s, LONG_REQUESTS))


def short_script(profile, settings, number):
    text, first = SETTINGS[settings]
    lengths = [2000, 3000, 4000, 4000, 6000, 8000, 12000, 20000]
    length = random.Random(f"{profile}/{settings}/{number}").choice(lengths)
    limit = re.search(r"max_split_size_mb:(\d+)", text)
    capacity = 6144 if (settings, profile) == ("ms512", "oversize") else 0
    name = f"{profile}-{settings}-{number}"
    first = max(first, PROFILE_FIRST.get(profile, "2.1"), key=release)
    return (name, settings, first, ["--registration"] if profile in REGISTRATION else [],
            lambda: request_generator.generate(profile, f"{settings}.{number}", length, capacity,
                                               int(limit.group(1)) if limit else 0, "-exp" in name))


# ---- playing and comparing

def play(job):
    writer, arguments, script, settings, log = job
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTORCH_", "FRAGLAB_SOFTWARE_CUDA"))}
    environment["TORCH_CPP_LOG_LEVEL"] = "FATAL"
    if settings:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = settings
    with open(log + ".part", "wb") as out:
        done = subprocess.run([writer, *arguments, script], env=environment, stdout=out, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1) or os.path.getsize(log + ".part") == 0:
        return f"{os.path.basename(log)}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-300:].strip()}"
    os.replace(log + ".part", log)
    return ""


class Buffer(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t)]


def decompress(path):
    """The content of a zstd file, by the library that fraglab itself needs."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_createDStream.restype = ctypes.c_void_p
    zstd.ZSTD_decompressStream.restype = ctypes.c_size_t
    with open(path, "rb") as file:
        data = file.read()
    room = ctypes.create_string_buffer(1 << 20)
    stream = ctypes.c_void_p(zstd.ZSTD_createDStream())
    source = Buffer(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, len(data), 0)
    content = bytearray()
    while True:
        target = Buffer(ctypes.addressof(room), len(room), 0)
        code = zstd.ZSTD_decompressStream(stream, ctypes.byref(target), ctypes.byref(source))
        if zstd.ZSTD_isError(ctypes.c_size_t(code)):
            stop(f"{path}: no zstd file")
        content += room.raw[:target.position]
        if source.position == len(data) and target.position < len(room):
            break
    zstd.ZSTD_freeDStream(stream)
    return bytes(content)


def compare(log, golden):
    """"same", "different" or "new": there is no log of that name."""
    name = os.path.basename(log)
    for reference in (os.path.join(golden, name + ".zst"), os.path.join(golden, name)):
        if os.path.exists(reference):
            with open(log, "rb") as file:
                own = file.read()
            if reference.endswith(".zst"):
                other = decompress(reference)
            else:
                with open(reference, "rb") as file:
                    other = file.read()
            return "same" if own == other else "different"
    return "new"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="versions, with commas between")
    parser.add_argument("--out", required=True, help="folder for the logs")
    parser.add_argument("--build", required=True, help="folder for what is built")
    parser.add_argument("--wheels", help="folder of wheels taken apart (BUILD/wheels)")
    parser.add_argument("--software", required=True, help="folder of the software CUDA")
    parser.add_argument("--golden", default=ROOT + "/build/golden", help="logs to compare with")
    parser.add_argument("--first-seed", type=int, default=1, help="1: the seeds of the bundled logs")
    parser.add_argument("--only", default="", help="only scripts whose names hold this text")
    parser.add_argument("--long", action="store_true", help="also scripts of 200,000 requests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compiler", default="c++")
    options = parser.parse_args()
    options.wheels = os.path.abspath(options.wheels or os.path.join(options.build, "wheels"))
    for version in options.torch.split(","):
        if not re.fullmatch(r"2\.\d+\.\d+", version):
            stop(f"'{version}' is no release; write such as 2.9.1")
    if options.first_seed < 1:
        stop("seeds count from 1")
    return options


def main():
    options = parse()
    scripts = os.path.join(options.build, "scripts")
    for folder in (options.wheels, options.out, scripts):
        os.makedirs(folder, exist_ok=True)
    wanted = [entry for entry in plan(options) if options.only in entry[0]]
    if not wanted:
        stop(f"no script has '{options.only}' in its name")
    jobs = []
    for version in options.torch.split(","):
        writer, major = build(version, options)
        say(f"torch {version}: libc10_cuda over the software libcudart.so.{major}")
        for name, settings, first, arguments, _ in wanted:
            if release(version) >= release(first):
                log = os.path.join(options.out, f"{version}-{name}.jsonl")
                jobs.append((writer, arguments, os.path.join(scripts, name + ".txt"), SETTINGS[settings][0], log))
    for name, _, _, _, generate in wanted:
        with open(os.path.join(scripts, name + ".txt"), "w") as file:
            file.write(generate())
    counts = {"same": 0, "different": 0, "new": 0}
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for job, failure in zip(jobs, pool.map(play, jobs)):
            if failure:
                failures += 1
                say("failed: " + failure)
                continue
            verdict = compare(job[4], options.golden)
            counts[verdict] += 1
            if verdict == "different":
                say(f"different: {os.path.basename(job[4])}")
    say(f"{len(jobs) - failures} logs in {options.out}: {counts['same']} byte for byte as in {options.golden}, "
        f"{counts['different']} different, {counts['new']} not there; {failures} failed")
    return 1 if failures or counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
