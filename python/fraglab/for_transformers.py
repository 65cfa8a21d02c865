"""A callback for the Trainer of transformers: ``Trainer(..., callbacks=[RecordCallback("x.pickle", steps=3)])``."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from fraglab._record import record


class RecordCallback(TrainerCallback):
    """Records the GPU memory of training; arguments are those of ``fraglab.record``. ``session`` has the answer.

    Steps are those of the optimizer, so gradient accumulation needs no setting. Evaluation and prediction are phases.
    """

    def __init__(self, file: Any = None, **options: Any) -> None:
        self.session = record(file, **options)
        self._evaluating: Any = None

    def _evaluate(self, begins: bool) -> None:
        if begins == (self._evaluating is not None):
            return
        if begins:
            self._evaluating = record.phase("evaluation")
            self._evaluating.__enter__()
        else:
            self._evaluating.__exit__(None, None, None)
            self._evaluating = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.session.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluate(False)
        self.session.stop()

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluate(True)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluate(False)

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **kwargs: Any) -> None:
        self._evaluate(False)
