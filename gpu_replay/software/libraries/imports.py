"""What PyTorch's wheels want of the CUDA libraries: imports.tsv is made and extended with this.

    python3 imports.py [--table imports.tsv] WHEEL-OR-FOLDER...

Each argument is a wheel of torch, or a folder that holds torch/. Read from the symbol tables of its
shared objects: the functions that it looks for in libraries which it does not ship. A line of the
table is: library, its soname, function, version node ("-": none), releases, separated by tabs. A
release that is read again replaces what the table had of it.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile
import zipfile

# Libraries that every Linux has; a hash may stand in the name of a bundled one.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|util|pthread|z|stdc\+\+|gcc_s|gomp|gfortran|quadmath)(-[0-9a-f]+)?\.so|ld-linux)")
# Functions without a version belong to the library that their names begin like.
PREFIXES = [
    ("libcusparseLt", r"cusparseLt"), ("libcublasLt", r"cublasLt"), ("libcublas", r"cublas"),
    ("libcudnn", r"cudnn"), ("libcufft", r"cufft"), ("libcurand", r"curand"),
    ("libcusolver", r"cusolver"), ("libcusparse", r"cusparse"), ("libnccl", r"p?nccl"),
    ("libnvrtc", r"nvrtc"), ("libnvJitLink", r"nvJitLink"), ("libcufile", r"cuFile"),
    ("libnvshmem_host", r"nvshmem"), ("libnvToolsExt", r"nvtx"), ("libcupti", r"cupti"),
    ("libcudss", r"cudss"), ("libcudart", r"(__)?cuda[A-Z]"), ("libnvidia-ml", r"nvml"),
    ("libcuda", r"cu[A-Z]"),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols_of(library):
    """(name, version or "-", is it defined here) of each dynamic symbol."""
    for line in run("readelf", "-W", "--dyn-syms", str(library)).splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit():
            name, _, version = columns[7].partition("@")
            yield name, version.lstrip("@") or "-", columns[6] != "UND"


def read_library(library, needed, undefined, defined):
    needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-W", "-d", str(library))))
    for name, version, is_defined in symbols_of(library):
        if is_defined:
            defined.add(name)
        elif version != "-" or name not in undefined:
            undefined[name] = version


def objects_in(place, folder):
    """Paths of the shared objects of torch/lib, one at a time: together they are gigabytes."""
    if place.is_dir():
        yield from sorted((place / "torch" / "lib").glob("*.so*"))
        return
    with zipfile.ZipFile(place) as wheel:
        for name in wheel.namelist():
            if re.match(r"torch/lib/[^/]*\.so", name):
                yield pathlib.Path(wheel.extract(name, folder))
                (pathlib.Path(folder) / name).unlink()


def release_of(place):
    if place.is_dir():
        return re.search(r"__version__ = '([0-9.]+)", (place / "torch/version.py").read_text()).group(1)
    return re.match(r"torch-([0-9.]+)", place.name).group(1)


def imports_of(place):
    """Lines without the release: {(library, soname, function, node)}."""
    needed, undefined, defined, shipped = set(), {}, set(), set()
    with tempfile.TemporaryDirectory() as folder:
        for library in objects_in(place, folder):
            shipped.add(library.name)
            read_library(library, needed, undefined, defined)
    homes = sorted(name for name in needed - shipped if not SYSTEM.match(name))
    found = {(home.split(".so")[0], home, "-", "-") for home in homes}
    for name, version in undefined.items():
        if name in defined or name.startswith("_Z"):
            continue
        # A version node has the library's name, or begins with it: libcufile.so.0, libnvrtc.so.12.
        if version in homes:
            found.add((version.split(".so")[0], version, name, version))
            continue
        for stem, pattern in PREFIXES:
            home = [other for other in homes if other.split(".so")[0] == stem]
            if home and re.match(pattern, name):
                found.add((stem, home[0], name, version))
                break
    return found


def order(release):
    return [int(part) for part in release.split(".")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=pathlib.Path, default=pathlib.Path(__file__).with_name("imports.tsv"))
    parser.add_argument("places", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    releases = {}
    if arguments.table.exists():
        for line in arguments.table.read_text().splitlines():
            if line and not line.startswith("#"):
                *key, known = line.split("\t")
                for release in known.split(" "):
                    releases.setdefault(release, set()).add(tuple(key))
    for place in arguments.places:
        releases[release_of(place)] = imports_of(place)
    table = {}
    for release in sorted(releases, key=order):
        for key in releases[release]:
            table.setdefault(key, []).append(release)
    lines = ["# library, soname, function, version node, releases of torch; made by imports.py; '-': the library itself, no node"]
    lines += ["\t".join([*key, " ".join(table[key])]) for key in sorted(table)]
    arguments.table.write_text("\n".join(lines) + "\n")


main()
