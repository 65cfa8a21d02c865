"""Model Context Protocol over stdin and stdout, for agents and editors: ``fraglab mcp FOLDER...`` or ``python -m fraglab.mcp FOLDER...``.

Tools explain, run, tune, diff, leaks, ranks and plan on files of the folders given, and on nothing else: a name is opened, and then it is looked at where
the file lies, so that no link and no ".." leads out. Nothing is written or started, and no policy is loaded from a file.
"""
from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
import warnings
from typing import Any, BinaryIO, Callable

PROTOCOLS = ("2025-06-18", "2025-03-26", "2024-11-05")
MOST_LINE = 1 << 20
MOST_FILE = 1 << 29
MOST_ANSWER = 100_000  # characters
MOST_SECONDS = 60
PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
# A name with options; a path would be a file of code.
POLICY = re.compile(r"[a-z][a-z0-9-]*(:[A-Za-z0-9_=,.%+-]*)?")
CARD = re.compile(r"(?!.*\.yaml)[A-Za-z0-9 ._-]+")
KNOB = re.compile(r"[a-z_.]+=[A-Za-z0-9_,. +-]*")

FILE = {"type": "string", "description": "a recording below the folders of this server: a pickle of PyTorch's memory snapshot, .fgt, or another format that fraglab reads"}
CAPACITY = {"type": "string", "description": "memory of the device that a recording is replayed on, such as 24GiB"}
GPU = {"type": "string", "description": "a card, such as rtx4090; its memory is the capacity"}
KNOBS = {"type": "string", "description": "a knob and its value, such as batch=4, tokens=2048 or checkpoint=full"}
POLICIES = {"type": "string", "description": "an allocator, as after --policy: pytorch:expandable_segments=true, best-fit, ..."}


class Refused(Exception):
    """What is wrong with a call, for the agent to read."""


class Late(BaseException):
    """The time of a call is over."""


class Fault(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Folders:
    """What may be read."""

    def __init__(self, folders: list[str]) -> None:
        self.roots = [os.path.realpath(folder) for folder in folders]
        for folder, root in zip(folders, self.roots):
            if not os.path.isdir(root):
                raise Refused(f"{folder}: there is no such folder")

    def _is_inside(self, path: str) -> bool:
        return any(os.path.commonpath([root, path]) == root for root in self.roots)

    def read(self, name: str) -> bytes:
        """A relative name is looked for below the first folder. What was opened is checked, not the name: links may change meanwhile."""
        refused = Refused(f"{name}: is not below the folders of this server ({', '.join(self.roots)})")
        if "\0" in name or not self._is_inside(os.path.realpath(os.path.join(self.roots[0], name))):
            raise refused
        try:
            file = os.open(os.path.realpath(os.path.join(self.roots[0], name)), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except (OSError, ValueError) as error:
            raise Refused(f"{name}: cannot be opened ({getattr(error, 'strerror', error)})") from None
        try:
            if not self._is_inside(os.readlink(f"/proc/self/fd/{file}")):
                raise refused
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode):
                raise Refused(f"{name}: is no file")
            if facts.st_size > MOST_FILE:
                raise Refused(f"{name}: has {facts.st_size:,} bytes, at most {MOST_FILE:,} are read here")
            with os.fdopen(os.dup(file), "rb") as stream:
                return stream.read(MOST_FILE)
        finally:
            os.close(file)


class Tools:
    """What can be called. Each takes the arguments that its schema names and returns text, or what becomes JSON."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self.all: dict[str, tuple[Callable[..., Any], str, dict[str, Any], list[str]]] = {
            "explain": (self.explain, "Explain a CUDA out of memory: who held the memory, what would have fit, which settings help. Of a recording, or of the text of a log or message",
                        {"file": FILE, "text": {"type": "string", "description": "text that holds the message, in the place of a file"}, "capacity": CAPACITY}, []),
            "run": (self.run, "Replay a recording with an allocator on a simulated GPU: peaks, fragmentation, where it runs out of memory. What if the card or the settings were others?",
                    {"file": FILE, "policies": {"type": "array", "items": POLICIES, "maxItems": 8, "description": "default: pytorch"}, "capacity": CAPACITY, "gpu": GPU}, ["file"]),
            "min_capacity": (self.min_capacity, "The least memory of a device on which a recording does not run out", {"file": FILE, "policy": POLICIES}, ["file"]),
            "tune": (self.tune, "Search the settings of an allocator that need the least memory", {"file": FILE, "policy": POLICIES, "settings": {"type": "integer", "minimum": 1, "maximum": 1000}}, ["file"]),
            "diff": (self.diff, "What differs between two recordings of a program: who holds more, which requests are new",
                     {"before": FILE, "after": FILE, "by": {"type": "string", "enum": ["site", "stack", "purpose", "size"]}}, ["before", "after"]),
            "plan": (self.plan, "Does a described model fit on a card? Peaks, what the bytes are for, the fixes that help, each with its gain, and the largest batch",
                     {"file": {"type": "string", "description": "a workload file in YAML or the config.json of a model of Hugging Face, below the folders of this server"},
                      "gpu": {"type": "string", "description": "a card, such as rtx4090, or a size, such as 24GiB"}, "knobs": {"type": "array", "items": KNOBS, "maxItems": 32},
                      "conf": {"type": "string", "description": "PYTORCH_CUDA_ALLOC_CONF of the program"}}, ["file", "gpu"]),
            "ranks": (self.ranks, "The ranks of one job side by side: what each needs, how uneven they are, which is out of memory first",
                      {"files": {"type": "array", "items": FILE, "minItems": 1, "maxItems": 64}, "capacity": CAPACITY, "gpu": GPU}, ["files"]),
            "leaks": (self.leaks, "What a program keeps step after step, and when its device is full", {"file": FILE, "capacity": CAPACITY, "gpu": GPU}, ["file"]),
        }

    def listed(self) -> list[dict[str, Any]]:
        return [{"name": name, "description": about, "inputSchema": {"type": "object", "properties": members, "required": needed, "additionalProperties": False},
                 "annotations": {"readOnlyHint": True, "openWorldHint": False}} for name, (_, about, members, needed) in self.all.items()]

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        function, _, members, needed = self.all[name]
        for key, value in arguments.items():
            if key not in members:
                raise Refused(f"{name}: '{key}' is unknown; expected {', '.join(members)}")
            _check(name, key, members[key], value)
        for key in needed:
            if key not in arguments:
                raise Refused(f"{name}: '{key}' is missing")
        found = function(**arguments)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _open(self, name: str):
        import fraglab

        return fraglab.open(self._folders.read(name), name=os.path.basename(name))

    def explain(self, file: str | None = None, text: str | None = None, capacity: str | None = None) -> Any:
        import fraglab

        if (file is None) == (text is None):
            raise Refused("explain: expected either 'file' or 'text'")
        if text is not None:
            _refuse_capacity(capacity, "'text'")
            return fraglab.explain(str(text).encode("utf-8", "replace"))
        data = self._folders.read(str(file))
        try:
            recording = fraglab.open(data, name=os.path.basename(str(file)))
        except fraglab.InputError as error:
            found = fraglab.explain(data)  # a log
            if not found["source"]["messages"]:
                raise error
            _refuse_capacity(capacity, str(file))
            return found
        return recording.explain_text(capacity=capacity)

    def run(self, file: str, policies: list[str] | None = None, capacity: str | None = None, gpu: str | None = None) -> Any:
        recording = self._open(file)
        return [recording.run(policy, capacity=capacity, gpu=gpu).to_dict() for policy in policies or ["pytorch"]]

    def min_capacity(self, file: str, policy: str = "pytorch") -> Any:
        return self._open(file).min_capacity(policy).to_dict()

    def tune(self, file: str, policy: str = "pytorch", settings: int = 100) -> Any:
        import fraglab

        found = fraglab.tune(self._open(file), policy, settings=settings)
        return {"policy_text": found.policy_text, **found.to_dict()}

    def diff(self, before: str, after: str, by: str = "site") -> Any:
        import fraglab

        return fraglab.diff(self._open(before), self._open(after), by=by).to_dict()

    def leaks(self, file: str, **device: Any) -> Any:
        return self._open(file).leaks(**device).to_dict()

    def ranks(self, files: list[str], **device: Any) -> Any:
        import fraglab

        opened, total = [], 0
        for name in files:
            data = self._folders.read(name)
            total += len(data)
            if total > MOST_FILE:
                raise Refused(f"{name}: with it the files have {total:,} bytes, at most {MOST_FILE:,} are read here")
            opened.append(fraglab.open(data, name=os.path.basename(name)))
        return fraglab.ranks(opened, **device).to_dict()

    def plan(self, file: str, gpu: str, knobs: list[str] | None = None, conf: str | None = None) -> Any:
        """What was opened is what is read: the library gets it as a file in memory."""
        import fraglab

        values = dict(knob.split("=", 1) for knob in knobs or ())
        for name in (name for name in ("model", "gpu", "conf") if name in values):
            raise Refused(f"plan: '{name}' is not a knob; docs/workloads.md lists them")
        data = self._folders.read(file)
        memory = os.memfd_create("plan")
        try:
            with os.fdopen(os.dup(memory), "wb") as stream:
                stream.write(data)
            place = f"/proc/self/fd/{memory}"
            try:
                found = fraglab.plan(place, gpu=gpu, conf=conf, **values)
            except fraglab.Error as error:
                raise Refused(str(error).replace(place, file)) from None
        finally:
            os.close(memory)
        found["model"]["name"] = os.path.basename(file)
        return found


def _refuse_capacity(capacity: str | None, source: str) -> None:
    if capacity is not None:
        raise Refused(f"explain: 'capacity' is for a recording, and {source} is a message; leave it out")


def _check(tool: str, key: str, schema: dict[str, Any], value: Any) -> None:
    """Just what the schemas of this page say."""
    kind = {"string": str, "integer": int, "array": list}[schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Refused(f"{tool}: '{key}' is {type(value).__name__}; expected {schema['type']}")
    if kind is list:
        if not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
            raise Refused(f"{tool}: '{key}' has {len(value)} items; expected {schema.get('minItems', 0)} to {schema['maxItems']}")
        for item in value:
            _check(tool, key, schema["items"], item)
    elif kind is int and not schema["minimum"] <= value <= schema["maximum"]:
        raise Refused(f"{tool}: '{key}' is {value}; expected {schema['minimum']} to {schema['maximum']}")
    elif "enum" in schema and value not in schema["enum"]:
        raise Refused(f"{tool}: '{key}' is '{value}'; expected one of {', '.join(schema['enum'])}")
    elif schema is POLICIES and not POLICY.fullmatch(value):
        raise Refused(f"{tool}: '{value}' is no bundled policy with options; policies of a file are not loaded here")
    elif schema is KNOBS and not KNOB.fullmatch(value):
        raise Refused(f"{tool}: '{value}' is not a knob and its value; expected one such as batch=4")
    elif key == "gpu" and not CARD.fullmatch(value):
        raise Refused(f"{tool}: '{value}' is no name of a card; descriptions of a file are not read here")


class Server:
    """Answers lines."""

    def __init__(self, folders: list[str], seconds: float = MOST_SECONDS) -> None:
        self._tools = Tools(Folders(folders))
        self._seconds = seconds

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """The reply to a line; None: it wants none."""
        number = None
        try:
            if len(line) > MOST_LINE:
                raise Fault(PARSE, f"a line has more than {MOST_LINE:,} bytes")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Fault(PARSE, f"a line is no JSON ({error})") from None
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise Fault(REQUEST, "expected an object with jsonrpc 2.0")
            if "method" not in message and ("result" in message or "error" in message):
                return None  # a reply; this server asks nothing
            given = message.get("id")
            if "id" in message and (not isinstance(given, (str, int)) or isinstance(given, bool)):
                raise Fault(REQUEST, "id is neither a text nor a whole number")
            number = given
            if not isinstance(message.get("method"), str):
                raise Fault(REQUEST, "method is not a text")
            if "id" not in message:
                return None  # a notification
            params = message.get("params", {})
            if not isinstance(params, dict):
                raise Fault(PARAMS, "params is not an object")
            return {"jsonrpc": "2.0", "id": number, "result": self._result(message["method"], params)}
        except Fault as fault:
            return {"jsonrpc": "2.0", "id": number, "error": {"code": fault.code, "message": str(fault)}}

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            import fraglab

            wanted = params.get("protocolVersion")
            return {"protocolVersion": wanted if wanted in PROTOCOLS else PROTOCOLS[0], "capabilities": {"tools": {}}, "serverInfo": {"name": "fraglab", "version": fraglab.version()},
                    "instructions": "GPU-memory recordings: explain runs what went wrong, run answers what if, tune finds settings. Bytes are bytes, events count from 0."}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": self._tools.listed()}
        if method == "tools/call":
            return self._call(params)
        raise Fault(METHOD, f"there is no method {method[:100]}")

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or name not in self._tools.all:
            raise Fault(PARAMS, f"there is no such tool; expected one of {', '.join(self._tools.all)}")
        if not isinstance(arguments, dict):
            raise Fault(PARAMS, "arguments is not an object")
        text, is_error = self._within_time(lambda: self._tools.call(name, arguments))
        if len(text) > MOST_ANSWER:
            text = text[:MOST_ANSWER] + f"\n(cut off: {len(text):,} characters, of which {MOST_ANSWER:,} are shown)"
        return {"content": [{"type": "text", "text": text}], "isError": is_error}

    def _within_time(self, function: Callable[[], str]) -> tuple[str, bool]:
        """(the text, whether it is that of a failure)"""
        import fraglab

        def ring(*_: Any) -> None:
            raise Late

        before = signal.signal(signal.SIGALRM, ring)
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            try:
                return function(), False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Late:
            return f"ended after {self._seconds:g} seconds, without an answer; cut the recording, or use the command line", True
        except (Refused, fraglab.Error, TypeError, ValueError, OSError, MemoryError) as error:
            return str(error) or type(error).__name__, True
        finally:
            signal.signal(signal.SIGALRM, before)


def serve(server: Server, lines: BinaryIO, out: BinaryIO) -> None:
    """Until the end of the lines."""
    while True:
        line = lines.readline(MOST_LINE + 1)
        if not line:
            return
        if len(line) > MOST_LINE and not line.endswith(b"\n"):
            while (rest := lines.readline(MOST_LINE)) and not rest.endswith(b"\n"):
                pass
        if not line.strip():
            continue
        reply = server.answer(line)
        if reply is not None:
            out.write(json.dumps(reply).encode("ascii") + b"\n")
            out.flush()


def main(folders: list[str] | None = None) -> int:
    folders = sys.argv[1:] if folders is None else folders
    if not folders or folders[0].startswith("-"):
        print("usage: fraglab mcp FOLDER...\n\nAnswers the Model Context Protocol on stdin and stdout. Files are read below the folders only, and nothing is written.", file=sys.stderr)
        return 0 if folders and folders[0] in ("-h", "--help") else 2
    try:
        server = Server(folders)
    except Refused as error:
        print(f"fraglab: {error}", file=sys.stderr)
        return 3
    # Files that options of a policy name are looked for there, and what the library may print is no reply.
    os.chdir(server._tools._folders.roots[0])
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(server, sys.stdin.buffer, out)
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
