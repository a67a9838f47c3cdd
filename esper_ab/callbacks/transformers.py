"""What a Trainer of transformers, or of TRL, logs, as the result of a run.

Trainer(..., callbacks=[WriteLogs(arguments.out)])
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from esper_ab.callbacks.result_file import write_result


class WriteLogs(TrainerCallback):  # type: ignore[misc]
    """Writes the last of each logged number, such as `eval_loss`, to result.json in `folder`; `curves` has all.

    By default, the folder is the one in which the program runs: the run's own, for a command without {out}.
    """

    def __init__(self, folder: str | Path = ".") -> None:
        self.folder = Path(folder)
        self.curves: dict[str, list[float]] = {}

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Keep the numbers of the main process."""
        if not state.is_world_process_zero:
            return
        for name, value in (logs or {}).items():
            if isinstance(value, Real):
                self.curves.setdefault(name, []).append(float(value))
        write_result(self.folder, {name: values[-1] for name, values in self.curves.items()})
