import os
import shutil
import sys
import sysconfig
import time

RELEASES = ["2.5.1", "2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0"]
TORCH = os.path.join(os.path.dirname(__file__), "..", "..", "stub_dryrun", "torch")


def versions(name):
    if name != "torch":
        print("ERROR: No matching distribution found for " + name, file=sys.stderr)
        return 1
    print("torch (2.10.0)\nAvailable versions: %s" % ", ".join(["2.11.0rc1"] + RELEASES[::-1]))
    return 0


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def change(path, old, new):
    with open(path, encoding="utf-8") as file:
        write(path, file.read().replace(old, new))


def install(release):
    packages = sysconfig.get_path("purelib")
    torch = os.path.join(packages, "torch")
    print("Collecting torch==" + release)
    shutil.copytree(TORCH, torch, ignore=shutil.ignore_patterns("__pycache__"))
    if os.environ.get("STUB_PIP") == "breaks":
        print("ERROR: the connection is lost", file=sys.stderr)
        return 1
    if os.environ.get("STUB_PIP") == "waits":
        write(os.path.join(os.environ["TMPDIR"], "waiting"), "")
        time.sleep(60)
    change(os.path.join(torch, "version.py"), "2.9.1", release)
    if RELEASES.index(release) >= RELEASES.index("2.8.0"):
        change(os.path.join(torch, "__init__.py"), "Block(mib << 20)", "Block((mib + 1) << 20)")
    if release == os.environ.get("STUB_PIP_BROKEN"):
        change(os.path.join(torch, "__init__.py"), "def empty(mib):", "def full(mib):")
    info = os.path.join(packages, "torch-%s.dist-info" % release)
    os.mkdir(info)
    write(os.path.join(info, "METADATA"), "Name: torch\nVersion: %s\n" % release)
    return 0


arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
if arguments[:2] == ["index", "versions"]:
    sys.exit(versions(arguments[2]))
if arguments[0] == "install":
    sys.exit(max([install(word[7:]) for word in arguments if word.startswith("torch==")], default=0))
sys.exit(1)
