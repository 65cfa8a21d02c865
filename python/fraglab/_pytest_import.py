"""Makes a PyTorch for CUDA importable in a session on a machine that lacks NVIDIA's libraries, so that tests can be collected."""
from __future__ import annotations

import ctypes
import importlib.util
import os
import pathlib
import re

from fraglab._places import find_bin


def _software(major: str) -> pathlib.Path | None:
    """The folder of the software CUDA beside the program, as built or as installed."""
    beside = pathlib.Path(find_bin()).resolve().parent
    folders = [beside / place / major for place in ("software-cuda", "build/release/software-cuda", "../lib/fraglab/software-cuda")]
    return next((folder for folder in folders if (folder / "preload").is_file()), None)


def _torch_folder() -> pathlib.Path | None:
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    return pathlib.Path(list(spec.submodule_search_locations)[0]) if spec is not None and spec.submodule_search_locations else None


def _lacks_libraries(folder: pathlib.Path) -> bool:
    """Neither the system nor NVIDIA's packages beside torch have them."""
    dependencies = folder / "lib/libtorch_global_deps.so"
    if not dependencies.is_file() or any((folder.parent / "nvidia").glob("*/lib/libcublas.so*")):
        return False
    try:
        ctypes.CDLL(str(dependencies), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return True
    return False


def make_torch_importable() -> None:
    """Without a device: in this process torch.cuda.is_available() stays False, and tests that are not marked run as ever."""
    folder = _torch_folder()
    if os.environ.get("FRAGLAB_DRYRUN") or folder is None or not _lacks_libraries(folder):
        return
    found = re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"](\d+)\.", (folder / "version.py").read_text(), re.M)
    software = _software(found.group(1)) if found else None
    if software is None:
        return
    os.environ["FRAGLAB_SOFTWARE_CUDA"] = "devices=0"
    for name in re.split(r"[:\s]+", (software / "preload").read_text().strip()):
        # It takes the place of an allocation function, which must be so from the start of a process or not at all.
        if not name.startswith("libfraglab-objects"):
            ctypes.CDLL(str(software / name), mode=ctypes.RTLD_GLOBAL)
