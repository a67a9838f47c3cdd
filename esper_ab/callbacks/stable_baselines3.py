"""What Stable-Baselines3's EvalCallback measures, as the result of a run.

EvalCallback(env, eval_freq=1000, callback_after_eval=WriteEvaluations(arguments.out))
"""

from __future__ import annotations

from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from esper_ab.callbacks.result_file import write_result


class WriteEvaluations(BaseCallback):  # type: ignore[misc]
    """Writes `mean_reward` to result.json in `folder` after every evaluation; `curve` has the mean rewards so far.

    By default, the folder is the one in which the program runs: the run's own, for a command without {out}.
    """

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__()
        self.folder = Path(folder)
        self.curve: list[float] = []

    def _on_step(self) -> bool:
        self.curve.append(float(self.parent.last_mean_reward))
        numbers = {
            "mean_reward": self.curve[-1],
            "best_mean_reward": float(self.parent.best_mean_reward),
            "timesteps": float(self.num_timesteps),
        }
        write_result(self.folder, {**numbers, "curve": self.curve})
        return True
