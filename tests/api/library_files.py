"""Compares what the library writes with what the commands write, byte by byte: library_files.py LIBRARY FOLDER; the folder is for
files. Prints the names of those that were compared."""
import ctypes
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "plots"))
import same_pdf  # noqa: E402

SAMPLES = "traces/samples/"
OOM, DEVICES = SAMPLES + "gpt-varlen-oom.pickle.zst", SAMPLES + "model-parallel.pickle.zst"
ALL_TRACES = ctypes.c_size_t(-1)


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


class RunOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("capacity_bytes", ctypes.c_uint64), ("used_by_others_bytes", ctypes.c_uint64),
                ("label", ctypes.c_char_p), ("gpu", ctypes.c_char_p), ("latency", ctypes.c_char_p), ("address_rule", ctypes.c_char_p),
                ("fail_call", ctypes.c_uint64), ("check_every", ctypes.c_uint64), ("skip_oom", ctypes.c_int32),
                ("with_bounds", ctypes.c_int32), ("stats_at", ctypes.c_char_p), ("with_timing", ctypes.c_int32)]


class FileOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("at", ctypes.c_char_p), ("overwrite", ctypes.c_int32)]


library, folder = ctypes.CDLL(sys.argv[1]), sys.argv[2]
library.fraglab_result_json.restype = ctypes.c_char_p


def call(name, *arguments):
    error = Error(size=ctypes.sizeof(Error))
    if getattr(library, name)(*arguments, ctypes.byref(error)) != 0:
        sys.exit(f"{name}: {error.where.decode()}: {error.sentence.decode()}")


def made(name, *arguments):
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def taken(name, *arguments):
    memory, count = ctypes.c_void_p(), ctypes.c_size_t()
    call(name, *arguments, ctypes.byref(memory), ctypes.byref(count))
    value = ctypes.string_at(memory.value, count.value)
    library.fraglab_free(memory)
    return value


def read(path):
    with open(path, "rb") as file:
        return file.read()


def written_by(option, *words):
    path = f"{folder}/of-the-command"
    subprocess.run(["./fraglab", *words, option, path, "-f", "-q"], stdout=subprocess.DEVNULL, check=True)
    return read(path)


def check(name, ours, theirs):
    if ours != theirs or len(ours) == 0:
        sys.exit(f"{name}: {len(ours)} bytes of the library, {len(theirs)} of the command, or other ones")
    print(name)


def opened(path):
    return made("fraglab_open_path", None, path.encode(), ctypes.byref(OpenOptions(with_sites=1)))


def policy(text):
    return made("fraglab_policy_parse", text.encode())


def told(name, *arguments):
    text = made(name, *arguments)
    value = ctypes.string_at(text.value)
    library.fraglab_free(text)
    return value


def printed(*words):
    return subprocess.run(["./fraglab", *words, "--format", "jsonl"], stdout=subprocess.PIPE).stdout


several, oom = opened(DEVICES), opened(OOM)
for kind in "snapshot", "chrome":
    check(kind, taken("fraglab_run_write_memory", None, several, ALL_TRACES, policy("best-fit"), None, kind.encode(), None),
          written_by(f"--{kind}", "run", DEVICES, "--policy", "best-fit"))
small = RunOptions(capacity_bytes=4 << 30)
check("snapshot-at", taken("fraglab_run_write_memory", None, oom, ctypes.c_size_t(0), policy("pytorch:recorded"),
                           ctypes.byref(small), b"snapshot", ctypes.byref(FileOptions(at=b"oom"))),
      written_by("--snapshot", "run", OOM, "--policy", "pytorch:recorded", "--capacity", "4GiB", "--snapshot-at", "oom"))
check("placement", taken("fraglab_run_write_memory", None, oom, ctypes.c_size_t(0), policy("offline"), None, b"placement", None),
      written_by("--placement", "run", OOM, "--policy", "offline"))
check("driver log", taken("fraglab_run_write_memory", None, oom, ctypes.c_size_t(0), policy("pytorch:recorded"), ctypes.byref(small), b"driver-log", None),
      written_by("--driver-log", "run", OOM, "--policy", "pytorch:recorded", "--capacity", "4GiB"))
lines, expected = b"", b""
for at in "peak", "oom", "end", "700":
    for name in "pytorch:recorded", "best-fit":
        row = made("fraglab_run", None, oom, ctypes.c_size_t(0), policy(name), ctypes.byref(RunOptions(capacity_bytes=4 << 30, stats_at=at.encode())))
        lines += library.fraglab_result_json(row)
        expected += printed("run", OOM, "--policy", name, "--capacity", "4GiB", "--stats-at", at)
check("statistics", lines, expected)
call("fraglab_run_write", None, several, ALL_TRACES, policy("best-fit"), None, b"snapshot", f"{folder}/ours.zst".encode(), ctypes.byref(FileOptions(overwrite=1)))
packed = subprocess.run(["zstd", "-dc", f"{folder}/ours.zst"], stdout=subprocess.PIPE, check=True).stdout
check("compressed", packed, written_by("--snapshot", "run", DEVICES, "--policy", "best-fit"))
for kind in "fgt", "text":
    check(kind, taken("fraglab_recording_write_memory", several, kind.encode()), written_by("-o", "trace", "convert", DEVICES, "--to", kind))
check("minimalloc", taken("fraglab_recording_write_memory", oom, b"minimalloc"),
      written_by("-o", "trace", "convert", OOM, "--to", "minimalloc"))


class CutOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("first_event", ctypes.c_uint64), ("end_event", ctypes.c_uint64)]


class ReportOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("title", ctypes.c_char_p), ("command", ctypes.c_char_p), ("format", ctypes.c_char_p),
                ("policies", ctypes.c_void_p), ("policy_count", ctypes.c_size_t), ("overwrite", ctypes.c_int32),
                ("recordings", ctypes.POINTER(ctypes.c_void_p)), ("recording_count", ctypes.c_size_t)]


row = made("fraglab_run", None, oom, ctypes.c_size_t(0), policy("buddy"), None)
with open(f"{folder}/rows.jsonl", "wb") as file:
    file.write(library.fraglab_result_json(row))
for words, capacity in ([OOM], 4 << 30), ([f"{folder}/rows.jsonl", OOM, DEVICES], 0):
    typed = ["report", *words, *(["--capacity", str(capacity)] if capacity else [])]
    options = ReportOptions(title=b"Page", command=" ".join(["fraglab", *typed]).encode())
    paths = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    check("report", taken("fraglab_report_write_memory", None, paths, ctypes.c_size_t(len(words)), ctypes.byref(RunOptions(capacity_bytes=capacity)),
                          ctypes.byref(options)), written_by("-o", *typed, "--title", "Page"))
shown = (ctypes.c_void_p * 2)(oom, several)
options = ReportOptions(title=b"Page", command=f"fraglab report {OOM} {DEVICES}".encode(), recordings=shown, recording_count=2)
check("report of open recordings", taken("fraglab_report_write_memory", None, None, ctypes.c_size_t(0), None, ctypes.byref(options)),
      written_by("-o", "report", OOM, DEVICES, "--title", "Page"))


class FigureSetting(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class FigureOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("format", ctypes.c_char_p), ("policies", ctypes.c_void_p), ("policy_count", ctypes.c_size_t),
                ("settings", ctypes.POINTER(FigureSetting)), ("setting_count", ctypes.c_size_t)]


def drawn_from(kind):
    return {"heat": f"{folder}/sweep.jsonl", "ranks": DEVICES}.get(kind, OOM)


def figure(kind, path, **settings):
    listed = (FigureSetting * len(settings))(*[(name.encode(), value.encode()) for name, value in settings.items()])
    return told("fraglab_figure_csv", None, kind.encode(), (ctypes.c_char_p * 1)(path.encode()), ctypes.c_size_t(1), None,
                ctypes.byref(FigureOptions(settings=listed, setting_count=len(settings))))


with open(f"{folder}/sweep.jsonl", "wb") as file:
    for size in range(20, 23):
        row = made("fraglab_run", None, oom, ctypes.c_size_t(0), policy("buddy"), ctypes.byref(RunOptions(capacity_bytes=size << 30)))
        file.write(library.fraglab_result_json(row))
library.fraglab_figure_kind_at.restype = ctypes.c_char_p
figures = {"timeline": {"samples": "50"}, "heat": {"x": "device.capacity_bytes", "y": "policy.label"}}
ours, theirs = b"", b""
for index in range(10):
    kind = library.fraglab_figure_kind_at(ctypes.c_size_t(index)).decode()
    path = drawn_from(kind)
    settings = figures.get(kind, {})
    ours += figure(kind, path, **settings)
    theirs += subprocess.run(["./fraglab", "plot", kind, path, "-q", "--format", "csv", *[word for name, value in settings.items() for word in (f"--{name}", value)]],
                             stdout=subprocess.PIPE, check=True).stdout
check("figures", ours, theirs)
piece = made("fraglab_recording_cut", oom, ctypes.c_size_t(0), ctypes.byref(CutOptions(first_event=100, end_event=400)))
check("cut", taken("fraglab_recording_write_memory", piece, b"fgt"), written_by("-o", "trace", "cut", OOM, "--events", "100..400"))
# One recording whose settings are concluded, one of another framework, one that no policy explains, with and without a policy named.
lines, expected = b"", b""
for path in ("tests/data/snapshots/empty-with-gc.pickle", "tests/data/golden-peers/cupy-limit.jsonl.zst", OOM):
    for given in None, "pytorch:version=2.1", "best-fit":
        recording, words = opened(path), ["--policy", given] if given else []
        lines += told("fraglab_verify_json", None, recording, ctypes.c_size_t(0), policy(given) if given else None, None)
        expected += printed("verify", path, *words)
check("verify", lines, expected)
golden = [f"tests/data/{name}.jsonl.zst" for name in
          ("golden-nasty/limit-digits-2.9.1", "golden-nasty/refused-2.12.1", "golden-peers/cupy-limit", "golden-peers/tf-bfc-oom-g0")]
lines, expected = b"", b""
for path in golden:
    for given in None, "best-fit":
        named = policy(given) if given else None
        words = ["--policy", given] if given else []
        lines += told("fraglab_verify_golden_path", None, path.encode(), named, ctypes.c_uint64(0), None)
        expected += printed("verify", "--against", "golden", path, *words)
        lines += told("fraglab_verify_golden_memory", None, read(path), ctypes.c_size_t(len(read(path))), path.rsplit("/")[-1].encode(), named,
                      ctypes.c_uint64(1000), None)
        expected += printed("verify", "--against", "golden", "--check", "1000", path, *words)
if b'"is_identical":true' not in expected or b'"is_identical":false' not in expected:
    sys.exit("the golden logs are all the same, or all different")
check("golden", lines, expected)


class DrawingOptions(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("format", ctypes.c_char_p), ("title", ctypes.c_char_p), ("width", ctypes.c_uint64),
                ("height", ctypes.c_uint64), ("overwrite", ctypes.c_int32)]


def drawn(kind, path, words, settings, **options):
    """As the command draws it: to memory, and its own file."""
    listed = (FigureSetting * len(settings))(*[(name.encode(), value.encode()) for name, value in settings.items()])
    paths = (ctypes.c_char_p * 1)(path.encode())
    figure_options = FigureOptions(settings=listed, setting_count=len(settings))
    ours = taken("fraglab_figure_draw_memory", None, kind.encode(), paths, ctypes.c_size_t(1), None, ctypes.byref(figure_options),
                 ctypes.byref(DrawingOptions(**options)))
    theirs = written_by("-o", "plot", kind, path, *words, *[word for name, value in settings.items() for word in (f"--{name}", value)])
    # A pdf of cairo 1.17.6 or newer says inside a compressed stream when it was made.
    is_same = same_pdf.streams(ours) == same_pdf.streams(theirs) if b"/ObjStm" in theirs else ours == theirs
    return is_same and len(ours) > 100


if sys.argv[3:] == ["drawings"]:
    for index in range(10):
        kind = library.fraglab_figure_kind_at(ctypes.c_size_t(index)).decode()
        path = drawn_from(kind)
        for form in ("svg", "terminal") if kind != "map" else ("svg", "png", "pdf", "terminal"):
            if not drawn(kind, path, ["--format", form], figures.get(kind, {}), format=form.encode()):
                sys.exit(f"{kind} as {form} differs from that of the command")
    if not drawn("timeline", OOM, ["--format", "svg", "--title", "Mine", "--width", "500"], {}, format=b"svg", title=b"Mine", width=500):
        sys.exit("a title or a width counts for nothing")
    print("drawings")
