"""Drives a page in a headless Firefox (Marionette protocol: lines of JSON with their length in front, over a socket of this
machine); nothing but Python's own library is needed. It sees what the document holds, not the variables of its scripts."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

NAMES = ("firefox", "firefox-esr")


def find_firefox():
    """The browser's path, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


class Firefox:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="fraglab-firefox-")
        # Any free port.
        pathlib.Path(self.profile, "user.js").write_text('user_pref("marionette.port", 0);\n', encoding="ascii")
        self.process = subprocess.Popen([find_firefox(), "--headless", "--marionette", "--no-remote", "--profile", self.profile],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=self.profile))
        self.socket = socket.create_connection(("127.0.0.1", self.wait_for_port()))
        self.buffer = b""
        self.last = 0
        self.receive()
        self.call("WebDriver:NewSession", capabilities={})
        self.call("WebDriver:Navigate", url=f"file://{os.path.abspath(path)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def wait_for_port(self):
        file = pathlib.Path(self.profile, "MarionetteActivePort")
        end = time.monotonic() + 60
        while not file.exists() or not file.read_text(encoding="ascii").strip():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("Firefox does not start")
            time.sleep(0.1)
        return int(file.read_text(encoding="ascii"))

    # ---- the protocol

    def receive(self):
        while b":" not in self.buffer:
            self.read_more()
        length, self.buffer = self.buffer.split(b":", 1)
        while len(self.buffer) < int(length):
            self.read_more()
        message, self.buffer = self.buffer[:int(length)], self.buffer[int(length):]
        return json.loads(message)

    def read_more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise RuntimeError("Firefox has ended")
        self.buffer += piece

    def call(self, command, **parameters):
        self.last += 1
        message = json.dumps([0, self.last, command, parameters]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, problem, value = self.receive()
        if problem:
            raise RuntimeError(f"{command}: {problem['message']}")
        return value

    def busy_ms(self):
        """Processor time in milliseconds of the main threads of the processes that show pages (Linux)."""
        total = 0
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes().rstrip(b" \0")
                if line.endswith(b"tab") and self.profile.encode() in (folder / "environ").read_bytes():
                    total += int((folder / "task" / folder.name / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e6

    # ---- what a reader does

    def run(self, expression):
        """The value of an expression over the document."""
        return self.call("WebDriver:ExecuteScript", script=f"return {expression};", args=[])["value"]

    def wait(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError(f"never came true: {condition}")
            time.sleep(0.02)

    def text(self, name):
        return self.run(f"document.getElementById({json.dumps(name)}).textContent")

    def find(self, selector):
        return self.call("WebDriver:FindElement", using="css selector", value=selector)["value"]

    def give_file(self, name, path):
        """A file, as from the dialog of an input."""
        self.call("WebDriver:ElementSendKeys", id=next(iter(self.find(f"#{name}").values())), text=os.path.abspath(path))

    @contextlib.contextmanager
    def inside(self, selector):
        """What is asked is asked of that frame."""
        self.call("WebDriver:SwitchToFrame", element=next(iter(self.find(selector).values())))
        try:
            yield
        finally:
            self.call("WebDriver:SwitchToFrame", id=None)
