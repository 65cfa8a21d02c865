"""A callback for Lightning: ``Trainer(callbacks=[RecordCallback("x.pickle", steps=3)])``."""
from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from fraglab._record import record


class RecordCallback(Callback):
    """Records the GPU memory of fit, validate, test or predict; arguments are those of ``fraglab.record``. ``session`` has the answer.

    Validation, also the check before the first step, is the phase "evaluation".
    """

    def __init__(self, file: Any = None, **options: Any) -> None:
        self._arguments = (file, options)
        self.session = record(file, **options)
        self._evaluating: Any = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if self.session._state == "ended":  # fit, and then test: each is a recording
            self.session = record(self._arguments[0], **self._arguments[1])
        self.session.start()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._end_evaluation()
        self.session.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end_evaluation()
        self.session.stop()

    def _end_evaluation(self, *_: Any) -> None:
        if self._evaluating is not None:
            self._evaluating.__exit__(None, None, None)
            self._evaluating = None

    def _begin_evaluation(self, *_: Any) -> None:
        self._end_evaluation()
        self._evaluating = record.phase("evaluation")
        self._evaluating.__enter__()

    on_validation_start = on_test_start = on_predict_start = _begin_evaluation
    on_validation_end = on_test_end = on_predict_end = _end_evaluation
