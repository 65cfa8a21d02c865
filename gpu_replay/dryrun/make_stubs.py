"""Makes the CUDA libraries that one installed PyTorch wants and this machine has not.

    python3 make_stubs.py --torch SITE/torch --software FOLDER --out FOLDER

What is wanted is read from the symbol tables of torch/lib: the libraries named there that nobody
ships, and the functions looked for in each. The runtime, the driver and NVML are the software CUDA
in --software; functions of the runtime that it lacks, and every function of the other libraries
(cuBLAS, cuDNN, NCCL, ...), become stubs that return 0, except those that answers.c knows better.
OUT/preload lists what LD_PRELOAD must name, OUT/stubs.txt how many stubs each library got.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Libraries that every Linux has; a hash may stand in the name of a bundled one.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|util|pthread|z|stdc\+\+|gcc_s|gomp)(-[0-9a-f]+)?\.so|ld-linux)")
# Functions without a version belong to the library that their names begin like.
PREFIXES = [
    ("libnccl", r"p?nccl"),
    ("libcusparseLt", r"cusparseLt"),
    ("libcufile", r"cuFile"),
    ("libnvshmem_host", r"nvshmem"),
    ("libnvToolsExt", r"nvtx"),
    ("libcupti", r"cupti"),
    ("libcudss", r"cudss"),
]
# A profiler that reports "not initialised" (15) is left alone by its users.
ANSWERS_BY_LIBRARY = {"libcupti": 15}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_of(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-W", "-d", str(library)))


def symbols_of(library):
    """(name, version or "", is it defined here) of each dynamic symbol."""
    for line in run("readelf", "-W", "--dyn-syms", str(library)).splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit():
            name, _, version = columns[7].partition("@")
            yield name, version.lstrip("@"), columns[6] != "UND"


def stem(library):
    return library.split(".so")[0]


def find_wanted(torch):
    """{library: {function: version}} of everything that torch/lib wants and does not have."""
    shipped = sorted((torch / "lib").glob("*.so*"))
    names = {library.name for library in shipped}
    wanted = {}
    undefined = {}
    for library in shipped:
        for needed in needed_of(library):
            if needed not in names and not SYSTEM.match(needed):
                wanted.setdefault(needed, {})
        for name, version, is_defined in symbols_of(library):
            if not is_defined and (version or name not in undefined):
                undefined[name] = version
    for name, version in undefined.items():
        if version in wanted:
            wanted[version][name] = version
            continue
        for prefix, pattern in PREFIXES:
            homes = [library for library in wanted if library.startswith(prefix)]
            if homes and re.match(pattern, name):
                wanted[homes[0]][name] = version
                break
    return wanted


def known_answers():
    """Functions that answers.c defines."""
    text = (HERE / "answers.c").read_text()
    return set(re.findall(r"^(?:ANSWER|HANDLE)\((\w+)", text, re.M))


def write_map(path, functions):
    """A version script: each function in the node that torch asks for; a reference without a
    version finds it in any node."""
    versions = sorted({version for version in functions.values() if version})
    nodes = {version: [] for version in versions or [""]}
    for name, version in sorted(functions.items()):
        nodes[version if version in nodes else versions[0]].append(f"{name};")
    scripts = [f"{version} {{ global: {' '.join(names)}" for version, names in nodes.items()]
    path.write_text(" };\n".join(scripts).lstrip() + " local: *; };\n")


def make_library(out, library, functions, version):
    """Compiles the stubs of one library; returns how many functions only return a number."""
    plain = sorted(set(functions) - known_answers())
    code = ANSWERS_BY_LIBRARY.get(stem(library), 0)
    source = out / f"{library}.c"
    lines = [f"int {name}(void);\nint {name}(void)\n{{\n    return {code};\n}}" for name in plain]
    source.write_text("\n".join(lines + ["extern const int frag_stub;\nconst int frag_stub;"]) + "\n")
    script = out / f"{library}.map"
    write_map(script, functions or {"frag_stub": ""})
    subprocess.run(["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-fno-builtin", "-fPIC", "-shared",
                    f"-DRUNTIME_VERSION={version}", str(HERE / "answers.c"), str(source),
                    "-o", str(out / library), f"-Wl,-soname,{library}",
                    f"-Wl,--version-script={script}"], check=True)
    return len(plain)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", type=pathlib.Path, required=True)
    parser.add_argument("--software", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = find_wanted(arguments.torch)
    runtimes = [library for library in wanted if library.startswith("libcudart.so")]
    if len(runtimes) != 1:
        sys.exit(f"{arguments.torch} wants {runtimes or 'no CUDA runtime'}; expected one")
    runtime = runtimes[0]
    preload = []
    for name in ("libcuda.so.1", runtime, "libnvidia-ml.so.1"):
        library = arguments.software / name
        if library.exists():
            preload.append(library)
            has = {symbol for symbol, _, is_defined in symbols_of(library) if is_defined}
            for symbol in has & set(wanted.get(name, {})):
                del wanted[name][symbol]
        elif name == runtime:
            sys.exit(f"there is no {library}; build the software CUDA first")
    version = int(runtime.rsplit(".", 1)[1]) * 1000
    report = []
    for library in sorted(wanted):
        # What is left of the runtime stands beside it, in the version node of the same name.
        is_rest = (arguments.software / library).exists()
        if is_rest and not wanted[library]:
            continue
        name = f"rest-of-{library}" if is_rest else library
        count = make_library(arguments.out, name, wanted[library], version)
        report.append(f"{name}: {len(wanted[library])} functions, {count} only return a number")
        preload.append(arguments.out / name)
    (arguments.out / "preload").write_text(":".join(str(path.resolve()) for path in preload) + "\n")
    (arguments.out / "stubs.txt").write_text("\n".join(report) + "\n")


main()
