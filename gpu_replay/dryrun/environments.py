"""Virtual environments that differ in the release of one package, for `fraglab bisect`.

    python environments.py list CACHE PACKAGE [WITH...]
    python environments.py make FOLDER PACKAGE RELEASE [WITH...]

An environment holds that release alone, and what WITH names; everything else is found where this
Python has it. So a release is one wheel to fetch, and nothing but it changes. `list` asks pip which
releases there are for this Python, and the package index for the size of their wheels: one JSON
object a line. `make` leaves a whole environment in FOLDER, with the file `complete` in it, or none.
"""
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import ssl
import subprocess
import sys
import sysconfig
import urllib.request

# What `import torch` needs beside itself; NVIDIA's packages are not needed for a dry run.
NEEDED_BY_TORCH = ("numpy", "filelock", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools")


def leave(sentence):
    print("fraglab: " + sentence, file=sys.stderr)
    sys.exit(4)


def pip(*arguments):
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def read_pip(*arguments):
    return subprocess.run(pip(*arguments), capture_output=True, text=True)


def find_releases(package):
    found = read_pip("index", "versions", package)
    listed = re.search(r"^Available versions:(.*)$", found.stdout, re.M)
    if found.returncode != 0 or listed is None:
        said = [line for line in found.stderr.splitlines() if line.startswith("ERROR")] or found.stderr.splitlines()
        leave("the releases of %s cannot be listed by %s -m pip index versions: %s" %
              (package, sys.executable, said[-1] if said else "it says nothing"))
    return [word.strip() for word in listed.group(1).split(",") if word.strip()]


def index_page(package):
    """The index's list of files as JSON (PEP 691), where it has one."""
    url = os.environ.get("PIP_INDEX_URL") or read_pip("config", "get", "global.index-url").stdout.strip()
    url = "%s/%s/" % ((url or "https://pypi.org/simple").rstrip("/"), re.sub(r"[-_.]+", "-", package).lower())
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        return json.load(answer)


def find_sizes(package):
    """Bytes of the wheel that pip would take, by release; what cannot be found out is left out."""
    sizes = {}
    try:
        from pip._vendor.packaging.tags import sys_tags
        from pip._vendor.packaging.utils import parse_wheel_filename

        tags = set(sys_tags())
        for file in index_page(package).get("files", []):
            try:
                _, version, _, those = parse_wheel_filename(file["filename"])
            except Exception:
                continue
            if tags & those and file.get("size"):
                sizes[version.public] = file["size"]
    except Exception:
        pass
    return sizes


def list_releases(cache, package, others):
    key = "\n".join([sys.prefix, platform.python_version(), package, *others])
    name = "%s-python%d.%d-%s" % (package, *sys.version_info[:2], hashlib.sha256(key.encode()).hexdigest()[:8])
    print(json.dumps({"fraglab_environments": 1, "python": sys.executable, "version": platform.python_version(),
                      "folder": os.path.join(cache, name)}))
    sizes = find_sizes(package)
    for release in find_releases(package):
        print(json.dumps({"release": release, "bytes": sizes.get(release)}))


def triton_of(folder):
    """The release of Triton that the torch just fetched names."""
    for place in os.listdir(folder):
        if place.startswith("torch-") and place.endswith(".dist-info"):
            with open(os.path.join(folder, place, "METADATA"), encoding="utf-8") as file:
                named = re.search(r"^Requires-Dist: triton\s*\(?==\s*([0-9.]+)", file.read(), re.M)
            return ["triton==" + named.group(1)] if named else []
    return []


def paired(requirement, release):
    """torchvision and torchaudio belong to one release of torch each."""
    number = re.match(r"2\.(\d+)\.(\d+)", release)
    if requirement == "torchvision" and number:
        return "torchvision==0.%d.%s" % (int(number.group(1)) + 15, number.group(2))
    return "torchaudio==" + release if requirement == "torchaudio" else requirement


def install(folder, options, requirements):
    """By the environment's own Python, which finds pip where this one has it: so that programs such as
    torchrun start by the environment's Python too."""
    command = [os.path.join(folder, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "install",
               "--ignore-installed", "--no-warn-script-location", *options, *requirements]
    if requirements and subprocess.run(command, stdout=sys.stderr).returncode != 0:
        leave("pip could not install %s" % " ".join(requirements))


def has(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def fill(folder, package, release, others):
    packages = sysconfig.get_path("purelib", "venv", vars={"base": folder, "platbase": folder})
    # Behind its own packages those of this Python, with the paths that they add.
    rest = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    with open(os.path.join(packages, "zz_fraglab_rest.pth"), "w", encoding="utf-8") as file:
        file.writelines("import site; site.addsitedir(%r)\n" % path for path in rest)
    wanted = "%s==%s" % (package, release)
    if package == "torch":
        install(folder, ["--no-deps"], [wanted])
        if has("triton"):
            install(folder, ["--no-deps"], triton_of(packages))
        install(folder, [], [name for name in NEEDED_BY_TORCH if not has(name)])
        install(folder, ["--no-deps"], [paired(name, release) for name in others])
    else:
        install(folder, ["--no-deps"], [wanted, *others])


def make(folder, package, release, others):
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return
        shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
        is_whole = False
        try:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, stdout=sys.stderr)
            fill(folder, package, release, others)
            with open(os.path.join(folder, "complete"), "w", encoding="utf-8") as file:
                file.write("%s %s\n" % (package, release))
            is_whole = True
        finally:
            if not is_whole:
                shutil.rmtree(folder, ignore_errors=True)


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    if importlib.util.find_spec("pip") is None:
        leave("%s has no pip; name a Python that has it with --python, or give ready environments with "
              "--environments" % sys.executable)
    if sys.argv[1] == "list":
        list_releases(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        make(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])


main()
