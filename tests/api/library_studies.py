"""Compares what the studies of the library say with what the commands print, byte by byte:
library_studies.py LIBRARY FOLDER; the folder is for files. Prints the names of those that were compared."""
import ctypes
import os
import subprocess
import sys

SAMPLES = "traces/samples/"
OOM, WHOLE = SAMPLES + "gpt-varlen-oom.pickle.zst", SAMPLES + "gpt-varlen.pickle.zst"


class Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("code", ctypes.c_int32), ("has_offset", ctypes.c_int32),
                ("line", ctypes.c_uint64), ("column", ctypes.c_uint64), ("offset", ctypes.c_uint64),
                ("where", ctypes.c_char * 256), ("sentence", ctypes.c_char * 512)]


class Sized(ctypes.Structure):
    """A structure with its size first; what is not named is zero."""

    def __init__(self, **members):
        super().__init__(size=ctypes.sizeof(self), **members)


class OpenOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("with_sites", ctypes.c_int32)]


class ContextOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("is_cancelled", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("warn", ctypes.c_void_p), ("environment", ctypes.c_void_p),
                ("threads", ctypes.c_uint32)]


class ExplainOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("capacity_bytes", ctypes.c_uint64), ("memory_fraction", ctypes.c_char_p),
                ("whole", ctypes.c_void_p), ("policies", ctypes.POINTER(ctypes.c_void_p)),
                ("policy_count", ctypes.c_size_t), ("as_text", ctypes.c_int32)]


class CompareOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("fail_above", ctypes.c_char_p),
                ("thresholds", ctypes.POINTER(ctypes.c_char_p)), ("threshold_count", ctypes.c_size_t),
                ("metrics", ctypes.POINTER(ctypes.c_char_p)), ("metric_count", ctypes.c_size_t),
                ("allow_missing", ctypes.c_int32)]


class RunOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("capacity_bytes", ctypes.c_uint64), ("used_by_others_bytes", ctypes.c_uint64),
                ("label", ctypes.c_char_p), ("gpu", ctypes.c_char_p), ("latency", ctypes.c_char_p),
                ("address_rule", ctypes.c_char_p), ("fail_call", ctypes.c_uint64), ("check_every", ctypes.c_uint64),
                ("skip_oom", ctypes.c_int32), ("with_bounds", ctypes.c_int32)]


class TuneOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("held_out", ctypes.POINTER(ctypes.c_void_p)), ("held_out_count", ctypes.c_size_t),
                ("goal", ctypes.c_int32), ("with_bounds", ctypes.c_int32), ("settings", ctypes.c_uint64),
                ("max_seconds", ctypes.c_uint64), ("seed", ctypes.c_uint64), ("device", ctypes.POINTER(RunOptions))]


class SweepOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("folder", ctypes.c_char_p), ("user", ctypes.c_void_p), ("row", ctypes.c_void_p),
                ("output", ctypes.c_char_p), ("overwrite", ctypes.c_int32), ("counts_only", ctypes.c_int32),
                ("replay_all", ctypes.c_int32)]


library = ctypes.CDLL(sys.argv[1])
library.fraglab_comparison_json.restype = library.fraglab_tuned_json.restype = ctypes.c_char_p


def call(name, *arguments):
    error = Error(size=ctypes.sizeof(Error))
    if getattr(library, name)(*arguments, ctypes.byref(error)) != 0:
        sys.exit(f"{name}: {error.where.decode()}: {error.sentence.decode()}")


def made(name, *arguments):
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def text_of(name, *arguments):
    text = made(name, *arguments)
    value = ctypes.string_at(text.value)
    library.fraglab_free(text)
    return value


def recording_of(path):
    return made("fraglab_open_path", None, path.encode(), ctypes.byref(OpenOptions(with_sites=1)))


def policies_of(*names):
    return (ctypes.c_void_p * len(names))(*[made("fraglab_policy_parse", name.encode()) for name in names])


def printed(*words):
    return subprocess.run(["./fraglab", *words], stdout=subprocess.PIPE, check=False).stdout


def expect(name, found, *words):
    expected = printed(*words)
    if found != expected or not expected:
        sys.exit(f"{name}: the library says\n{found.decode()[:2000]}\nand the command\n{expected.decode()[:2000]}")
    print(name)


context = made("fraglab_context_create", ctypes.byref(ContextOptions(threads=2)))


def explain(path, **options):
    return text_of("fraglab_explain_recording", context, recording_of(path), ctypes.byref(ExplainOptions(**options)))


expect("explain", explain(OOM), "explain", OOM, "--format", "jsonl")
expect("explain as text", explain(OOM, as_text=1), "explain", OOM)
expect("explain with the rest", explain(OOM, whole=recording_of(WHOLE), policies=policies_of("buddy", "pytorch:recorded"),
                                        policy_count=2),
       "explain", OOM, WHOLE, "-p", "buddy", "-p", "pytorch:recorded", "--format", "jsonl")
expect("explain a smaller card", explain(SAMPLES + "model-parallel.pickle.zst", capacity_bytes=64 << 20, memory_fraction=b"0.9"),
       "explain", SAMPLES + "model-parallel.pickle.zst", "--capacity", "64MiB", "--memory-fraction", "0.9", "--format", "jsonl")

base, now = sys.argv[2] + "/base.jsonl", sys.argv[2] + "/now.jsonl"
for path, policy in ((base, "best-fit"), (now, "pytorch")):
    with open(path, "wb") as file:
        for sample in ("unet", "truncated"):
            file.write(printed("run", f"{SAMPLES}{sample}.pickle.zst", "-p", policy, "--label", "mine", "--format", "jsonl"))
comparison = made("fraglab_compare_paths", base.encode(), now.encode(), None)
expect("compare", library.fraglab_comparison_json(comparison), "compare", base, now, "--format", "jsonl")
options = CompareOptions(fail_above=b"5%,16MiB", thresholds=(ctypes.c_char_p * 1)(b"device_calls.*=1%"), threshold_count=1,
                         metrics=(ctypes.c_char_p * 2)(b"device_calls.*", b"peak.*"), metric_count=2)
comparison = made("fraglab_compare_paths", base.encode(), now.encode(), ctypes.byref(options))
expect("compare some metrics", library.fraglab_comparison_json(comparison), "compare", base, now, "--format", "jsonl",
       "--fail-above", "5%,16MiB", "--threshold", "device_calls.*=1%", "--metric", "device_calls.*", "--metric", "peak.*")


def tune(paths, policy, **options):
    recordings = (ctypes.c_void_p * len(paths))(*[recording_of(path) for path in paths])
    return library.fraglab_tuned_json(made("fraglab_tune", context, recordings, ctypes.c_size_t(len(paths)),
                                           made("fraglab_policy_parse", policy.encode()),
                                           ctypes.byref(TuneOptions(**options))))


UNET, MOE = SAMPLES + "unet.pickle.zst", SAMPLES + "moe.pickle.zst"
expect("tune", tune([UNET, MOE], "pytorch", held_out=(ctypes.c_void_p * 1)(recording_of(OOM)), held_out_count=1, settings=40, seed=7,
                    with_bounds=1),
       "tune", UNET, MOE, "--held-out", OOM, "--runs", "40", "--seed", "7", "--bounds", "--format", "jsonl")
expect("tune on a card", tune([UNET], "tlsf", settings=20, device=ctypes.pointer(RunOptions(gpu=b"rtx4090", capacity_bytes=1 << 30))),
       "tune", UNET, "-p", "tlsf", "--runs", "20", "--gpu", "rtx4090", "--capacity", "1GiB", "--format", "jsonl")
expect("tune for capacity", tune([UNET], "best-fit", settings=10, goal=1),
       "tune", UNET, "-p", "best-fit", "--runs", "10", "--for", "min-capacity", "--format", "jsonl")


def sweep(name, *arguments, **options):
    rows, error = ctypes.c_void_p(), Error(size=ctypes.sizeof(Error))
    if getattr(library, name)(context, *arguments, ctypes.byref(SweepOptions(**options)), ctypes.byref(rows), None, ctypes.byref(error)) != 0:
        sys.exit(f"{error.where.decode()}:{error.line}: {error.sentence.decode()}")
    value = ctypes.string_at(rows.value)
    library.fraglab_free(rows)
    return value


path = sys.argv[2] + "/experiment.yaml"
experiment = f"""traces: ["{os.path.abspath(UNET)}", "{os.path.abspath(OOM)}"]
policies: [pytorch:recorded, {{policy: tlsf, options: {{sli: {{from: 3, to: 5, step: 1}}}}}}, {{policy: buddy, label: pairs}}]
capacities: [512MiB, 1GiB, unlimited]
bounds: true
"""
with open(path, "w", encoding="utf-8") as file:
    file.write(experiment)
expect("sweep", sweep("fraglab_sweep_path", path.encode()), "sweep", path, "-j", "2")
expect("sweep of a text", sweep("fraglab_sweep_memory", experiment.encode(), ctypes.c_size_t(len(experiment)), counts_only=1),
       "sweep", path, "--counts-only")
relative = b'{"traces": ["unet.pickle.zst"], "policies": ["best-fit"], "on_oom": "skip"}'
with open(path, "wb") as file:
    file.write(relative.replace(b"unet", os.path.abspath(SAMPLES).encode() + b"/unet"))
expect("sweep of JSON", sweep("fraglab_sweep_memory", relative, ctypes.c_size_t(len(relative)), folder=SAMPLES.encode()), "sweep", path)
