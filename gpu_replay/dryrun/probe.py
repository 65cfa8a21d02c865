"""Says which PyTorch a Python would import, as one line of JSON, without importing it."""
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys


def variable(text, name):
    found = re.search(r"^%s\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]" % name, text, re.M)
    return found.group(1) if found else None


def look():
    facts = {"fraglab_probe": 1, "python": sys.executable, "version": platform.python_version(),
             "system": platform.system(), "machine": platform.machine(), "bits": 64 if sys.maxsize > 2**32 else 32}
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return facts
    folder = list(spec.submodule_search_locations)[0]
    facts["folder"] = folder
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    facts["torch"] = variable(text, "__version__")
    facts["cuda"] = variable(text, "cuda")
    facts["hip"] = variable(text, "hip")
    if facts["torch"] is None:
        try:
            facts["torch"] = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            pass
    return facts


print(json.dumps(look()))
