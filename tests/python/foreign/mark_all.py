"""A plugin of pytest that marks every test of a package of somebody else, with settings of the environment.

FOREIGN_ENDS=FILE: gets a line of JSON for each report of a test. FOREIGN_TIMES=N: each test N times. FOREIGN_HOLD=WORD: tests with it in their name hold 1 MiB of the device more while they run.
"""
import json
import os

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.gpu_memory(baseline=True))
    items[:] = [item for item in items for _ in range(int(os.environ.get("FOREIGN_TIMES", "1")))]


def pytest_runtest_logreport(report):
    with open(os.environ["FOREIGN_ENDS"], "a") as file:
        name = report.nodeid.rpartition("::")[2]
        file.write(json.dumps({"name": name, "when": report.when, "outcome": report.outcome, "sections": [text for title, text in report.sections if title == "fraglab"]}) + "\n")


@pytest.fixture(autouse=True)
def hold_more(request):
    word = os.environ.get("FOREIGN_HOLD")
    held = None
    if word and word in request.node.name:
        import torch

        held = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    yield
    del held
