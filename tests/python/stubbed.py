"""Runs programs over the stand-in for PyTorch of tests/programs/stub_dryrun and the software CUDA: no wheel, no GPU."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA = ROOT / "build/release/software-cuda/12"


def environment(folder, **more):
    """Of a process that has the stand-in and the package of the tree."""
    path = os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests/programs/stub_dryrun")])
    return dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(folder), **more)


def software(folder):
    """A folder with the list of what the stand-in loads."""
    cuda = pathlib.Path(folder, "cuda")
    cuda.mkdir(exist_ok=True)
    (cuda / "preload").write_text("\n".join(str(CUDA / name) for name in ("libcuda.so.1", "libcudart.so.12")))
    return cuda


def dry(program, *arguments, gpu="1GiB", folder=None, **more):
    """A program, as text, in a dry run."""
    with tempfile.TemporaryDirectory() as made:
        folder = folder or made
        script = pathlib.Path(folder, "program.py")
        script.write_text(program)
        command = [str(ROOT / "fraglab"), "dryrun", "-q", "--gpu", gpu, "--software", str(software(folder)), "--", sys.executable, str(script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(folder, **more), check=False)
