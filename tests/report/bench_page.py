"""Speed and size of the page of `fraglab report`: bench_page.py OUT.json [EVENTS...]

For each number of events a training-like trace is made (tests/report/page_trace.py), replayed by four policies, and its page is
opened in a headless Chromium. Milliseconds of steps are processor time of the page's thread: script, style,
layout and painting, so that a busy machine does not change them much."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from page_driver import Page, find_browser

STEPS = 60
FRAMES = 60
IN_PAGE_MAX = 1000000  # of more events all are drawn only from files beside the page
HERE = os.path.dirname(os.path.abspath(__file__))


def make_page(folder, events):
    trace = os.path.join(folder, f"{events}.txt")
    page = os.path.join(folder, f"{events}.html")
    with open(trace, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, os.path.join(HERE, "page_trace.py"), str(events)], stdout=file, check=True)
    begun = time.monotonic()
    options = ["--data-dir", os.path.join(folder, f"{events}.data")] if events > IN_PAGE_MAX else []
    subprocess.run(["./fraglab", "report", trace, "-q", "-o", page, *options], check=True)
    return page, time.monotonic() - begun


def size_of(page):
    """Of the page and the folder beside it."""
    beside = page.removesuffix(".html") + ".data"
    data = [entry.stat().st_size for entry in os.scandir(beside)] if os.path.isdir(beside) else []
    return os.path.getsize(page) + sum(data)


def per_step(page, script, steps=STEPS):
    """Processor milliseconds of one of so many steps; script has the number i of a step."""
    before = page.busy_ms()
    page.run(f"""(async () => {{ const explorer = PAGE.explorers[0]; const slider = byId('event-slider');
        for (let i = 0; i < {steps}; i++) {{ {script}
          await new Promise((done) => requestAnimationFrame(() => done())); }} }})()""")
    page.settle()
    return (page.busy_ms() - before) / steps


def per_frame(page):
    """The same of frames while the reader zooms in and out again, each alone: their median, and the longest."""
    frames = []
    for i in range(FRAMES):
        before = page.busy_ms()
        factor = 0.8 if i < FRAMES / 2 else 1.25
        page.run(f"PAGE.explorers[0].axis.zoom({factor}, 400); new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        frames.append(page.busy_ms() - before)
    return statistics.median(frames), max(frames)


# The first moves through the whole run, the second event by event.
SLIDER = """slider.value = Number(slider.min) + Math.round((slider.max - slider.min) * i / 60);
            slider.dispatchEvent(new Event('input'));"""
NEXT = "explorer.select(explorer.event + 1);"


def measure(page_path):
    with Page(page_path) as page:
        page.wait("document.getElementById('explorer').dataset.shown !== undefined")
        shown = page.run("performance.now()")
        page.wait_loaded()
        loaded = page.run("performance.now()")
        per_step(page, SLIDER, 10)
        figures = {"shown_ms": shown, "loaded_ms": loaded, "slider_step_ms": per_step(page, SLIDER),
                   "next_event_ms": per_step(page, NEXT)}
        page.run("PAGE.explorers[0].showAll()")
        page.settle()
        per_frame(page)
        figures["zoom_ms"], figures["zoom_max_ms"] = per_frame(page)
        begun = page.busy_ms()
        page.search("size>1MiB forward")
        figures["search_ms"] = page.busy_ms() - begun
        assert not page.console, page.console
        return figures


def main():
    out = sys.argv[1]
    rows = []
    print("    events  page MB  written s  shown ms  loaded ms  slider ms  next ms  zoom ms  longest ms  search ms")
    with tempfile.TemporaryDirectory() as folder:
        for events in [int(text) for text in sys.argv[2:]] or [10000, 84000, 100000, 1000000]:
            page, seconds = make_page(folder, events)
            row = {"events": events, "policies": 4, "page_bytes": size_of(page), "written_s": seconds, **measure(page)}
            rows.append(row)
            print(f"{events:>10,} {row['page_bytes'] / 1e6:>8.2f} {seconds:>10.2f} {row['shown_ms']:>9.0f} {row['loaded_ms']:>10.0f} "
                  f"{row['slider_step_ms']:>10.1f} {row['next_event_ms']:>8.1f} {row['zoom_ms']:>8.1f} {row['zoom_max_ms']:>11.1f} {row['search_ms']:>10.1f}", flush=True)
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"schema": "fraglab.bench-page/1", "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if find_browser() is None:
        sys.exit("bench-page: no Chromium; install the package chromium")
    main()
