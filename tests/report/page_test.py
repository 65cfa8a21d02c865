"""Tests of the page of `fraglab report` in a browser: page_test.py NAME (tests/report/page.bats). Each is a function below."""
import base64
import gzip
import inspect
import json
import os
import pickle
import random
import subprocess
import sys

from page_driver import Page

OUT = os.environ.get("BATS_TEST_TMPDIR", "/tmp")
SAMPLE = "traces/samples/gpt-varlen.pickle.zst"
# Sixteen frames; the innermost are those of PyTorch.
DEPTH = 16


def place(name):
    return os.path.join(OUT, name)


def report(trace, *options, name="page.html"):
    subprocess.run(["./fraglab", "report", trace, "-q", "-f", "-o", place(name), *options], check=True)
    return place(name)


def write_trace(lines):
    stack = [f'frame "call_{i}" "/usr/lib/python3/site-packages/torch/nn/linear.py" {i + 1}' for i in range(DEPTH - 3)]
    own = ['frame "forward" "/home/me/model.py" 42', 'frame "forward" "/home/me/model.py" 420', 'frame "main" "/home/me/train.py" 7']
    inner = " ".join(str(i) for i in range(DEPTH - 3))
    sites = [f"site {inner} {DEPTH - 3} {DEPTH - 1}", f"site {inner} {DEPTH - 2} {DEPTH - 1}", f"site {DEPTH - 1}"]
    with open(place("trace.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(["# fraglab trace 1", *stack, *own, *sites, *lines]) + "\n")
    return place("trace.txt")


# Five requests: sizes and sites are told apart by the tests.
SMALL = ["alloc 0 4194304 site=1", "alloc 1 8388608 site=2", "alloc 2 209715200 site=2", "free 0", "alloc 3 2097152 site=3",
         "alloc 4 1048576", "free 2", 'mark "done"']


def small_page(**options):
    return Page(report(write_trace(SMALL), "--policy", "pytorch", "--policy", "best-fit"), **options)


def select(page, event, number=0):
    page.run(f"PAGE.explorers[{number}].select({event})")
    page.settle()


def centre_of_block(page, request, number=0):
    """The middle of a block on the map, in pixels of the canvas."""
    return page.run(f"""(() => {{ const {{ map, run }} = PAGE.explorers[{number}]; const block = run.blockOf({request}); let at;
        map.places.eachPiece(run.address[block], run.address[block] + run.bytes[block], (row, from, to) => {{
          at = at || [map.places.left + (from + to) / 2 * map.places.width, map.yOfRow(row) + map.places.rowHeight / 2 - 2]; }});
        return at; }})()""")


# ---- tests

def press_pins_a_block_with_its_whole_stack():
    with small_page() as page:
        page.wait_loaded()
        select(page, 5)
        page.press("map", *centre_of_block(page, 1), is_pixels=True)
        assert "8.00 MiB" in page.text("pin-title") and "model.py:420 forward" in page.text("pin-title")
        frames = page.run("Array.from(byId('pin-stack').children, (one) => one.textContent)")
        assert len(frames) == DEPTH - 1 and frames[0] == "linear.py:1 call_0" and frames[-1] == "train.py:7 main", frames
        assert page.run("byId('pin-stack').querySelector('.named').textContent") == "model.py:420 forward"
        assert page.run("byId('pin-stack').lastChild.title") == "/home/me/train.py:7"
        # It stays pinned at another event, in another run, and in the address.
        select(page, 1)
        page.choose("pick-run", "1")
        assert page.run("PAGE.explorers[0].pinned") == 1 and not page.run("byId('pin').hidden")
        page.wait("location.hash.endsWith('&block=1')")
        page.press("unpin")
        assert page.run("byId('pin').hidden")
        # Where nothing is, nothing is pinned.
        page.press("map", 2, 200, is_pixels=True)
        assert page.run("PAGE.explorers[0].pinned === undefined")
        page.run("location.hash = '#trace=0&policy=0&event=2&block=2'")
        page.reload()
        assert "200.00 MiB" in page.text("pin-title")
        assert page.console == []


def press_pins_in_the_timeline():
    with small_page() as page:
        page.wait_loaded()
        spot = page.run("""(() => { const { timeline, axis } = PAGE.explorers[0];
            return [axis.xOf(2.5), timeline.yOf(12582912 + 100 * 1048576)]; })()""")
        page.press("timeline", *spot, is_pixels=True)
        assert page.run("PAGE.explorers[0].pinned") == 2 and page.run("PAGE.explorers[0].event") == 2
        page.key("Escape")
        assert page.run("PAGE.explorers[0].pinned") is None


def areas_are_as_high_as_what_they_show():
    with Page(report(SAMPLE, "--policy", "pytorch")) as page:
        page.wait_loaded()
        for kind in ("blocks", "segments"):
            page.choose("pick-areas", kind)
            for view in ("axis.reset()", "axis.set(2000, 2400)", "axis.set(3000.5, 3020)"):
                page.run(f"PAGE.explorers[0].{view}")
                page.run("PAGE.explorers[0].redraw()")
                page.settle()
                worst = page.run("""(() => { const { timeline, run, areas } = PAGE.explorers[0]; const shown = timeline.areas; let worst = 0;
                    const levels = areas === 'segments' ? run.reserved : run.active; let columns = 0;
                    shown.eachColumn((column, live, count) => { let sum = 0; columns++;
                      for (let i = 0; i < count; i++) sum += shown.items.bytes[live[i]];
                      for (let k = 0; k < STACK_KINDS; k++) sum += shown.rest[column * STACK_KINDS + k];
                      worst = Math.max(worst, Math.abs(sum - levels[shown.samples[column]])); });
                    return columns > 1000 ? worst : -1; })()""")
                assert worst == 0, (kind, view, worst)
        # The highest moment of each column is shown: no peak is lost.
        page.choose("pick-areas", "blocks")
        page.run("PAGE.explorers[0].showAll()")
        page.settle()
        assert page.run("""(() => { const { timeline, run } = PAGE.explorers[0]; const s = timeline.areas.samples;
            return Math.max(...Array.from(s, (event) => run.active[event])) === run.active.reduce((a, b) => Math.max(a, b)); })()""")


def states_hold_what_a_recount_finds():
    with Page(report(SAMPLE, "--policy", "pytorch,best-fit")) as page:
        page.wait_loaded()
        assert page.run("""(() => { const { run, trace } = PAGE.explorers[0]; let x = 7; let wrong = 0;
            for (let i = 0; i < 60; i++) { x = x * 48271 % 2147483647; const event = x % trace.events;
              const slow = []; for (let b = 0; b < run.begin.length; b++) if (run.begin[b] <= event && run.end[b] > event) slow.push(b);
              slow.sort((a, b) => run.address[a] - run.address[b]);
              const state = run.stateAt(event); const ends = state.segments.reduce((sum, one) => sum + one.end - one.address, 0);
              if (slow.join() !== Array.from(state.blocks).join() || ends !== run.reserved[event]) wrong++;
              const parts = Object.values(state.parts).reduce((a, b) => a + b); if (parts !== state.reserved) wrong++; }
            return wrong; })()""") == 0


def map_shows_blocks_at_their_bytes():
    with small_page() as page:
        page.wait_loaded()
        select(page, 5)
        for request in (1, 2, 4):
            x, y = centre_of_block(page, request)
            same = page.run(f"""(() => {{ const e = PAGE.explorers[0]; const c = e.byId('map').getContext('2d').getImageData({x}, {y}, 1, 1).data;
                const wanted = pixelOf(e.colouring.palette()[e.colouring.blockCodes[e.run.blockOf({request})]]);
                return (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0 === wanted; }})()""")
            assert same, request
            page.hover("map", x, y, is_pixels=True)
            assert {1: "8.00 MiB", 2: "200.00 MiB", 4: "1.00 MiB"}[request] in page.text("tip")
        # The axis is in bytes: rows begin at multiples of a power of two.
        labels = page.run("Array.from({ length: 3 }, (_, row) => PAGE.explorers[0].map.places.rowLabel(row))")
        row = page.run("PAGE.explorers[0].map.places.rowBytes")
        assert row & (row - 1) == 0 and labels[0] == "0 B" and labels[2] == page.run(f"stepText({2 * row})"), labels


def map_goes_by_keys():
    with Page(report(SAMPLE, "--policy", "pytorch")) as page:
        page.wait_loaded()
        for layout in ("address", "segment"):
            page.choose("pick-layout", layout)
            page.focus("map")
            page.key("Home")
            addresses = []
            for _ in range(12):
                addresses.append(page.run("PAGE.explorers[0].run.address[PAGE.explorers[0].map.focused]"))
                page.key("ArrowRight")
            assert addresses == page.run("Array.from(PAGE.explorers[0].state.blocks.slice(0, 12), (b) => PAGE.explorers[0].run.address[b])")
            page.key("ArrowLeft")
            assert page.run("PAGE.explorers[0].map.place()") == 11
            assert "block" in page.text("spoken") and "requested at event" in page.text("spoken")
            row = """(() => { let at; const { map, run } = PAGE.explorers[0]; const b = map.focused;
                map.places.eachPiece(run.address[b], run.address[b] + run.bytes[b], (r) => { at = at === undefined ? r : at; }); return at; })()"""
            page.key("Home")
            before = page.run(row)
            page.key("ArrowDown")
            assert page.run(row) > before
            page.key("ArrowUp")
            assert page.run(row) <= before + 1
            page.key("End")
            page.key("Enter")
            assert page.run("PAGE.explorers[0].pinned === PAGE.explorers[0].run.request[PAGE.explorers[0].state.blocks.at(-1)]")
            assert page.text("spoken").startswith("pinned")
            page.key("Escape")
            assert page.run("PAGE.explorers[0].pinned") is None
        assert page.run("byId('map').tabIndex === 0 && byId('map').getAttribute('aria-label').includes('blocks')")


def flame(page):
    """The boxes that are drawn: path of the frames that called it, y, x, width, bytes."""
    page.run("byId('flame-panel').scrollIntoView({block: 'center'})")
    page.wait("PAGE.explorers[0].flame.boxes.length > 0")
    page.run("PAGE.explorers[0].flame.draw(true)")
    return page.run("""(() => { const { flame } = PAGE.explorers[0]; const path = (node) => (node === 0 ? [] :
        [...path(flame.tree.parent[node]), flame.tree.name(node)]);
        return flame.boxes.map((box) => [path(box.node).join('/'), box.y, box.x, box.width, flame.sums.bytes[box.node]]); })()""")


def flame_graph_adds_up_what_is_held_by_stack():
    with small_page() as page:
        page.wait_loaded()
        select(page, 4)  # 8 and 200 MiB of one site, 2 MiB of one without library frames
        boxes = {path: [y, x, width, size] for path, y, x, width, size in flame(page)}
        width = page.run("byId('flame-box').clientWidth")
        mib = 1 << 20
        assert boxes[""] == [0, 0, width, 210 * mib]
        assert boxes["train.py:7 main"][3] == 210 * mib
        deep = "train.py:7 main/model.py:420 forward"
        assert boxes[deep][:2] == [2 * 20, 0] and boxes[deep][3] == 208 * mib
        assert abs(boxes[deep][2] - width * 208 / 210) < 1e-6
        assert len(boxes) == 1 + DEPTH - 1, sorted(boxes)
        # A box that is pressed becomes as wide as the graph; its callers stay above it.
        page.press("flame", 20, 2 * 20 + 10, is_pixels=True)
        page.settle()
        boxes = {path: y_x_width for path, *y_x_width in flame(page)}
        assert boxes[deep][2] == width and boxes["train.py:7 main"][2] == width
        assert "model.py:420 forward" in page.text("flame-text") and "99.0%" in page.text("flame-text")
        page.press("flame-find")
        page.settle()
        assert page.run("byId('search').value") == '"model.py:420"' and "2 requests" in page.text("search-count")
        page.press("flame-whole")
        page.settle()
        assert page.run("byId('flame-whole').hidden") and flame(page)[0][0] == ""
        # What is found stands out, the rest is dimmed.
        page.search("size>100MiB")
        flame(page)
        assert page.run("PAGE.explorers[0].flame.sums.lit[0]") == 200 * mib
        # What is given back is not held any more.
        page.search("")
        select(page, 6)
        assert flame(page)[0][4] == 11 * mib
        assert page.console == []


def flame_graph_goes_by_keys():
    with small_page() as page:
        page.wait_loaded()
        select(page, 4)
        flame(page)
        page.focus("flame")
        for _ in range(2):
            page.key("ArrowDown")
        assert "model.py:420 forward" in page.text("spoken"), page.text("spoken")
        page.key("Enter")
        page.settle()
        assert page.run("PAGE.explorers[0].flame.zoomed") == page.run("PAGE.explorers[0].flame.focused") > 0
        page.key("ArrowUp")
        assert "train.py:7 main" in page.text("spoken")
        page.key("Escape")
        page.settle()
        assert page.run("PAGE.explorers[0].flame.zoomed") == 0


def treemap_holds_areas_in_proportion():
    """Each box lies in the one that called it, none over another, and what it is asked for beside the others decides its area."""
    with Page(report("traces/samples/gpt-train.pickle.zst", "--policy", "pytorch")) as page:
        page.wait_loaded()
        flame(page)
        page.choose("pick-flame-shape", "rectangles")
        page.settle()
        assert page.run("""(() => { const { flame } = PAGE.explorers[0]; const { boxes, sums } = flame; const faults = [];
            const right = (box) => box.x + box.width; const low = (box) => box.y + box.height;
            boxes.forEach((box, number) => {
              const { above } = box;
              if (above !== undefined && (box.x < above.x || box.y < above.y || right(box) > right(above) + 1e-6 || low(box) > low(above) + 1e-6))
                faults.push(`${number} is not in what called it`);
              for (const other of boxes) {
                if (other === box || other.above !== above) continue;
                if (Math.min(right(box), right(other)) - Math.max(box.x, other.x) > 1e-6 && Math.min(low(box), low(other)) - Math.max(box.y, other.y) > 1e-6)
                  faults.push(`${number} lies on another`);
                const scale = (one) => one.width * one.height / sums.bytes[one.node];
                if (Math.abs(scale(box) / scale(other) - 1) > 1e-6) faults.push(`${number} is not as large as its bytes`);
              }
            });
            return faults.slice(0, 3); })()""") == []
        count, names = page.run("(() => { const { boxes, tree } = PAGE.explorers[0].flame; return [boxes.length, boxes.map((box) => tree.name(box.node))]; })()")
        assert count > 20 and names[0] == "all that is held"
        # Keys go from a box into it; Enter makes it as large as the graph, below the whole.
        page.focus("flame")
        for _ in range(2):
            page.key("ArrowDown")
        page.key("Enter")
        page.settle()
        zoomed, boxes = page.run("(() => { const { boxes, zoomed } = PAGE.explorers[0].flame; return [zoomed, boxes.slice(0, 2).map((box) => [box.node, box.x, box.width])]; })()")
        width = page.run("byId('flame-box').clientWidth")
        assert zoomed > 0 and boxes == [[0, 0, width], [zoomed, 0, width]]
        page.press("flame", 20, 10, is_pixels=True)  # the row of the whole
        page.settle()
        assert page.run("PAGE.explorers[0].flame.zoomed") == 0
        assert page.console == []


def flame_graphs_of_large_recordings_add_up():
    with Page(report("traces/samples/gpt-train.pickle.zst", "--policy", "pytorch")) as page:
        page.wait_loaded()
        flame(page)
        assert page.run("""(() => { const { trace, run, flame } = PAGE.explorers[0]; let wrong = 0;
            for (let event = 0; event < trace.events; event += 997) {
              const sums = new FlameSums(flame.tree, run.stateAt(event), undefined); const held = new Map();
              for (let i = 0; i < trace.requests; i++) { if (trace.begin[i] > event || trace.free[i] <= event) continue;
                for (let f = 1; f < trace.sites[trace.site[i]].length; f++) { const key = trace.sites[trace.site[i]].slice(f).join();
                  held.set(key, (held.get(key) || 0) + trace.bytes[i]); } }
              const path = (node) => (node === 0 ? [] : [flame.tree.frame[node], ...path(flame.tree.parent[node])]);
              for (let node = 1; node < flame.tree.frame.length; node++)
                if (sums.bytes[node] !== (held.get(path(node).join()) || 0)) wrong++;
              if (sums.bytes[0] !== run.requested[event]) wrong++; }
            return wrong; })()""") == 0


def write_version(name, lines, forward, step):
    """A program whose lines moved, and whose script has another name: forward() and step() are called by it."""
    frames = [f'frame "forward" "/{name}/model.py" {forward}', f'frame "step" "/{name}/model.py" {step}', f'frame "<module>" "/{name}/{name}.py" 7']
    with open(place(f"{name}.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(["# fraglab trace 1", *frames, "site 0 2", "site 1 2", *lines]) + "\n")
    return place(f"{name}.txt")


def two_views_show_what_changed():
    mib = 1 << 20
    before = write_version("before", [f"alloc 0 {8 * mib} site=1", f"alloc 1 {4 * mib} site=2", "free 1"], 42, 60)
    after = write_version("after", [f"alloc 0 {8 * mib} site=1", f"alloc 1 {6 * mib} site=2", f"alloc 2 {64 * mib} site=2", "free 2", "free 1"], 43, 60)
    subprocess.run(["./fraglab", "report", before, after, "-q", "-f", "-p", "pytorch,best-fit", "-o", place("page.html")], check=True)
    with Page(place("page.html")) as page:
        page.wait_loaded()
        assert page.run("byId('flame-colours').hidden")
        page.press("open-view")
        page.wait("PAGE.explorers.length === 2 && PAGE.explorers[1].state !== undefined")
        assert page.run("PAGE.explorers.map((one) => one.trace.number).join()") == "0,1"
        # Each stands at its own peak until a cursor is moved.
        assert page.run("PAGE.explorers.map((one) => one.event).join()") == "0,2"
        page.choose("pick-sync", "event")
        select(page, 1)
        assert page.run("PAGE.explorers[1].event") == 1  # the cursors go together
        flame(page)
        changes = page.run("""(() => { const { flame } = PAGE.explorers[0]; const found = {};
            for (const box of flame.boxes) { const { here, there } = flame.changeOf(box); found[flame.tree.name(box.node)] = here - there; }
            return found; })()""")
        # forward() moved by a line and holds as much; step() holds 2 MiB less here than in what is beside.
        assert changes == {"all that is held": -2 * mib, "before.py:7 <module>": -2 * mib, "model.py:42 forward": 0, "model.py:60 step": -2 * mib}, changes
        colours = page.run("PAGE.explorers[0].flame.boxes.map((box) => PAGE.explorers[0].flame.changeFill(box)[0])")
        assert colours[2] == page.run("styleColour('other')") and colours[3] == page.run("styleColour('good')"), colours
        page.press("close-second")
        page.settle()
        assert page.run("byId('flame-colours').hidden") and page.run("PAGE.explorers.length") == 1
    # A page of one recording: the next policy.
    with small_page() as page:
        page.wait_loaded()
        select(page, 3)
        page.press("open-view")
        page.wait("PAGE.explorers.length === 2 && PAGE.explorers[1].state !== undefined")
        assert page.run("PAGE.explorers.map((one) => one.run.label).join()") == "pytorch,best-fit"
        assert page.run("PAGE.explorers[1].event") == 3
        assert page.console == []


def purposes_are_those_of_the_call_stacks():
    with Page(report("traces/samples/gpt-train.pickle.zst", "--policy", "pytorch")) as page:
        page.wait_loaded()
        page.choose("pick-colour", "purpose")
        shown = page.run("Array.from(byId('sites').tBodies[0].rows).filter((row) => !row.hidden).map((row) => row.cells[0].innerText.trim())")
        assert {"activations", "weights", "the optimizer: its state and what its step needs"} <= set(shown), shown
        drawn = subprocess.run(["./fraglab", "plot", "sites", "traces/samples/gpt-train.pickle.zst", "-q", "--by", "purpose", "--format", "csv"],
                               check=True, capture_output=True, text=True).stdout
        layers = [line.split(",") for line in drawn.splitlines() if line.startswith("layer,")]
        select(page, int(layers[0][1]))
        held = page.run("(() => { const { state, groups } = PAGE.explorers[0]; return sumGroups(state, groups).map((sum) => sum.bytes); })()")
        assert sorted(held) == sorted(int(layer[3]) for layer in layers if layer[3] != "0"), (held, layers)


def events_are_listed_around_the_cursor():
    trace = place("long.txt")
    with open(trace, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, "tests/report/page_trace.py", "400000"], stdout=file, check=True)
    with Page(report(trace, "--policy", "best-fit")) as page:
        page.wait_loaded()
        line = """(() => { const one = document.querySelector('.event-line.selected'); const box = byId('events').getBoundingClientRect();
            const at = one.getBoundingClientRect(); return at.top >= box.top - 1 && at.bottom <= box.bottom + 1 ? one.textContent : 'hidden'; })()"""
        for event in (0, 123456, 399999, 77):
            select(page, event)
            assert page.run(line).startswith(f"{event:,}"), (event, page.run(line))
            assert page.run("document.querySelectorAll('#events .event-line').length") < 40
        page.focus("events")
        for key, wanted in (("ArrowDown", 78), ("ArrowDown", 79), ("ArrowUp", 78), ("Home", 0), ("End", 399999)):
            page.key(key)
            assert page.run("PAGE.explorers[0].event") == wanted and page.run(line).startswith(f"{wanted:,}")
        page.key("Enter")
        assert page.run("PAGE.explorers[0].pinned === PAGE.explorers[0].trace.requestAt[399999]")
        # The wheel goes by lines even where the box cannot be as high as all of them.
        select(page, 200000)
        first = page.run("PAGE.explorers[0].list.first")
        page.wheel("events", 66)
        assert page.run("PAGE.explorers[0].list.first") == first + 3
        page.run("document.querySelectorAll('#events .event-line')[5].click()")
        page.settle()
        assert page.run("PAGE.explorers[0].event") == first + 3 + 5


def events_say_what_the_policy_did():
    with small_page() as page:
        page.wait_loaded()
        select(page, 2)
        texts = page.run("Array.from(document.querySelectorAll('#events .event-line:not([hidden])'), (one) => Array.from(one.children, (c) => c.textContent))")
        assert texts[2][2:] == ["alloc", "200.00 MiB", "model.py:420 forward", "+200.00 MiB reserved"], texts[2]
        assert texts[3][2] == "free" and texts[7][2] == "mark done"


def search_finds_by_file_function_size_and_text():
    with small_page() as page:
        page.wait_loaded()
        found = "Array.from(PAGE.explorers[0].search.events)"
        for text, events in (("size>100MiB", [2]), ("size<=2MiB", [4, 5]), ("model.py:42", [0]), ("model.py:420", [1, 2]), ("model.py:4", []),
                             ("model.py", [0, 1, 2]), ("/home/me/train.py", [0, 1, 2, 4]), ("func:main", [0, 1, 2, 4]), ("file:linear", [0, 1, 2]),
                             ("forward size>5MiB", [1, 2]), ("-model.py", [4, 5]), ("MODEL.PY:420", [1, 2]), ("size=1048576", [5]),
                             ('"train.py:7 main"', [0, 1, 2, 4]), ("event>=4", [4, 5]), ("life<4", [0, 4, 5]), ("stream:0x0", [0, 1, 2, 4, 5]),
                             ("call_12", [0, 1, 2])):
            page.search(text)
            assert page.run(found) == events, (text, page.run(found))
        for text, sentence in (("size>5XB", "unknown unit"), ("size>many", "is no number"), ("life<3MiB", "has a unit"), ("file:", "searches for nothing")):
            assert sentence in page.search(text), (text, page.text("search-count"))
            assert page.run("byId('search').getAttribute('aria-invalid')") == "true"
        assert page.search("model.py:420") == "2 requests, 208.00 MiB in all"
        assert page.run("Array.from(PAGE.explorers[0].lit)") == [0, 1, 1, 0, 0]
        page.key("Enter")
        assert page.run("PAGE.explorers[0].event") in (1, 2)
        page.key("Enter")
        page.key("Enter", shift=True)
        page.press("search-next")
        assert page.run("PAGE.explorers[0].event") in (1, 2) and "of 2 requests" in page.text("search-count")
        assert page.run("document.querySelectorAll('#events .event-line.found:not([hidden])').length") >= 2
        page.press("search-only")
        assert page.run("document.querySelectorAll('#events .event-line:not([hidden])').length") == 2
        # What is not found is dimmed on the map, what is found is not.
        select(page, 5)
        for request, is_lit in ((2, True), (4, False)):
            x, y = centre_of_block(page, request)
            assert is_lit == page.run(f"""(() => {{ const e = PAGE.explorers[0]; const c = e.byId('map').getContext('2d').getImageData({x}, {y}, 1, 1).data;
                return (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0 === pixelOf(e.colouring.palette()[e.colouring.blockCodes[e.run.blockOf({request})]]); }})()""")
        # And ticks stand at the foot of the timeline and in the overview.
        tick = """(() => {{ const e = PAGE.explorers[0]; const c = e.byId('{0}').getContext('2d').getImageData(Math.round({1}) + 0, {2}, 1, 1).data;
            return (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0 === pixelOf(styleColour('found')); }})()"""
        assert page.run(tick.format("timeline", "e.axis.xOf(2)", 320 - 34 - 4)) and page.run(tick.format("minimap", "e.minimap.xOfValue(2)", 40))
        page.key("Escape")
        page.search("")
        assert page.run("PAGE.explorers[0].lit === undefined && PAGE.explorers[0].list.count") == 8


def overview_moves_what_the_timeline_shows():
    with Page(report(SAMPLE, "--policy", "pytorch")) as page:
        page.wait_loaded()
        view = "PAGE.explorers[0].axis.view"
        whole = page.run(view)
        page.focus("timeline")
        page.key("+")
        page.key("+")
        page.focus("minimap")
        page.key("Home")
        assert page.run(view)["from"] == whole["from"]
        page.key("End")
        assert page.run(view)["to"] == whole["to"]
        page.key("ArrowLeft")
        assert whole["from"] < page.run(view)["from"] < page.run(view)["to"] < whole["to"]
        page.press("minimap", 0.2, 0.5)
        middle = page.run("(() => { const { axis, minimap } = PAGE.explorers[0]; return minimap.xOfValue((axis.view.from + axis.view.to) / 2); })()")
        width = page.run("byId('minimap').getBoundingClientRect().width")
        assert abs(middle - 0.2 * width) < 3 or page.run(view)["from"] == whole["from"], (middle, width)
        assert "are seen" in page.run("byId('minimap').getAttribute('aria-valuetext')")
        # Over the axis of bytes the wheel zooms bytes; a press shows all again.
        before = page.run("PAGE.explorers[0].timeline.most")
        page.wheel("timeline", -300, 0.02, 0.8)
        assert page.run("PAGE.explorers[0].timeline.most - PAGE.explorers[0].timeline.low") < before
        page.press("zoom-out")
        assert page.run(view) == whole and page.run("PAGE.explorers[0].timeline.low") == 0


CONTRAST = """(() => { const light = (c) => { const p = [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16) / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2]; };
    const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    return Math.min(...['ink', 'quiet', 'accent', 'bad', 'good'].flatMap((one) => ['ground', 'panel'].map((on) => ratio(styleColour(one), styleColour(on))))); })()"""


def theme_follows_the_system_until_the_button_is_pressed():
    path = report(write_trace(SMALL), "--policy", "pytorch")
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
    with Page(path) as page:
        page.wait_loaded()
        assert page.run(ground) == light and page.text("theme") == "Theme: as the system"
        page.set_dark(True)
        page.settle()
        assert page.run(ground) == dark and page.run("isDark()") and page.run(CONTRAST) >= 4.5, page.run(CONTRAST)
        page.press("theme")
        assert page.run(ground) == light and page.text("theme") == "Theme: light" and page.run(CONTRAST) >= 4.5, page.run(CONTRAST)
        # Remembered.
        page.reload()
        assert page.run(ground) == light
        page.press("theme")
        assert page.run(ground) == dark and page.run("document.querySelector('meta[name=color-scheme]').content") == "dark"
        page.press("theme")
        assert page.run(ground) == dark and page.text("theme") == "Theme: as the system"
        page.set_dark(False)
        page.settle()
        assert page.run(ground) == light
        # Paper is light.
        page.set_dark(True)
        page.settle()
        page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        page.run("window.dispatchEvent(new Event('beforeprint'))")
        assert page.run(ground) == light and not page.run("isDark()")
        assert page.console == []


def paper_shows_all_rows():
    with Page(report("traces/samples/gpt-train.pickle.zst", "--policy", "pytorch")) as page:
        page.wait_loaded()
        page.call("Emulation.setEmulatedMedia", media="print")
        page.run("PAGE.explorers[0].select(3146)")
        page.run("window.dispatchEvent(new Event('beforeprint'))")
        rows = page.run("Array.from(document.querySelectorAll('#sites tbody tr:not([hidden])'), (one) => [one.textContent, one.getBoundingClientRect().height])")
        assert len(rows) > 16 and all(text != "" and height > 20 for text, height in rows), rows
        box = page.run("byId('sites').parentElement.getBoundingClientRect().height")
        assert box > 29 * len(rows), (box, len(rows))
        assert page.run("byId('events').offsetParent === null && byId('theme').offsetParent === null")


def narrow_screens_need_no_scrolling_sideways():
    path = report(SAMPLE, "--policy", "pytorch,best-fit")
    for width in (360, 700):
        with Page(path, width=width, height=800) as page:
            page.wait_loaded()
            assert page.run("document.scrollingElement.scrollWidth") <= width
            page.press("map", 0.5, 0.3)
            assert page.run("document.scrollingElement.scrollWidth") <= width
            assert page.console == []


def everything_that_is_pressed_has_a_name():
    with small_page() as page:
        page.wait_loaded()
        page.press("map", *centre_of_block(page, 1), is_pixels=True)
        tree = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = ("button", "combobox", "textbox", "searchbox", "slider", "checkbox", "listbox", "scrollbar", "application", "spinbutton", "link")
        pressed = [one for one in tree if not one.get("ignored") and one["role"]["value"] in roles]
        assert len(pressed) > 25
        for one in pressed:
            assert one.get("name", {}).get("value"), one
        # Tab goes to each once, in the order in which they stand.
        order = page.run("""Array.from(document.querySelectorAll('button, select, input, canvas[tabindex], [role=listbox]'))
            .filter((one) => one.offsetParent !== null && !one.disabled).every((one) => one.tabIndex === 0)""")
        assert order


# ---- a second recording

class Recorder:
    """A small caching allocator that records itself as torch.cuda.memory does. What it holds after each event is kept."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.events = []
        self.truth = []
        self.segments = {}  # address: [bytes, {offset: (bytes, requested)}]
        self.next = 0x7F0000000000

    def note(self, action, address, size, frames):
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": 10**9 + 7 * len(self.events), "frames": frames})
        self.truth.append((sum(one[0] for one in self.segments.values()),
                           sum(b for one in self.segments.values() for b, _ in one[1].values())))

    def alloc(self, size):
        rounded = (size + 511) // 512 * 512
        frames = [{"filename": "/x/torch/nn/f.py", "line": 1, "name": "linear"}, {"filename": "/me/model.py", "line": size % 5, "name": "forward"}]
        for address, (whole, blocks) in self.segments.items():
            at = 0
            for offset in [*sorted(blocks), whole]:
                if offset - at >= rounded:
                    blocks[at] = (rounded, size)
                    return self.note("alloc", address + at, size, frames)
                at = offset + blocks[offset][0] if offset < whole else at
        whole = max(2 << 20, rounded)
        self.segments[self.next] = [whole, {}]
        self.note("segment_alloc", self.next, whole, frames)
        self.segments[self.next][1][0] = (rounded, size)
        self.note("alloc", self.next, size, frames)
        self.next += whole + (self.chance.randrange(3) << 21)

    def free(self):
        address = self.chance.choice([a for a, one in self.segments.items() if one[1]])
        offset = self.chance.choice(list(self.segments[address][1]))
        _, size = self.segments[address][1][offset]
        self.note("free_requested", address + offset, size, [])
        del self.segments[address][1][offset]
        self.note("free_completed", address + offset, size, [])
        if not self.segments[address][1] and self.chance.random() < 0.2:
            whole, _ = self.segments.pop(address)
            self.note("segment_free", address, whole, [])

    def run(self, count):
        while len(self.events) < count:
            if self.chance.random() < 0.55 or not any(one[1] for one in self.segments.values()):
                self.alloc(self.chance.choice((300, 5000, 70000, 1 << 20, 3 << 20)))
            else:
                self.free()
        return self

    def snapshot(self, first):
        """As a ring buffer leaves it: without the events before the first."""
        segments = []
        for address, (whole, blocks) in self.segments.items():
            listed, at = [], 0
            for offset in [*sorted(blocks), whole]:
                if offset > at:
                    listed.append({"size": offset - at, "requested_size": 0, "state": "inactive"})
                if offset < whole:
                    listed.append({"size": blocks[offset][0], "requested_size": blocks[offset][1], "state": "active_allocated", "frames": []})
                    at = offset + blocks[offset][0]
            segments.append({"device": 0, "address": address, "total_size": whole, "stream": 0, "segment_type": "large", "blocks": listed})
        return {"segments": segments, "device_traces": [self.events[first:]], "allocator_settings": {}}


def dropped_snapshot_shows_what_its_allocator_held():
    with Page(report(write_trace(SMALL), "--policy", "pytorch")) as page:
        page.wait_loaded()
        for protocol, first in ((4, 0), (2, 400), (5, 700), ("gzip", 333), ("json", 200), (3, 150), ("html", 90)):
            recorder = Recorder(first).run(900)
            snapshot = recorder.snapshot(first)
            data = json.dumps(snapshot).encode() if protocol == "json" else pickle.dumps(snapshot, protocol if isinstance(protocol, int) else 4)
            if protocol == "html":  # as torch.cuda._memory_viz trace_plot writes it
                files = [{"name": "snapshot.pickle", "base64": base64.b64encode(pickle.dumps(snapshot)).decode()}]
                data = f"\n<!DOCTYPE html>\n<html><head></head><body><script type=\"module\">\nconst local_files = {json.dumps(files)}\n</script>".encode()
            with open(place("mine.pickle"), "wb") as file:
                file.write(gzip.compress(data) if protocol == "gzip" else data)
            page.drop(place("mine.pickle"))
            assert page.problem() == "" and page.text("explorer-title-2") == "mine.pickle", (protocol, page.problem())
            start = page.run("PAGE.explorers[1].trace.start")
            for event in range(0, 900 - first, 13):
                state = page.run(f"""(() => {{ const e = PAGE.explorers[1]; const s = e.run.stateAt({event} + e.trace.start);
                    return [s.reserved, s.allocated + s.parts.waiting, s.segments.reduce((sum, one) => sum + one.free, 0)]; }})()""")
                reserved, active = recorder.truth[first + event]
                # A block that waits for nothing is freed in two events; the truth counts it to the second.
                assert state[:2] == [reserved, active] and state[2] == reserved - active, (protocol, event, state, reserved, active)
            assert start == page.run("PAGE.explorers[1].trace.requests") - sum(one["action"] == "alloc" for one in recorder.events[first:])
        assert page.run("PAGE.explorers[1].trace.groups.names").count("without a call stack") <= 1
        names = page.run("PAGE.explorers[1].trace.groups.names")
        # A snapshot does not say what its call sites are for.
        assert [page.run(f"byId('pick-colour{suffix}').querySelector('[value=purpose]').disabled") for suffix in ("", "-2")] == [False, True]
        # The list of torch.cuda.memory_snapshot(): the last state alone.
        with open(place("list.pickle"), "wb") as file:
            pickle.dump(snapshot["segments"], file)
        page.drop(place("list.pickle"))
        state = page.run("(() => { const s = PAGE.explorers[1].state; return [s.reserved, s.allocated, s.blocks.length]; })()")
        assert page.problem() == "" and state[:2] == list(recorder.truth[-1]) and state[2] > 20, (page.problem(), state)
        assert any(name.startswith("model.py:") for name in names)
        assert page.console == []


def cursors_go_together():
    path = report(SAMPLE, "--policy", "best-fit", name="other.html")
    with Page(report(SAMPLE, "--policy", "pytorch")) as page:
        page.wait_loaded()
        page.drop(path)
        assert page.problem() == "" and page.text("explorer-title-2") == "other.html"
        both = "PAGE.explorers.map((one) => one.event)"
        assert page.run("byId('pick-sync').value") == "event"
        select(page, 1234)
        assert page.run(both) == [1234, 1234]
        select(page, 77, number=1)
        assert page.run(both) == [77, 77]
        page.choose("pick-sync", "off")
        select(page, 500)
        assert page.run(both) == [500, 77]
        page.choose("pick-sync", "share")
        assert page.run(both) == [500, 500]
        # The second is searched, pinned and coloured for itself.
        page.search("size>1MiB", suffix="-2")
        assert page.run("PAGE.explorers[0].lit === undefined && PAGE.explorers[1].lit !== undefined")
        assert page.run("new Set(Array.from(document.querySelectorAll('[id]'), (one) => one.id)).size === document.querySelectorAll('[id]').length")
        assert page.run("Array.from(document.querySelectorAll('[aria-labelledby]')).every((one) => byId(one.getAttribute('aria-labelledby')) !== null)")
        page.drop(path)
        assert page.run("document.querySelectorAll('.explorer').length") == 2
        page.press("close-second")
        assert page.run("PAGE.explorers.length") == 1 and page.run("byId('explorer-2')") is None
        select(page, 42)
        assert page.run("PAGE.explorers[0].event") == 42 and page.console == [], page.console


class Evil:
    def __reduce__(self):
        return os.system, (f"touch {place('evil')}",)


def refused(page, data, sentence, name="bad.pickle"):
    with open(place("bad"), "wb") as file:
        file.write(data)
    page.drop(place("bad"), name)
    assert sentence in page.problem() and page.problem().startswith(f"{name} cannot be shown: "), (sentence, page.problem())
    assert page.run("PAGE.explorers.length") == 1 and page.run("byId('explorer-2')") is None


def bad_files_are_refused_in_a_sentence():
    path = report(write_trace(SMALL), "--policy", "pytorch")
    with open(path, "rb") as file:
        html = file.read()
    good = pickle.dumps(Recorder(1).run(60).snapshot(0))
    with Page(path) as page:
        page.wait_loaded()
        before = page.run("byId('explorer').dataset.shown")
        for data, sentence in ((b"", "it is empty"), (b"\x28\xb5\x2f\xfd1234", "zstd -d"), (b"PK\x03\x04", "unpack it first"), (b"hello there", "neither a snapshot"),
                               (good[:200], "ends too early"), (pickle.dumps(Evil()), "asks for a class"), (pickle.dumps(Evil(), 2), "asks for a"),
                               (pickle.dumps({"a": 1}), "neither 'segments' nor 'device_traces'"), (pickle.dumps([1]), "a segment of device 0: 'address' is undefined"),
                               (pickle.dumps({"segments": 3}), "is no list"), (pickle.dumps({"segments": [], "device_traces": [[]]}), "nothing was recorded"),
                               (pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": "x", "size": 1}]]}), "expected a number of bytes"),
                               (b"\x80\x05\x8b\xff\xff\xff\x7f", "bytes; a snapshot has none"), (b"\x80\x04j\x05\x00\x00\x00.", "has not stored"),
                               (gzip.compress(gzip.compress(good)), "compressed twice"), (b"\x1f\x8b\x08\x00broken", ""), (b'{"segments": ', ""),
                               (b"<!DOCTYPE html><p>hello", "neither a report of fraglab nor"), (html.replace(b"fraglab.report/2", b"fraglab.report/1"), "another version"),
                               (html.replace(b'id="data-0-run-0">\n', b'id="data-0-run-0">\nAAAA'), ""),
                               (html.replace(b'"requests":5', b'"requests":500'), "end too early"), (html.replace(b'"requests":5', b'"requests":5e15'), "")):
            refused(page, data, sentence)
        assert not os.path.exists(place("evil"))
        select(page, 3)
        assert before.split()[:2] == page.run("byId('explorer').dataset.shown").split()[:2]
        assert page.console == [], page.console


def damaged_pickles_never_break_the_page():
    seed = int(os.environ.get("FRAG_SEED", "5"))
    data = pickle.dumps(Recorder(2).run(40).snapshot(10), 4)
    with Page(report(write_trace(SMALL), "--policy", "pytorch")) as page:
        page.wait_loaded()
        kinds = page.run(f"""(async () => {{ const good = Uint8Array.from({list(data)}); let x = {seed}; const kinds = {{ read: 0, refused: 0, other: [] }};
            const next = (n) => (x = x * 48271 % 2147483647) % n;
            for (let i = 0; i < 3000; i++) {{ let bytes = good.slice();
              for (let k = next(4); k >= 0; k--) bytes[next(bytes.length)] = next(256);
              if (next(8) === 0) bytes = bytes.slice(0, next(bytes.length));
              try {{ const traces = new SnapshotSource(new PickleReader(bytes).read(), 'x').traces();
                for (const trace of traces) {{ if (trace.events > 1e6) continue; await trace.load(); await trace.runs[0].load(); trace.runs[0].prepare();
                  trace.runs[0].stateAt(trace.last); }} kinds.read++; }}
              catch (wrong) {{ if (wrong instanceof TypeError || wrong instanceof ReferenceError) kinds.other.push(wrong.stack); kinds.refused++; }} }}
            return kinds; }})()""")
        assert kinds["read"] > 100 and kinds["refused"] > 1000 and kinds["other"] == [], kinds


def data_are_read_from_the_folder_beside():
    trace = write_trace([*SMALL, 'mark "</script><script>document.title = 1</script>"'])
    options = ("--policy", "pytorch", "--policy", "best-fit")
    inside = report(trace, *options, name="inside.html")
    folder = place("its data #1%\"<b>")
    beside = report(trace, *options, "--data-dir", folder, name="beside.html")
    state = """JSON.stringify([PAGE.explorers[0].state.parts, [...PAGE.explorers[0].run.address], PAGE.explorers[0].trace.marks,
        PAGE.explorers[0].drawnRuns().map((run) => [...run.reserved]), document.title])"""
    with Page(inside) as page:
        page.wait_loaded()
        wanted = page.run(state)
        assert not page.console, page.console
    with open(beside, encoding="utf-8") as file:
        text = file.read()
    pieces = sorted(os.listdir(folder))
    assert len(pieces) == 4 and all(name in text for name in pieces)
    assert "frame-src 'self'; " in text and "frame-src" not in open(inside, encoding="utf-8").read()
    with Page(beside) as page:
        page.wait_loaded()
        assert page.run(state) == wanted
        assert not page.console, page.console
        # What is not text, or not of its frame, is not taken; frames are gone.
        assert page.run("document.querySelectorAll('iframe').length") == 0
    # Another page of other data leaves these as they are.
    report(write_trace(SMALL[:3]), *options, "--data-dir", folder, name="other.html")
    with Page(beside) as page:
        page.wait_loaded()
        assert page.run(state) == wanted


def data_that_are_missing_are_named():
    folder = place("gone")
    page_path = report(write_trace(SMALL), "--policy", "pytorch", "--data-dir", folder, name="gone.html")
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    with Page(page_path) as page:
        page.wait("!document.getElementById('problem').hidden")
        said = page.run("document.getElementById('problem').textContent")
        assert said.startswith("The timeline and the memory map cannot be shown: gone/") and "is missing" in said, said
    small = report(write_trace(SMALL), "--policy", "pytorch")
    with Page(small) as page:
        page.wait_loaded()
        page.drop(page_path)
        page.wait("!document.getElementById('problem').hidden")
        assert "its data are in a folder beside it" in page.run("document.getElementById('problem').textContent")


def areas_of_long_runs_add_up():
    """Levels of detail against sums over all events and blocks; more are born on the screen than are looked at one by one."""
    trace = place("long.txt")
    with open(trace, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, "tests/report/page_trace.py", "150000"], stdout=file, check=True)
    check = """(() => { const { run, timeline } = PAGE.explorers[0]; const { areas, edges } = timeline; const wrong = [];
        const alive = (item, event) => run.begin[item] <= event && run.end[item] > event;
        areas.eachColumn((column, live, count) => {
          const event = areas.samples[column];
          let [from, to] = [areas.edges[column], Math.min(areas.edges[column + 1], run.active.length)];
          for (let at = from; at < to; at++) if (run.active[at] > run.active[event] || run.active[at] === run.active[event] && at < event) wrong.push(at);
          let sum = 0;
          for (let i = 0; i < count; i++) { sum += run.bytes[live[i]]; if (!alive(live[i], event)) wrong.push(-1); }
          for (let kind = 0; kind < STACK_KINDS; kind++) {
            const rest = areas.rest[column * STACK_KINDS + kind]; sum += rest; if (rest < 0) wrong.push(-2); }
          if (sum !== run.active[event]) wrong.push(-3);
        });
        for (const [first, end] of [[0, 1], [3, 40], [15, 4097], [4096, 65536], [77, 149999], [149990, 150000]]) {
          const values = run.active.subarray(first, end); run.activeExtremes.between(first, end);
          const [low, high] = [Math.min, Math.max].map((which) => values.reduce((one, other) => which(one, other)));
          if (run.activeExtremes.low !== low || run.activeExtremes.high !== high) wrong.push(-4); }
        return [wrong.slice(0, 5), areas.chosen.length, areas.columnCount]; })()"""
    with Page(report(trace, "--policy", "best-fit", name="long.html")) as page:
        page.wait_loaded()
        page.run("PAGE.explorers[0].timeline.bytesView = { low: 0, high: 2 ** 29 }") # so that blocks are high enough
        for factor in (1, 0.5, 0.3, 0.05, 0.1):
            page.run(f"PAGE.explorers[0].timeline.forget(); PAGE.explorers[0].axis.zoom({factor}, 500)")
            page.settle()
            wrong, chosen, columns = page.run(check)
            assert wrong == [] and 0 < chosen <= 4000 and columns > 1000, (factor, wrong, chosen, columns)
        page.search("size>1MiB")
        assert page.run(check)[0] == []
        assert not page.console, page.console


def long_runs_step_as_fast_as_short_ones():
    """A step looks at what is held, not at what has happened: 300,000 events take at most three times as long as 6,000."""
    from bench_page import SLIDER, per_step
    took = {}
    for events in (6000, 300000):
        with open(place("trace.txt"), "w", encoding="utf-8") as file:
            text = subprocess.run([sys.executable, "tests/report/page_trace.py", str(events)], capture_output=True, check=True, text=True).stdout
            file.write(text)
        with Page(report(place("trace.txt"), "--policy", "pytorch")) as page:
            page.wait_loaded()
            per_step(page, SLIDER, 10)
            took[events] = min(per_step(page, SLIDER, 20) for _ in range(3))
    print(took)
    assert took[300000] < 3 * took[6000] + 2, took


if __name__ == "__main__":
    tests = {name: one for name, one in globals().items() if inspect.isfunction(one) and one.__module__ == "__main__"}
    tests[sys.argv[1]]()
