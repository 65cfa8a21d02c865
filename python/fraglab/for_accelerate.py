"""A tracker for Accelerate: ``Accelerator(log_with=RecordTracker("x.pickle", steps=3))``."""
from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from fraglab._record import Session, record


class RecordTracker(GeneralTracker):
    """Records GPU memory from ``accelerator.init_trackers`` to ``accelerator.end_training``; arguments are those of ``fraglab.record``.

    Each process records its own GPU. What is logged becomes marks in the recording: the names of the values.
    """

    name = "fraglab"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, file: Any = None, **options: Any) -> None:
        super().__init__()
        self.session = record(file, **options)

    @property
    def tracker(self) -> Session:
        return self.session

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Called by init_trackers where it is given a configuration; the recording begins then at the latest."""
        self._begin()

    def start(self) -> None:
        self._begin()

    def _begin(self) -> None:
        if self.session._state == "new":
            self.session.start()

    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        self._begin()
        record.mark("log " + ", ".join(map(str, values)))

    def finish(self) -> None:
        self.session.stop()
