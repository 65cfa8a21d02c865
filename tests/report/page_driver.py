"""Drives a page in a headless Chromium as a reader would: presses, types, drops files, takes pictures.

The browser is spoken to over two pipes (DevTools protocol, messages that end in a zero byte); nothing but
Python's own library is needed. Starting it takes longer than most tests: where the variable FRAG_BROWSER names
a folder, the browser that `page_driver.py start` left there serves one test after another. Each attaches to its
tab anew, which forgets what the last set, and clears what pages stored.

    page_driver.py start               a browser, into the folder FRAG_BROWSER; 77: none is installed
    page_driver.py stop                ends it
    page_driver.py show PAGE CONSOLE [OPTION...]  the elements of a page once its script is done; its console into the
                                       file; with options for the browser, in one of its own"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    """The browser's path, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def start_browser(to_read, to_write, profile, arguments=()):
    """Starts a browser that reads and writes these two descriptors."""
    def place_pipes():
        spare_in, spare_out = os.dup(to_read), os.dup(to_write)
        os.dup2(spare_in, 3)
        os.dup2(spare_out, 4)

    return subprocess.Popen(
        [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
         "--disable-background-networking", "--disable-component-update", "--no-first-run",
         f"--user-data-dir={profile}", "--hide-scrollbars", *arguments, "about:blank"],
        preexec_fn=place_pipes, close_fds=False, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


class Page:
    def __init__(self, path, fragment="", width=1400, height=1000, dark=False, arguments=()):
        self.console = []
        self.buffer = b""
        self.session = None
        self.process = None
        # The answers to one process must not be taken for those to another.
        self.last = os.getpid() % 2000 * 1000000
        shared = os.environ.get("FRAG_BROWSER")
        if shared and not arguments:
            self.write_end = os.open(os.path.join(shared, "in"), os.O_WRONLY)
            self.read_end = os.open(os.path.join(shared, "out"), os.O_RDONLY)
        else:
            self.profile = tempfile.mkdtemp(prefix="fraglab-page-")
            to_read, self.write_end = os.pipe()
            self.read_end, to_write = os.pipe()
            self.process = start_browser(to_read, to_write, self.profile, arguments)
            os.close(to_read)
            os.close(to_write)
        self.session = self.call("Target.attachToTarget", targetId=self.wait_for_target(), flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # Of the page that the tab still shows nothing stays: another fragment of it would not load it anew.
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.call("Log.clear")
        self.console = []
        self.call("Storage.clearDataForOrigin", origin="file://", storageTypes="all")
        self.set_dark(dark)
        self.open(path, fragment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        session, self.session = self.session, None
        if self.process:
            self.call("Browser.close")
            self.process.wait()
            shutil.rmtree(self.profile, ignore_errors=True)
        else:
            self.call("Target.detachFromTarget", sessionId=session)
        os.close(self.read_end)
        os.close(self.write_end)

    # ---- the protocol

    def receive(self):
        """The next message. What a test before this one left of its last is not one."""
        while True:
            while b"\0" not in self.buffer:
                if not select.select([self.read_end], [], [], 300)[0]:
                    raise RuntimeError("the browser does not answer")
                piece = os.read(self.read_end, 1 << 20)
                if not piece:
                    raise RuntimeError("the browser has ended")
                self.buffer += piece
            message, self.buffer = self.buffer.split(b"\0", 1)
            try:
                return json.loads(message)
            except ValueError:
                continue

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def note(self, event):
        if event.get("sessionId") != self.session:
            return
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value", one.get("description"))) for one in event["params"]["args"]))
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.console.append(event["params"]["entry"]["text"])

    def wait_for_target(self):
        for _ in range(600):
            targets = self.call("Target.getTargets")["targetInfos"]
            pages = [one["targetId"] for one in targets if one["type"] == "page"]
            if pages:
                return pages[0]
            time.sleep(0.1)
        raise RuntimeError("the browser has opened no page")

    # ---- what a reader does

    def open(self, path, fragment=""):
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}{fragment}")
        self.wait("document.readyState === 'complete'")

    def reload(self):
        self.run("window.isOld = true")
        self.call("Page.reload")
        self.wait("window.isOld === undefined && document.readyState === 'complete'")
        self.wait_loaded()

    def wait_loaded(self):
        self.wait("document.getElementById('explorer').dataset.loaded !== undefined")
        self.settle()

    def wait_shown(self):
        """Until the script has drawn what there is to draw, or has said why it cannot."""
        self.wait("""!byId('problem').hidden || PAGE.explorers.every((one) => {
            const { loaded, shown } = one.byId('explorer').dataset; return loaded !== undefined && shown !== undefined; })""")
        self.settle()

    def run(self, expression):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError(f"never came true: {condition}; console: {self.console}")
            time.sleep(0.02)

    def settle(self):
        """Until what was asked to be drawn is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
        self.wait("PAGE.explorers.every((one) => one.event === undefined || !one.isDrawing && one.listsTimer === undefined)")

    def text(self, name):
        return self.run(f"document.getElementById({json.dumps(name)}).textContent")

    def place(self, name, x=0.5, y=0.5, is_pixels=False):
        """A point of an element in the window, which is scrolled to it."""
        return self.run(f"""(() => {{ const item = document.getElementById({json.dumps(name)});
            item.scrollIntoView({{ block: 'center' }}); const box = item.getBoundingClientRect();
            return {is_pixels and 'true' or 'false'} ? [box.left + {x}, box.top + {y}]
              : [box.left + {x} * box.width, box.top + {y} * box.height]; }})()""")

    def press(self, name, x=0.5, y=0.5, is_pixels=False):
        left, top = self.place(name, x, y, is_pixels)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=left, y=top, button="none" if kind == "mouseMoved" else "left",
                      clickCount=0 if kind == "mouseMoved" else 1)
        self.settle()

    def hover(self, name, x=0.5, y=0.5, is_pixels=False):
        left, top = self.place(name, x, y, is_pixels)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=top)
        self.settle()

    def wheel(self, name, delta, x=0.5, y=0.5):
        left, top = self.place(name, x, y)
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=left, y=top, deltaX=0, deltaY=delta)
        self.settle()

    def focus(self, name):
        self.run(f"document.getElementById({json.dumps(name)}).focus()")

    def key(self, key, shift=False):
        code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
                "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9}.get(key, ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      modifiers=8 if shift else 0, **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))
        self.settle()

    def choose(self, name, value):
        self.run(f"""(() => {{ const item = document.getElementById({json.dumps(name)}); item.value = {json.dumps(value)};
            item.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()""")
        self.settle()

    def search(self, text, suffix=""):
        name = "search" + suffix
        self.run(f"document.getElementById({json.dumps(name)}).value = {json.dumps(text)}")
        self.focus(name)
        self.run(f"PAGE.explorers[{1 if suffix else 0}].search.run()")
        self.settle()
        return self.text("search-count" + suffix)

    def drop(self, path, name=None):
        """Drops a file on the page and waits until it was taken or refused."""
        with open(path, "rb") as file:
            data = base64.b64encode(file.read()).decode()
        before = self.run("Number(document.body.dataset.second || 0)")
        self.run(f"""(() => {{ const text = atob({json.dumps(data)});
            const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
            const carried = new DataTransfer();
            carried.items.add(new File([bytes], {json.dumps(name or os.path.basename(path))}));
            document.body.dispatchEvent(new DragEvent('dragover', {{ dataTransfer: carried, bubbles: true, cancelable: true }}));
            document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: carried, bubbles: true, cancelable: true }})); }})()""")
        self.wait(f"Number(document.body.dataset.second || 0) > {before}")
        self.settle()

    def problem(self):
        return self.run("byId('problem').hidden ? '' : byId('problem').textContent")

    def set_dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def picture(self, path, whole=True):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}} if whole else {}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def busy_ms(self):
        """Processor time of the page's thread in milliseconds: script, style, layout, painting, whatever else
        the machine does."""
        metrics = {one["name"]: one["value"] for one in self.call("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"] * 1000


def start():
    folder = os.environ["FRAG_BROWSER"]
    if not find_browser():
        sys.exit(77)
    os.makedirs(folder)
    # Open for both, so that the browser outlives whoever speaks to it.
    ends = []
    for name in ("in", "out"):
        os.mkfifo(os.path.join(folder, name))
        ends.append(os.open(os.path.join(folder, name), os.O_RDWR))
    process = start_browser(*ends, os.path.join(folder, "profile"))
    with open(os.path.join(folder, "pid"), "w", encoding="utf-8") as file:
        file.write(f"{process.pid}\n")


def stop():
    try:
        with open(os.path.join(os.environ["FRAG_BROWSER"], "pid"), encoding="utf-8") as file:
            os.killpg(int(file.read()), signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        pass
    # Its processes end one after another, and some still write.
    for _ in range(50):
        shutil.rmtree(os.environ["FRAG_BROWSER"], ignore_errors=True)
        if not os.path.exists(os.environ["FRAG_BROWSER"]):
            break
        time.sleep(0.1)


def show(address, console, *arguments):
    path, _, fragment = address.partition("#")
    with Page(path, fragment and f"#{fragment}", arguments=arguments) as page:
        page.wait_shown()
        print(page.run("document.documentElement.outerHTML"))
        with open(console, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in page.console)


if __name__ == "__main__":
    {"start": start, "stop": stop, "show": show}[sys.argv[1]](*sys.argv[2:])
