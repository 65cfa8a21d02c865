"""The plugin over the stand-in for PyTorch, with pytest's own pytester: python3 -m pytest -p pytester tests/python/test_pytest_plugin.py

Each test is a session of its own in a process of its own. Needs `make fraglab library software-cuda`. Where
FRAG_TORCH_PYTHON names a Python with pytest and PyTorch for CUDA, the tests at the end run real PyTorch tests.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TORCH_PYTHON = os.environ.get("FRAG_TORCH_PYTHON")
MIB = 1 << 20


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest with the plugin on some tests, over the stand-in."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests/programs/stub_dryrun")]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(tests, *arguments, fraglab=True):
        if tests is not None:
            pytester.makepyfile(test_it="import pytest, torch\n" + textwrap.dedent(tests))
        return pytester.runpytest_subprocess("-p", "fraglab.pytest_plugin", *(["--fraglab"] if fraglab else []), *arguments)

    return run


def baseline(pytester):
    return json.loads((pytester.path / "fraglab-baseline.json").read_text())["figures"]


# ---- where a test runs


def test_marked_tests_run_in_a_dry_run_and_others_where_they_are(session):
    session("""
        import os
        @pytest.mark.gpu_memory(limit="1 GiB", gpu="rtx4090")
        def test_marked():
            assert os.environ["FRAGLAB_DRYRUN"] and "RTX 4090" in os.environ["FRAGLAB_SOFTWARE_CUDA"]
            torch.empty(100)
        def test_other():
            assert "FRAGLAB_DRYRUN" not in os.environ
    """).assert_outcomes(passed=2)


def test_without_the_option_marked_tests_run_plainly(session):
    tests = """
        import os
        @pytest.mark.gpu_memory(limit="1 B", nonsense=1)
        def test_marked():
            assert "FRAGLAB_DRYRUN" not in os.environ
    """
    done = session(tests, "--strict-markers", fraglab=False)
    done.assert_outcomes(passed=1)
    assert "fraglab" not in done.stdout.str().replace("plugins:", "")


def test_the_ini_file_turns_it_on_and_names_the_card(session, pytester):
    pytester.makeini("[pytest]\nfraglab = true\nfraglab_gpu = rtx3090\nfraglab_baseline = sub/figures.json\n")
    (pytester.path / "sub").mkdir()
    session("""
        import os
        @pytest.mark.gpu_memory(baseline=True)
        def test_marked():
            assert "RTX 3090" in os.environ["FRAGLAB_SOFTWARE_CUDA"]
    """, "--fraglab-update", fraglab=False).assert_outcomes(passed=1)
    assert (pytester.path / "sub/figures.json").exists()


def test_fixtures_classes_and_parameters_work_as_usual(session, pytester):
    pytester.makeconftest("""
        import pytest
        @pytest.fixture(scope="session")
        def shared(): return []
        @pytest.fixture(autouse=True)
        def around(): yield "around"
    """)
    done = session("""
        @pytest.mark.gpu_memory(limit="50 MiB")
        class TestAll:
            @pytest.fixture
            def block(self, tmp_path):
                (tmp_path / "x").write_text("x")
                yield torch.empty(10)
            @pytest.mark.parametrize("mib", [10, 20, 60], ids=str)
            def test_sizes(self, block, mib, shared, around, capsys, monkeypatch):
                assert around == "around" and not shared
                shared.append(mib)  # each test has a process of its own
                torch.empty(mib)
            @pytest.mark.gpu_memory(limit="100 MiB")
            def test_closest_mark_wins(self): torch.empty(90)
    """, "-v")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["*test_sizes?60? FAILED*", "*peak reserved 70.00 MiB is above the limit of 50.00 MiB, by 20.00 MiB (requested 70.00 MiB, allocated 70.00 MiB)*"])


def test_outcomes_output_and_tracebacks_are_those_of_the_test(session):
    done = session("""
        pytestmark = pytest.mark.gpu_memory(limit="1 GiB")
        def test_passes(): print("not shown")
        def test_fails():
            print("printed before"); left = 1
            assert left == 2, "because"
        def test_skips(): pytest.skip("no reason")
        @pytest.mark.xfail(strict=True)
        def test_xfails(): assert 0
        @pytest.mark.xfail(strict=True)
        def test_xpasses(): pass
        @pytest.mark.xfail
        def test_too_much(): torch.empty(2000)
        @pytest.fixture
        def broken(): raise RuntimeError("of the fixture")
        def test_error(broken): pass
        @pytest.fixture
        def late(): yield; raise RuntimeError("of the teardown")
        def test_late(late): pass
        def test_warns():
            import warnings
            warnings.warn("of the test")
    """, "-rA")
    done.assert_outcomes(passed=3, failed=2, skipped=1, xfailed=2, errors=2)
    text = done.stdout.str()
    for expected in ("RuntimeError: of the fixture", "RuntimeError: of the teardown", 'assert left == 2, "because"', "printed before", "no reason", "XPASS(strict)", "Captured stdout call"):
        assert expected in text, expected


def test_a_test_that_kills_its_process_fails_alone(session):
    done = session("""
        import os
        pytestmark = pytest.mark.gpu_memory(limit="1 GiB")
        def test_dies(): os.kill(os.getpid(), 11)
        def test_leaves(): os._exit(5)
        def test_after(): torch.empty(1)
    """)
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*the test's process ended with signal SIGSEGV*", "*the test's process ended with exit code 5*"])


def test_tests_that_are_not_marked_keep_their_fixtures_in_order(session):
    session("""
        @pytest.fixture(scope="module")
        def module():
            torch.events = ["up"]
            yield torch.events
            print("down")
        def test_first(module): pass
        @pytest.mark.gpu_memory(limit="1 GiB")
        def test_marked(): pass
        class TestOther:
            def test_second(self, module): assert module == ["up"]
            @pytest.mark.gpu_memory(limit="1 GiB")
            def test_last(self): pass
    """).assert_outcomes(passed=4)


def test_selection_stays_that_of_the_session(session, pytester):
    done = session("""
        pytestmark = pytest.mark.gpu_memory(limit="1 GiB")
        def test_one(): pass
        def test_two(): assert 0
        def test_three(): assert 0
    """, "-x", "-k", "not one", "--junitxml", "junit.xml")
    done.assert_outcomes(failed=1, deselected=1)
    assert 'name="fraglab_reserved_bytes" value="0"' in (pytester.path / "junit.xml").read_text()


def test_cuda_that_was_used_while_tests_were_collected_needs_a_process_for_each(session):
    done = session("""
        import os
        kept = torch.empty(10) if os.environ.get("FRAGLAB_DRYRUN") else None
        pytestmark = pytest.mark.gpu_memory(limit="40 MiB")
        def test_one(): torch.empty(20)
        def test_two(): torch.empty(60)
        def test_dies(): os._exit(3)
        def test_four(): pass
    """)
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(["*peak reserved 70.00 MiB is above the limit of 40.00 MiB*", "*the test's process ended with*"])


def test_workers_of_xdist_give_the_same(session, pytester):
    pytest.importorskip("xdist")
    tests = """
        @pytest.mark.gpu_memory(baseline=True)
        @pytest.mark.parametrize("mib", range(2, 8))
        def test_sizes(mib): torch.empty(10 * mib)
        def test_other(): pass
    """
    done = session(tests, "-n", "2", "--fraglab-update", "--fraglab-report", "page.html")
    done.assert_outcomes(passed=7)
    done.stdout.fnmatch_lines(["*6 records written into*"])
    assert [record["requested_bytes"] for record in baseline(pytester)] == [10 * mib * MIB for mib in range(2, 8)]
    assert (pytester.path / "page.html").read_text().count("<svg") == 6
    session(None, "-n", "2").assert_outcomes(passed=7)
    session(None).assert_outcomes(passed=7)


# ---- what is checked


def test_each_peak_can_be_limited(session):
    done = session("""
        @pytest.mark.parametrize("of", [pytest.param(of, marks=pytest.mark.gpu_memory("11 MiB", of=of)) for of in ("requested", "allocated", "reserved")])
        def test_of(of): torch.empty(11)
    """)
    done.assert_outcomes(passed=1, failed=2)  # 12 MiB of whole pages
    done.stdout.fnmatch_lines(["*peak allocated 12.00 MiB is above the limit of 11.00 MiB, by 1.00 MiB*", "live at the peak of requested bytes:", "*11.00 MiB in    1 block  test_it.py:4 test_of"])


def test_peaks_that_the_test_resets_itself_are_counted(session):
    session("""
        @pytest.mark.gpu_memory(limit="50 MiB")
        def test_resets():
            torch.empty(60)
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.empty_cache()
    """).assert_outcomes(failed=1)


def test_memory_of_fixtures_counts_and_that_of_other_tests_does_not(session):
    session("""
        pytestmark = pytest.mark.gpu_memory(limit="50 MiB")
        @pytest.fixture
        def block(): return torch.empty(40)
        def test_with(block): torch.empty(20)
        def test_without(): torch.empty(20)
    """).assert_outcomes(passed=1, failed=1)


def test_leaks_are_what_stays_behind_all_fixtures(session):
    done = session("""
        pytestmark = pytest.mark.gpu_memory(leaks="0 B")
        kept = []
        @pytest.fixture
        def block():
            blocks = [torch.empty(10)]
            yield blocks
        @pytest.fixture(scope="session")
        def shared(): return torch.empty(10)
        def test_holds_while_it_runs(block, shared): block.append(torch.empty(20))
        def test_leaks(): kept.append(torch.empty(30))
        @pytest.mark.gpu_memory(leaks="30 MiB")
        def test_may(): kept.append(torch.empty(30))
    """)
    done.assert_outcomes(passed=3, errors=1)
    done.stdout.fnmatch_lines(["*ERROR at teardown of test_leaks*", "GPU memory: 30.00 MiB are live after the test that were not before, above the 0 B of its leaks", "live now:", "*30.00 MiB in    1 block  test_it.py:12 test_leaks"])


def test_memory_that_runs_out_is_explained(session):
    done = session("""
        @pytest.mark.gpu_memory(gpu="1GiB")
        def test_out():
            kept = torch.empty(600)
            torch.empty(600)
    """)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E*OutOfMemoryError: CUDA out of memory*", "*fraglab explain*", "verdict    shortage*", "*600.00 MiB in*1 block*"])


# ---- the baseline

GROWS = """
    import os
    @pytest.mark.gpu_memory(baseline=True)
    def test_base():
        kept = [torch.empty(10) for _ in range(3)]
        more = torch.empty(int(os.environ.get("MORE", 10)))
    @pytest.mark.gpu_memory(baseline=True, fail_above="1 MiB")
    def test_tolerant(): torch.empty(int(os.environ.get("MORE", 10)))
"""


def test_one_more_mebibyte_fails_and_the_same_passes(session, pytester, monkeypatch):
    done = session(GROWS)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*there is no baseline for torch 2.9.1+cu128 on a card of the tests (dry run); pytest --fraglab --fraglab-update writes it"])
    session(None, "--fraglab-update").assert_outcomes(passed=2)
    records = baseline(pytester)
    assert [(record["test"], record["requested_bytes"], record["device_calls"]) for record in records] == [("test_it.py::test_base", 40 * MIB, 4), ("test_it.py::test_tolerant", 10 * MIB, 1)]
    assert all(record["torch"] == "2.9.1+cu128" and record["fraglab"] and len(record["digest"]) == 16 for record in records)
    session(None).assert_outcomes(passed=2)
    monkeypatch.setenv("MORE", "11")
    done = session(None)
    done.assert_outcomes(passed=0, failed=2)  # reserved grows by a page of 2 MiB, which is above 1 MiB
    done.stdout.fnmatch_lines(["*above the baseline: requested 40.00 MiB -> 41.00 MiB (+1,048,576), allocated 40.00 MiB -> 42.00 MiB (+2,097,152)*", "*30.00 MiB in    3 blocks  test_it.py:6 *"])
    monkeypatch.setenv("MORE", "8")
    done = session(None)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["test_it.py::test_base: below the baseline: requested 40.00 MiB -> 38.00 MiB (-2,097,152)*; --fraglab-update keeps it"])


def test_a_hundred_repeats_have_the_same_figures(session, pytester):
    tests = """
        import random
        @pytest.mark.gpu_memory(baseline=True)
        @pytest.mark.parametrize("size", [10, 33])
        def test_mixed(size):
            kept = [torch.empty(number % 7 + size) for number in range(40)]
            del kept[::2]
            kept += [torch.empty(size) for _ in range(30)]
    """
    session(tests, "--fraglab-update").assert_outcomes(passed=2)
    first = (pytester.path / "fraglab-baseline.json").read_text()
    pytester.makepyfile(test_it="import pytest, torch\n" + textwrap.dedent(tests) + "@pytest.mark.parametrize('again', range(50))\n@pytest.mark.gpu_memory(limit='3 GiB')\n"
                        "@pytest.mark.parametrize('size', [10, 33])\ndef test_again(size, again, request): test_mixed(size); request.node.user_properties.append(('size', size))\n")
    done = session(None, "--fraglab-rows", "200")
    done.assert_outcomes(passed=102)
    rows = [line.split("  test_it.py")[0] for line in done.outlines if "  test_it.py::test_" in line]
    assert len(rows) == 102 and len(set(rows)) == 2, sorted(set(rows))
    session(None, "--fraglab-update").assert_outcomes(passed=102)
    assert (pytester.path / "fraglab-baseline.json").read_text() == first


def test_another_release_or_card_has_figures_of_its_own_and_drift_is_said(session, pytester):
    tests = """
        @pytest.mark.gpu_memory(baseline=True)
        def test_base(): torch.empty(10)
    """
    session(tests, "--fraglab-update").assert_outcomes(passed=1)
    path = pytester.path / "fraglab-baseline.json"
    text = path.read_text()
    path.write_text(text.replace("2.9.1+cu128", "2.6.0+cu124"))
    done = session(None)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*there is no baseline for torch 2.9.1+cu128 on a card of the tests (dry run); there is one for torch 2.6.0+cu124 on a card of the tests (dry run);*"])
    session(None, "--fraglab-update").assert_outcomes(passed=1)
    assert [record["torch"] for record in baseline(pytester)] == ["2.6.0+cu124", "2.9.1+cu128"]
    digest = baseline(pytester)[1]["digest"]
    path.write_text(text.replace(digest, "0123456789abcdef"))
    done = session(None)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*test_base: the baseline was made with fraglab *, software CUDA 0123456789abcdef, this is fraglab *; --fraglab-update records it"])
    path.write_text(text.replace(digest, "0123456789abcdef").replace(str(10 * MIB), str(9 * MIB)))
    done = session(None)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*above the baseline*the change may be fraglab's own*"])


@pytest.mark.parametrize("text, words", [("{", "expected JSON"), ("[]", "expected a baseline of schema 1"), ('{"schema": 2, "figures": []}', "expected a baseline of schema 1"),
                                         ('{"schema": 1, "figures": [{"test": "x"}]}', "figures?0? is no record of a test"), ('{"schema": 1, "figures": [3]}', "figures?0? is no record")])
def test_a_damaged_baseline_is_refused_with_its_name(session, pytester, text, words):
    (pytester.path / "fraglab-baseline.json").write_text(text)
    done = session("def test_it(): pass\n")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"*fraglab-baseline.json: {words}*"])


# ---- what is wrong, and what is shown


def test_a_test_of_values_that_fails_in_a_dry_run_says_where_it_read_them(session):
    done = session("""
        @pytest.mark.gpu_memory(limit="1 GiB")
        @pytest.mark.parametrize("wanted, why", [(0, None), (1, None), (1, pytest.skip), (1, pytest.xfail)])
        def test_value(wanted, why):
            torch.empty(10)
            value = torch.Tensor().item()
            if why is not None:
                why("for a reason")
            assert value == wanted
        @pytest.mark.gpu_memory(limit="1 GiB")
        def test_other():
            torch.empty(10)
            assert 1 == 2
    """)
    done.assert_outcomes(passed=1, failed=2, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(["*The test read values that only a GPU would compute, at test_it.py:7; in a dry run they are 0.*"])
    assert str(done.stdout).count("only a GPU would compute") == 1


@pytest.mark.parametrize("mark, words", [("limit='8 GB of it'", "gpu_memory: limit: '8 GB of it' is not a size"), ("size=3", "gpu_memory does not know size; expected limit, of, gpu"),
                                         ("leaks=-1", "leaks: -1 is out of range"), ("of='all'", "of: 'all' is unknown; expected reserved"), ("'1 GiB', 'rtx4090'", "a second argument without a name"),
                                         ("baseline=3", "baseline is 3; expected True or False"), ("baseline=True, fail_above='x%'", "fail_above: 'x%' is not a share"), ("gpu=3", "gpu is int")])
def test_a_wrong_mark_is_refused_before_any_test_runs(session, mark, words):
    done = session(f"""
        def test_before(): assert 0
        @pytest.mark.gpu_memory({mark})
        def test_marked(): pass
    """)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: test_it.py::test_marked: *{words}*".replace("[", "?")])


def test_a_card_that_is_not_there_is_a_failure_with_the_program_s_sentence(session):
    done = session("""
        @pytest.mark.gpu_memory(gpu="rtx9999")
        @pytest.mark.parametrize("number", [1, 2])
        def test_marked(number): pass
    """)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*no dry run could be started, in which the test would have run:*", "*rtx9999*"])


def test_a_python_without_torch_says_so(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("this Python has torch")
    pytester.makepyfile("import pytest\n@pytest.mark.gpu_memory('1 GiB')\ndef test_it(): pass\n")
    done = pytester.runpytest_subprocess("-p", "fraglab.pytest_plugin", "--fraglab")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*has no torch; install PyTorch for CUDA there*"])


def test_the_summary_and_the_page_show_the_figures(session, pytester):
    done = session("""
        @pytest.mark.gpu_memory(limit="100 MiB")
        @pytest.mark.parametrize("mib", [10, 30, 20], ids=["<a>", "b", "c"])
        def test_sizes(mib): torch.empty(mib)
    """, "--fraglab-rows", "2", "--fraglab-report", "page.html")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["*GPU memory (fraglab)*", "on a card of the tests (dry run), torch 2.9.1+cu128", "*requested*allocated*reserved*device calls*leaked*test", "*30.00 MiB*30.00 MiB*30.00 MiB*1*0 B*test_sizes?b?",
                               "*20.00 MiB*test_sizes?c?", "and 1 more tests; --fraglab-rows 3 shows them", "page: page.html"])
    page = (pytester.path / "page.html").read_text()
    assert page.count("<svg") == 3 and "test_sizes[&lt;a&gt;]" in page and "test_it.py:5 test_sizes" in page and "http" not in page


def test_a_page_that_cannot_be_written_is_said_before_any_test_runs(session, pytester):
    (pytester.path / "folder").mkdir()
    for place, words in (("nowhere/page.html", "there is no folder *nowhere; make it"), ("folder", "it is a folder; name a file in it"), ("/dev/null/page.html", "there is no folder /dev/null;")):
        done = session("def test_runs(): open('ran', 'w')", "--fraglab-report", place)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines([f"ERROR: --fraglab-report: *{place}: {words}*"])
        assert not (pytester.path / "ran").exists()


def test_the_whole_session_may_run_in_a_dry_run(session, pytester, monkeypatch):
    """As on a GPU: tests run in the session's own process, one after the other."""
    pytester.makepyfile(test_it="import pytest, torch\n" + textwrap.dedent("""
        pytestmark = pytest.mark.gpu_memory(limit="100 MiB", leaks="0 B", baseline=True)
        kept = []
        @pytest.fixture(scope="module")
        def wide(): return torch.empty(20)
        def test_first(wide): torch.empty(60)
        def test_same(wide): torch.empty(60)
        def test_leaks(wide): kept.append(torch.empty(10))
        def test_sees_what_leaked(wide): torch.empty(75)
    """))
    command = [str(ROOT / "fraglab"), "dryrun", "-q", "--gpu", "1GiB", "--", sys.executable, "-m", "pytest", "-p", "fraglab.pytest_plugin", "--fraglab"]
    for more, counts in ((["--fraglab-update"], "1 failed, 3 passed, 1 error"), ([], "1 failed, 3 passed, 1 error")):
        done = subprocess.run(command + more, capture_output=True, text=True, check=False)
        assert counts in done.stdout, done.stdout
    assert "ERROR at teardown of test_leaks" in done.stdout and "10.00 MiB are live after the test" in done.stdout
    assert {record["test"].split("::")[1]: record["requested_bytes"] // MIB for record in baseline(pytester)} == \
        {"test_first": 80, "test_same": 80, "test_leaks": 30, "test_sees_what_leaked": 105}


# ---- PyTorch itself


def test_a_session_loads_libraries_for_pytorch_but_no_allocation_function(tmp_path):
    """A process that runs already has objects of the functions that it began with."""
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/version.py").write_text("cuda: str = '12.8'\n")
    (tmp_path / "torch/lib/libtorch_global_deps.so").write_text("cannot be loaded")
    program = "from fraglab import _pytest_import; _pytest_import.make_torch_importable(); print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{tmp_path}"}, capture_output=True, text=True, check=True).stdout
    assert "libcublas.so.12" in maps
    assert "libfraglab-objects" not in maps



@pytest.mark.skipif(not TORCH_PYTHON, reason="FRAG_TORCH_PYTHON names no Python with PyTorch for CUDA and pytest")
class TestPyTorch:
    def run(self, pytester, monkeypatch, *arguments):
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
        return subprocess.run([TORCH_PYTHON, "-m", "pytest", "-p", "fraglab.pytest_plugin", "--fraglab", *arguments], capture_output=True, text=True, cwd=pytester.path, check=False)

    def test_a_planted_mebibyte_fails_and_repeats_are_equal(self, pytester, monkeypatch):
        pytester.makepyfile(test_net="""
            import os
            import pytest
            import torch

            @pytest.fixture(scope="module")
            def net():
                return torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True) for _ in range(2)]).cuda()

            @pytest.mark.skipif(not torch.cuda.is_available() and "FRAGLAB_DRYRUN" in os.environ, reason="no GPU")
            @pytest.mark.gpu_memory(baseline=True, limit="100 MiB", leaks="0 B", gpu="rtx4090")
            @pytest.mark.parametrize("again", range(int(os.environ.get("AGAIN", 1))))
            def test_step(net, again):
                optimizer = torch.optim.AdamW(net.parameters())
                planted = torch.empty(int(os.environ.get("PLANTED", 0)), dtype=torch.uint8, device="cuda")
                torch.cuda.reset_peak_memory_stats()
                with torch.autocast("cuda", torch.bfloat16):
                    net(torch.randn(8, 64, 128, device="cuda")).float().sum().backward()
                optimizer.step()
                assert torch.isfinite(net(torch.randn(8, 64, 128, device="cuda"))).all()
        """)
        monkeypatch.setenv("AGAIN", os.environ.get("FRAG_TEST_REPEATS", "10"))
        done = self.run(pytester, monkeypatch, "--fraglab-update")
        assert f"{os.environ['AGAIN']} passed" in done.stdout, done.stdout
        figures = {tuple(value for name, value in record.items() if name != "test") for record in baseline(pytester)}
        assert len(figures) == 1, figures
        assert f"{os.environ['AGAIN']} passed" in self.run(pytester, monkeypatch).stdout
        monkeypatch.setenv("AGAIN", "1")
        monkeypatch.setenv("PLANTED", str(MIB))
        done = self.run(pytester, monkeypatch)
        assert "1 failed" in done.stdout and "(+1,048,576)" in done.stdout, done.stdout
