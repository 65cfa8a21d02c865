"""The plugin for pytest: ``pytest --fraglab`` checks what tests marked ``gpu_memory`` need of GPU memory, without a GPU too (docs/pytest.md).

    @pytest.mark.gpu_memory(limit="8 GiB", gpu="rtx4090")
    @pytest.mark.gpu_memory(baseline=True)
    @pytest.mark.gpu_memory(leaks="0 B")

Loaded by every pytest of an environment with fraglab: what is not used is imported by none.
"""
from __future__ import annotations

import os
import pathlib
from typing import Any, Iterator

import pytest

MARKER = ("gpu_memory(limit=None, *, of='reserved', gpu=None, baseline=False, fail_above='0 B', leaks=None): "
          "with --fraglab, check what the test needs of GPU memory")
ARGUMENTS = ("limit", "of", "gpu", "baseline", "fail_above", "leaks")
DEVICES = ("auto", "dry", "gpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fraglab", "GPU memory of tests, without a GPU")
    group.addoption("--fraglab", action="store_true", help="check tests marked gpu_memory (also: fraglab = true in the ini file)")
    group.addoption("--fraglab-update", action="store_true", help="write the figures of tests marked gpu_memory(baseline=True) into the baseline instead of comparing them")
    group.addoption("--fraglab-baseline", metavar="FILE", help="the file of accepted figures (default: fraglab-baseline.json beside the ini file)")
    group.addoption("--fraglab-report", metavar="FILE", help="write a page with the figures and timelines of all marked tests")
    group.addoption("--fraglab-gpu", metavar="CARD", help="the card of a dry run where the marker names none, such as rtx4090 or 24GiB (default: memory without a limit)")
    group.addoption("--fraglab-device", choices=DEVICES, help="where marked tests run: in a dry run, on this machine's GPU, or on the GPU if there is one (default: auto)")
    group.addoption("--fraglab-rows", type=int, default=10, metavar="N", help="tests in the summary, those that reserve most first; 0: no summary (default: 10)")
    parser.addini("fraglab", "check tests marked gpu_memory", type="bool", default=False)
    for name in ("baseline", "gpu", "device"):
        parser.addini(f"fraglab_{name}", f"as --fraglab-{name}")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    options = early_config.known_args_namespace
    if options.fraglab or options.fraglab_update or early_config.getini("fraglab"):
        from fraglab._pytest_import import make_torch_importable

        make_torch_importable()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if getattr(config.option, "fraglab_child", False):
        config.pluginmanager.register(_measure(config, True), "fraglab-measure")
        return
    if not (config.getoption("fraglab") or config.getini("fraglab") or config.getoption("fraglab_update")):
        return
    from fraglab._pytest_session import Plugin

    config.pluginmanager.register(Plugin(config), "fraglab-session")


def _measure(config: pytest.Config, is_child: bool) -> Any:
    from fraglab._pytest_measure import Measure

    return Measure(config, is_child)


def setting(config: pytest.Config, name: str, default: str) -> str:
    """Of the command line, else of the ini file."""
    return config.getoption(f"fraglab_{name}") or config.getini(f"fraglab_{name}") or default


def baseline_path(config: pytest.Config) -> pathlib.Path:
    return pathlib.Path(os.path.join(config.rootpath, setting(config, "baseline", "fraglab-baseline.json")))


def _marks(item: pytest.Item) -> Iterator[Any]:
    """From the farthest (of the module) to the closest."""
    return reversed(list(item.iter_markers("gpu_memory")))


def wishes_of(item: pytest.Item) -> dict[str, Any] | None:
    """What the marks of a test say; the closest wins. None: not marked. What is wrong is a pytest.UsageError."""
    from fraglab import Error
    from fraglab._arguments import size
    from fraglab._pytest_baseline import amount

    marks = list(_marks(item))
    if not marks:
        return None
    wishes: dict[str, Any] = {"limit": None, "of": "reserved", "gpu": None, "baseline": False, "fail_above": 0, "leaks": None}
    for mark in marks:
        if len(mark.args) > 1 or set(mark.kwargs) - set(ARGUMENTS):
            unknown = ", ".join(sorted(set(mark.kwargs) - set(ARGUMENTS))) or "a second argument without a name"
            raise pytest.UsageError(f"{item.nodeid}: gpu_memory does not know {unknown}; expected {', '.join(ARGUMENTS)}")
        wishes.update(zip(ARGUMENTS, mark.args))
        wishes.update(mark.kwargs)
    try:
        for name in ("limit", "leaks"):
            if wishes[name] is not None:
                wishes[name] = size(wishes[name], name)
        amount(wishes["fail_above"], "fail_above")
    except (Error, TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: gpu_memory: {error}") from None
    if wishes["of"] not in ("reserved", "allocated", "requested"):
        raise pytest.UsageError(f"{item.nodeid}: gpu_memory: of: {wishes['of']!r} is unknown; expected reserved, allocated or requested")
    if not isinstance(wishes["baseline"], bool):
        raise pytest.UsageError(f"{item.nodeid}: gpu_memory: baseline is {wishes['baseline']!r}; expected True or False")
    if wishes["gpu"] is not None and not isinstance(wishes["gpu"], str):
        raise pytest.UsageError(f"{item.nodeid}: gpu_memory: gpu is {type(wishes['gpu']).__name__}; expected the name of a card or a size")
    return wishes
