#!/usr/bin/env python3
"""Writes snapshot.json.gz, trace_plot.html.gz, trace_plot-2.0.html, kineto-2021.json.gz and
timeline.raw.json.gz beside itself, in the forms that PyTorch gives them. Run it at the root of the repository, behind make: the
snapshot is that of a run of fraglab's pytorch policy, with stacks that are made up."""
import base64
import gzip
import json
import os
import pickle
import subprocess
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))

PAGE = """
<!DOCTYPE html>
<html>
<head>
</head>
<body>
<script type="module">
import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"
const local_files = $SNAPSHOT
add_local_files(local_files, 'Active Memory Timeline')
</script>
</body>
"""

PAGE_2_0 = """
<!DOCTYPE html>
<html>
<head></head>
<body>
<script type="module">
import * as d3 from "https://cdn.jsdelivr.net/npm/d3@7.7.0/+esm";

let alloc_data = $PLOT_DATA

function process_alloc_data(fraction_of_memory_reported=1) {
}
</script>
</body>
"""


def frames(size):
    lines = [("model.py", 20 + size % 7, "forward"), ("train.py", 12, "step"), ("train.py", 31, "<module>")]
    return [{"name": name, "filename": f"/home/me/project/{file}", "line": line} for file, line, name in lines]


def snapshot():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.pickle")
        subprocess.run(["./fraglab", "run", os.path.join(FOLDER, "stalloc.txt"), "-p", "pytorch", "-q", "--snapshot", path],
                       check=True, stdout=subprocess.DEVNULL)
        with open(path, "rb") as file:
            found = pickle.load(file)
    for segment in found["segments"]:
        for block in segment["blocks"]:
            block["frames"] = frames(block.get("requested_size", 0)) if block["state"].startswith("active") else []
    for trace in found["device_traces"]:
        for entry in trace:
            entry["frames"] = frames(entry["size"])
    return found


def page(found):
    data = pickle.dumps(found)
    data += b"\x00" * (3 - len(data) % 3)
    files = [{"name": "snapshot.pickle", "base64": base64.b64encode(data).decode()}]
    return PAGE.replace("$SNAPSHOT", json.dumps(files))


def page_2_0(found):
    strings, suffixes, elements, actions, live = [], [], [], [], {}

    def intern(table, item):
        if item not in table:
            table.append(item)
        return table.index(item)

    for entry in found["device_traces"][0]:
        if entry["action"] == "alloc":
            lines = [f"{entry['size'] / 1024:.1f}KiB allocation"]
            lines += [f"{frame['filename']}:{frame['line']}:{frame['name']}" for frame in entry["frames"]]
            rest = None
            for line in reversed(lines):
                rest = intern(suffixes, (intern(strings, line), rest))
            live[entry["addr"]] = len(elements)
            actions.append(len(elements))
            elements.append({"size": entry["size"], "info": rest})
        elif entry["action"] == "free_completed":
            actions.append(live.pop(entry["addr"]))
    plot = {"actions": actions, "elements": elements, "suffix_table": suffixes, "string_table": strings,
            "initially_allocated": []}
    return PAGE_2_0.replace("$PLOT_DATA", json.dumps(plot))


def blocks(found):
    """(time, bytes) as the profiler saw them, below zero for a release; the CPU's are left out."""
    for time, entry in enumerate(found["device_traces"][0]):
        size = (entry["size"] + 511) // 512 * 512
        if entry["action"] in ("alloc", "free_completed"):
            yield 1623143089861000 + 7 * time, size if entry["action"] == "alloc" else -size


def kineto_2021(found):
    events = [{"ph": "i", "s": "t", "name": "[memory]", "pid": 25738, "tid": 25738, "ts": time,
               "args": {"Device Type": 1, "Device Id": 0, "Bytes": size}} for time, size in blocks(found)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=1)


def timeline(found):
    """Weights first, then activations, which are gradients from the middle of the file on."""
    events, sizes = [], list(blocks(found))
    for number, (time, size) in enumerate(sizes):
        category = 0 if number < 12 else 4 if abs(size) > 1 << 20 else 3
        if number < 4:
            events.append((-1, 1, size, category))
        else:
            events.append((time * 1000, 2 if size > 0 else 4, size, category))
        if number == len(sizes) // 2 and size > 0:
            events += [(time * 1000, 3, -size, category), (time * 1000, 3, size, 5)]
    return json.dumps(events)


def write(name, text):
    data = text.encode("utf-8")
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


recorded = snapshot()
write("snapshot.json.gz", json.dumps({"step": 3, "loss": float("nan"), "memory": recorded}))
write("trace_plot.html.gz", page(recorded))
write("trace_plot-2.0.html", page_2_0(recorded))
write("kineto-2021.json.gz", kineto_2021(recorded))
write("timeline.raw.json.gz", timeline(recorded))
for number, trace in enumerate(recorded["device_traces"]):
    requests = [entry["size"] for entry in trace if entry["action"] == "alloc"]
    print(f"device {number}: {len(requests)} requests of {sum(requests)} bytes")
