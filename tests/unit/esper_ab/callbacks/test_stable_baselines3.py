"""The callback with the library, if it is installed; the curve and the file that an evaluation leaves."""

import json
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")


@pytest.mark.filterwarnings("ignore")  # of the library
def test_the_result_of_a_curve_of_evaluations_is_the_last_evaluation(tmp_path: Path) -> None:
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.monitor import Monitor

    from esper_ab.callbacks.stable_baselines3 import WriteEvaluations

    writer = WriteEvaluations(tmp_path)
    evaluation = EvalCallback(
        Monitor(gymnasium.make("CartPole-v1")), eval_freq=64, callback_after_eval=writer, verbose=0
    )
    PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, seed=1).learn(128, callback=evaluation)
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(writer.curve) == 2
    assert result["curve"] == writer.curve
    assert (result["mean_reward"], result["timesteps"]) == (writer.curve[-1], 128.0)
    assert result["best_mean_reward"] == max(writer.curve)
