"""Tests of the viewer's page in a browser: viewer_test.py PROGRAM PAGE NAME (tests/viewer/viewer.bats). Each is a function below."""
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "report"))
from firefox_driver import Firefox, find_firefox  # noqa: E402
from page_driver import Page, find_browser  # noqa: E402

OUT = os.environ.get("BATS_TEST_TMPDIR", "/tmp")
SAMPLE = "traces/samples/gpt-varlen-oom.pickle.zst"
PROGRAM, PAGE = sys.argv[1:3]
# Would run, if anything of a recording became markup.
HOSTILE = "<img src=x onerror=document.title=1>\\\"'</script><script>document.title=2</script>{{data}}"


class Driven:
    """The page, opened from a file, once its library has started."""

    def wait_start(self):
        self.wait("!document.getElementById('choose').disabled")

    def works(self):
        return int(self.run("document.body.dataset.works || 0"))

    def wait_work(self, before, seconds=120):
        self.wait(f"Number(document.body.dataset.works || 0) > {before}", seconds)

    def give(self, path, seconds=120):
        """A file as from the dialog; returns the seconds until everything of it is shown."""
        before, start = self.works(), time.monotonic()
        self.give_file("file", path)
        self.wait_work(before, seconds)
        return time.monotonic() - start

    def click(self, name):
        before = self.works()
        self.run(f"document.getElementById({json.dumps(name)}).click()")
        self.wait_work(before)

    def fill(self, name, value):
        self.run(f"document.getElementById({json.dumps(name)}).value = {json.dumps(value)}")

    def problem(self):
        return self.run("document.getElementById('problem').hidden ? '' : document.getElementById('problem').textContent")


class Viewer(Driven, Page):
    """In Chromium."""

    def __init__(self, **options):
        super().__init__(PAGE, **options)
        self.wait_start()

    def give_file(self, name, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=f"#{name}")["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[os.path.abspath(path)])

    @contextlib.contextmanager
    def frame(self):
        """Inside, what is asked is asked of the report's frame."""
        frames = [one["targetId"] for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "iframe"]
        outer, self.session = self.session, self.call("Target.attachToTarget", targetId=frames[-1], flatten=True)["sessionId"]
        try:
            for domain in ("Runtime", "Log"):
                self.call(f"{domain}.enable")
            self.call("Performance.enable", timeDomain="threadTicks")
            self.wait_loaded()
            yield
        finally:
            self.session = outer

    def settle(self):
        """Of the frame: what is asked to be drawn in one that is out of sight is drawn later."""
        self.wait("PAGE.explorers.every((one) => one.event !== undefined)")


class FirefoxViewer(Driven, Firefox):
    """In Firefox; the variables of the page's scripts are out of reach."""

    def __init__(self):
        super().__init__(PAGE)
        self.wait_start()

    @contextlib.contextmanager
    def frame(self):
        with self.inside("#explorer iframe"):
            self.wait("(document.getElementById('explorer') || { dataset: {} }).dataset.loaded !== undefined")
            yield


def rows(*words):
    done = subprocess.run([PROGRAM, "run", *words, "--format", "jsonl"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def size_text(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return ""


def shown_rows(page):
    return page.run("Array.from(document.querySelectorAll('#rows tbody tr'), (row) => Array.from(row.cells, (cell) => cell.textContent))")


def expected_row(row):
    calls = ("malloc", "free", "reserve", "unreserve", "map", "unmap", "malloc_async", "free_async")
    capacity, gpu, oom = row["device"]["capacity_bytes"], row["device"]["gpu"], row["oom"]
    device = "unlimited" if capacity is None else (f"{gpu}, " if gpu else "") + size_text(capacity)
    return [row["policy"]["label"], str(row["trace"]["device"]), device,
            size_text(row["peak"]["reserved_bytes"]), size_text(row["peak"]["requested_bytes"]),
            f"{sum(row['device_calls'][one] for one in calls):,}",
            "–" if oom is None else f"at event {oom['event']:,}, {size_text(oom['requested_bytes'])} asked"]


def write_trace(name, lines):
    path = os.path.join(OUT, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(["# fraglab trace 1", *lines]) + "\n")
    return path


# ---- tests

def figures_are_those_of_the_command_line():
    with Viewer() as page:
        page.give(SAMPLE)
        assert page.problem() == "", page.problem()
        asked = [("best-fit", ""), ("pytorch:expandable_segments=True", "5GiB"), ("pytorch", "5GiB"), ("tlsf", "rtx4090")]
        for policy, capacity in asked:
            page.fill("policy", policy)
            page.fill("device", capacity)
            page.click("replay")
            assert page.problem() == "", page.problem()
        expected = rows(SAMPLE, "--policy", "pytorch")
        for policy, capacity in asked:
            option = "--capacity" if capacity.endswith("B") else "--gpu"
            expected += rows(SAMPLE, "--policy", policy, *([option, capacity] if capacity else []))
        assert shown_rows(page) == [expected_row(row) for row in expected], shown_rows(page)
        assert any(row["oom"] is not None for row in expected) and any(row["oom"] is None for row in expected)
        # What is saved are the command's lines.
        assert [json.loads(line) for line in page.run("VIEWER.rows.join('')").splitlines()] == expected
        assert page.console == [], page.console


def explanation_is_that_of_the_command_line():
    with Viewer() as page:
        page.give(SAMPLE)
        told = subprocess.run([PROGRAM, "explain", SAMPLE], check=True, capture_output=True, text=True).stdout
        assert page.text("explanation") == told
        page.give("traces/samples/unet.pickle.zst")
        assert "did not run out of memory" in page.text("explanation")
        page.fill("device", "2GiB")
        page.click("ask")
        told = subprocess.run([PROGRAM, "explain", "traces/samples/unet.pickle.zst", "--capacity", "2GiB"], check=True, capture_output=True, text=True).stdout
        assert page.text("explanation") == told, page.text("explanation")
        assert page.console == [], page.console


def explorer_is_that_of_the_report():
    with Viewer() as page:
        page.give(SAMPLE)
        peak = rows(SAMPLE, "--policy", "pytorch")[0]["peak"]
        with page.frame():
            assert page.run("PAGE.explorers[0].run.peak_reserved_bytes") == peak["reserved_bytes"]
            levels = page.run("PAGE.explorers[0].run.reserved.reduce((most, level) => Math.max(most, level), 0)")
            assert levels == peak["reserved_bytes"], levels
            # The frame has no rights to the page around it.
            assert page.run("(() => { try { return parent.document.title; } catch (refused) { return refused.name; } })()") == "SecurityError"
        assert page.console == [], page.console


def least_device_and_leaks_are_shown():
    with Viewer() as page:
        page.give("traces/samples/gpt-train.pickle.zst")
        page.fill("device", "l4")
        page.click("least")
        words = [PROGRAM, "min-capacity", "traces/samples/gpt-train.pickle.zst", "--policy", "pytorch", "--format", "jsonl"]
        least = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["capacity_bytes"]
        assert f"with {size_text(least)} and no less" in page.text("least-text"), page.text("least-text")
        page.click("leaks")
        assert "No leak" in page.text("leaking-text"), page.text("leaking-text")
        # Something of its own that each step keeps, and something that it does not.
        lines = ['frame "step" "/me/train.py" 7', "site 0"]
        for i in range(40):
            lines += [f'mark "step {i}"', f"alloc {i + 1} 1048576 site=1", "alloc 0 4194304 site=1", "free 0"]
        page.give(write_trace("leak.trace", lines))
        page.fill("device", "1GiB")
        page.click("leaks")
        assert page.problem() == "", page.problem()
        told = json.loads(subprocess.run([PROGRAM, "leaks", os.path.join(OUT, "leak.trace"), "--capacity", "1GiB", "--format", "json"],
                                         check=False, capture_output=True, text=True).stdout)
        shown = page.run("Array.from(document.querySelectorAll('#leaking-rows tbody tr'), (row) => Array.from(row.cells, (cell) => cell.textContent))")
        assert len(shown) == len(told["leaks"]) == 1 and shown[0][1] == "1.00 MiB" and "train.py" in shown[0][0], shown
        assert f"full in step {told['forecast']['oom_step']:,}" in page.text("leaking-text").replace("about ", ""), page.text("leaking-text")
        assert page.console == [], page.console


def chosen_policies_are_drawn():
    with Viewer() as page:
        page.give("traces/samples/unet.pickle.zst")
        page.fill("policy", "tlsf")
        page.click("draw")
        with page.frame():
            labels = page.run("PAGE.explorers[0].traces[0].runs.map((run) => run.label)")
        assert labels == ["pytorch", "tlsf"], labels
        assert page.console == [], page.console


def hostile_recording():
    lines = [f'frame "{HOSTILE}" "{HOSTILE}" 1', "site 0", "alloc 0 4194304 site=1", f'mark "{HOSTILE}"', "alloc 1 1048576 site=1", "free 0"]
    # A file may be called anything but a slash.
    return write_trace("<img src=x onerror=document.title=3><b>.trace", lines)


def nothing_of_a_recording_runs():
    path = hostile_recording()
    with Viewer() as page:
        title = page.run("document.title")
        page.give(path)
        assert page.problem() == "", page.problem()
        page.fill("policy", "pytorch")
        page.fill("device", "2MiB")
        page.click("replay")
        page.click("ask")
        page.click("draw")
        assert page.text("recording-title") == os.path.basename(path)
        assert page.run("document.title") == title and page.run("document.querySelectorAll('img, b').length") == 0
        with page.frame():
            names = page.run("JSON.stringify(PAGE.explorers[0].trace.frames || PAGE.explorers[0].trace.marks || [])")
            assert "onerror" in names, names
            assert page.run("document.querySelectorAll('img').length") == 0 and "fraglab" in page.run("document.title")
        page.fill("policy", HOSTILE)
        page.click("replay")
        assert page.problem() != "" and page.run("document.querySelectorAll('img').length") == 0
        assert page.console == [], page.console


def bad_files_are_refused_in_a_sentence():
    with Viewer() as page:
        for name, content, word in (("empty.pickle", b"", "empty"), ("text.pickle", b"no recording\n", "text.pickle"),
                                    ("cut.pickle.zst", pathlib.Path(SAMPLE).read_bytes()[:5000], "cut")):
            path = os.path.join(OUT, name)
            pathlib.Path(path).write_bytes(content)
            page.give(path)
            assert word in page.problem(), page.problem()
            assert page.run("document.getElementById('opened').hidden")
        page.give(SAMPLE)
        assert page.problem() == "" and len(shown_rows(page)) == 1
        page.fill("device", "5 parsecs")
        page.click("replay")
        assert "parsecs" in page.problem(), page.problem()
        assert page.console == [], page.console


def memory_that_runs_out_is_said_and_the_page_goes_on():
    with Viewer() as page:
        page.give(SAMPLE)
        before = page.works()
        page.run("VIEWER.work('', () => new Promise((resolve, reject) => { VIEWER.core.waiting = { resolve, reject }; VIEWER.core.take({ ended: 'memory ran out' }); }))")
        page.wait_work(before)
        assert page.problem() == "memory ran out" and page.run("document.getElementById('opened').hidden")
        page.give(SAMPLE)
        assert page.problem() == "" and len(shown_rows(page)) == 1


def work_can_be_stopped():
    big = write_trace("big.trace", ["alloc 0 512"] + [f"alloc {1 + i % 1000} {512 * (1 + i % 7)}\nfree {1 + i % 1000}" for i in range(400000)])
    with Viewer() as page:
        before = page.works()
        page.give_file("file", big)
        page.wait("!document.getElementById('stop').hidden")
        page.run("document.getElementById('stop').click()")
        page.wait_work(before)
        assert page.problem() == "stopped", page.problem()
        page.give(SAMPLE)
        assert page.problem() == "" and len(shown_rows(page)) == 1


@contextlib.contextmanager
def listener():
    """A web server on this machine: its address, and what it was asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()


def nothing_is_fetched():
    with Viewer() as page:
        page.give(SAMPLE)
        assert page.run("performance.getEntriesByType('resource').filter((one) => !/^(blob|data):/.test(one.name)).length") == 0
        with listener() as (address, asked):
            ask = f"fetch('{address}', {{ mode: 'no-cors' }}).then(() => 'fetched', (problem) => problem.name)"
            assert page.run(ask) == "TypeError" and asked == [], asked
            with page.frame():
                assert page.run(ask) == "TypeError" and asked == [], asked
        policy = page.run("document.querySelector('meta[http-equiv]').content")
        assert "default-src 'none'" in policy and "connect-src" not in policy and "unsafe-inline" not in policy, policy


def firefox_shows_the_same():
    with FirefoxViewer() as page:
        page.give(SAMPLE)
        assert page.problem() == "", page.problem()
        page.fill("policy", "best-fit")
        page.fill("device", "5GiB")
        page.click("replay")
        expected = rows(SAMPLE, "--policy", "pytorch") + rows(SAMPLE, "--policy", "best-fit", "--capacity", "5GiB")
        assert shown_rows(page) == [expected_row(row) for row in expected], shown_rows(page)
        told = subprocess.run([PROGRAM, "explain", SAMPLE], check=True, capture_output=True, text=True).stdout
        assert page.text("explanation") == told
        with page.frame():
            assert size_text(expected[0]["peak"]["reserved_bytes"]) in page.run("document.querySelector('table.results').textContent")
            assert page.text("event-text") != "" and page.run("document.getElementById('problem').hidden")
            assert page.run("(() => { try { return parent.document.title; } catch (refused) { return refused.name; } })()") == "SecurityError"


def nothing_of_a_recording_runs_in_firefox():
    with FirefoxViewer() as page:
        title = page.run("document.title")
        page.give(hostile_recording())
        assert page.problem() == "", page.problem()
        assert page.run("document.title") == title and page.run("document.querySelectorAll('img, b').length") == 0
        with page.frame():
            assert "onerror" in page.run("document.body.textContent") and page.run("document.querySelectorAll('img').length") == 0
            assert "fraglab" in page.run("document.title")


def zoom_ms(page):
    """Processor milliseconds of the frame's thread for one zoom of the timeline."""
    with page.frame():
        page.wait("document.getElementById('event-text').textContent !== ''")
        before = page.busy_ms()
        page.run("""(async () => { const canvas = document.getElementById('timeline'), box = canvas.getBoundingClientRect();
            for (let i = 0; i < 40; i++) {
              canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 2 === 0 ? -124 : 124, clientX: box.left + 400, clientY: box.top + 60, cancelable: true }));
              await new Promise((done) => requestAnimationFrame(() => done()));
            } })()""")
        return round((page.busy_ms() - before) / 40, 1)


def measure():
    """Not a test: opens FILE in each browser that is there and prints how long it took. viewer_test.py PROGRAM PAGE measure FILE"""
    for browser, make, is_there in (("chromium", Viewer, find_browser()), ("firefox", FirefoxViewer, find_firefox())):
        if not is_there:
            continue
        with make() as page:
            seconds = page.give(sys.argv[4], 600)
            found = {"browser": browser, "file_bytes": os.path.getsize(sys.argv[4]), "seconds": round(seconds, 1), "problem": page.problem()}
            if not page.problem():
                page.run("document.getElementById('explorer').scrollIntoView()")
                found["zoom_ms"] = zoom_ms(page)
            print(json.dumps(found), flush=True)


globals()[sys.argv[3]]()
