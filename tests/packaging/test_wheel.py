#!/usr/bin/env python3
"""The writer of the wheel and its checker, with no network and no compiler: python3 tests/packaging/test_wheel.py."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "packaging"))
import backend  # noqa: E402
import check_wheel  # noqa: E402
import wheel  # noqa: E402

TAG = "py3-none-manylinux_2_17_x86_64"


def make_prefix(folder):
    """A small tree as `make install` leaves it; the program is a script."""
    files = {
        "bin/fraglab": "#!/bin/sh\necho \"$0\" \"$@\"\n",
        "lib/libfraglab.a": "archive",
        "lib/libfraglab.so.0": "library",
        "lib/fraglab/software-cuda/libcuda.so.1": "driver",
        "share/doc/fraglab/README.md": "page",
        "share/fraglab/devices/rtx4090.yaml": "card",
        "share/man/man1/fraglab.1": "page of the manual",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.chmod(folder / "bin/fraglab", 0o755)
    (folder / "lib/libfraglab.so").symlink_to("libfraglab.so.0")
    major = folder / "lib/fraglab/software-cuda/12"
    major.mkdir()
    (major / "libcuda.so.1").symlink_to("../libcuda.so.1")
    (major / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fraglab-wheel-"))
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        self.prefix = make_prefix(self.folder / "prefix")

    def write(self, folder="out"):
        name = wheel.write_wheel(self.folder / folder, TAG, wheel.entries(self.prefix, None))
        return self.folder / folder / name

    def names(self):
        with zipfile.ZipFile(self.write()) as archive:
            return archive.namelist()

    def test_same_files_give_the_same_bytes(self):
        first = self.write("first").read_bytes()
        for path in self.prefix.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))
        self.assertEqual(first, self.write("second").read_bytes())
        os.environ["SOURCE_DATE_EPOCH"] = "1700000002"
        self.assertNotEqual(first, self.write("third").read_bytes())

    def test_pages_and_archives_stay_out(self):
        names = self.names()
        self.assertIn("fraglab/_root/lib/libfraglab.so.0", names)
        for name in ("lib/libfraglab.a", "lib/libfraglab.so", "share/doc/fraglab/README.md", "lib/fraglab/software-cuda/libcuda.so.1"):
            self.assertNotIn("fraglab/_root/" + name, names)
        self.assertIn(f"fraglab-{wheel.version()}.data/data/share/man/man1/fraglab.1", names)

    def test_links_become_files(self):
        with zipfile.ZipFile(self.write()) as archive:
            self.assertEqual(archive.read("fraglab/_root/lib/fraglab/software-cuda/12/libcuda.so.1"), b"driver")
            self.assertIn(b"INPUT(libcuda.so.1)", archive.read("fraglab/_root/lib/fraglab/software-cuda/12/libcuda.so"))

    def test_program_may_be_executed_and_data_may_not(self):
        with zipfile.ZipFile(self.write()) as archive:
            modes = {info.filename: info.external_attr >> 16 & 0o777 for info in archive.infolist()}
        self.assertEqual(modes["fraglab/_root/bin/fraglab"], 0o755)
        self.assertEqual(modes["fraglab/_root/share/fraglab/devices/rtx4090.yaml"], 0o644)
        self.assertEqual(modes["fraglab/__init__.py"], 0o644)

    def test_samples_are_of_at_most_a_megabyte(self):
        self.assertLessEqual(sum((ROOT / "traces/samples" / name).stat().st_size for name in wheel.SAMPLES), 1000000)

    def test_pip_installs_runs_and_takes_away(self):
        target = self.folder / "environment"
        if subprocess.run([sys.executable, "-m", "venv", str(target)], capture_output=True, check=False).returncode != 0:
            self.skipTest("this Python has no venv")
        before = {path for path in target.rglob("*") if path.is_file()}
        pip = [str(target / "bin/pip"), "--disable-pip-version-check", "-q"]
        subprocess.run(pip + ["install", "--no-index", str(self.write())], check=True)
        said = subprocess.run([str(target / "bin/fraglab"), "run", "x y"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, "fraglab run x y\n".replace("fraglab", str(next(target.rglob("_root/bin/fraglab"))), 1))
        self.assertTrue((target / "share/man/man1/fraglab.1").is_file())
        subprocess.run(pip + ["uninstall", "-y", "fraglab"], check=True)
        left = {path for path in target.rglob("*") if path.is_file()} - before
        self.assertEqual({path for path in left if "pip" not in path.parts}, set())

    def test_checker_sees_what_is_wrong(self):
        good = self.write()
        self.assertEqual(check_wheel.check_wheel(good, "2.17", 10**7, []), [])
        self.assertIn("expected at most 10", check_wheel.check_wheel(good, "2.17", 10, [])[0])
        self.assertIn("holds 'driver'", check_wheel.check_wheel(good, "2.17", 10**7, ["driver"])[0])
        files = {"b.txt": (b"", False), "a.txt": (b"", False)}
        bad = self.folder / "bad.whl"
        wheel.write_zip(bad, {**files, "x.dist-info/RECORD": (b"a.txt,sha256=wrong,0\nx.dist-info/RECORD,,\n", False)})
        wrong = "\n".join(check_wheel.check_wheel(bad, "2.17", 10**7, []))
        self.assertIn("b.txt: is not in RECORD", wrong)
        self.assertIn("a.txt: its digest", wrong)
        self.assertIn("not sorted", wrong)

    def test_checker_reads_what_a_binary_needs(self):
        program = ROOT / "fraglab"
        if not program.is_file():
            self.skipTest("fraglab is not built")
        data = program.read_bytes()
        elf = check_wheel.Elf(data)
        self.assertIn("libc.so.6", elf.texts(check_wheel.DYNAMIC_NEEDED))
        self.assertTrue(any(re.fullmatch(r"GLIBC_2[.0-9]+", version) for version in elf.versions()))
        wrong = check_wheel.check_binary("fraglab", data, set(), "2.1", elf.machine)
        self.assertTrue(any("expected GLIBC_2.1 or older" in line for line in wrong))
        self.assertTrue(any("neither of glibc nor in the wheel" in line for line in wrong))
        self.assertIn(f"fraglab: is for {elf.machine}; expected m68k", check_wheel.check_binary("fraglab", data, set(), "2.99", "m68k"))
        wrong = check_wheel.check_binary("fraglab", data, set(), None, elf.machine)
        self.assertTrue(any("expected no versions, as of musl" in line for line in wrong))
        self.assertTrue(any("needs libc.so.6, which is neither of musl" in line for line in wrong))

    def test_source_distribution_is_reproducible_and_has_what_builds(self):
        first = backend.build_sdist(str(self.folder / "a"))
        self.assertEqual((self.folder / "a" / first).read_bytes(), (self.folder / "b" / backend.build_sdist(str(self.folder / "b"))).read_bytes())
        with tarfile.open(self.folder / "a" / first) as archive:
            names = archive.getnames()
            commit = archive.extractfile(f"fraglab-{wheel.version()}/VERSION.commit").read().decode()
        self.assertNotIn("$Format", commit)
        for name in ("Makefile", "PKG-INFO", "pyproject.toml", "packaging/backend.py", "python/fraglab/__init__.py", "sim/trace/trace.h", "traces/samples/unet.pickle.zst"):
            self.assertIn(f"fraglab-{wheel.version()}/{name}", names)
        self.assertFalse([name for name in names if "/tests/data/" in name])


if __name__ == "__main__":
    unittest.main()
