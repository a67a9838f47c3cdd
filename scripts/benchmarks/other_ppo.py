"""PPO of other libraries: PYTHON other_ppo.py LIBRARY TASK N_ENVS STEPS MINIBATCHES EPOCHS HIDDEN.

Started by ppo.py, it reads numbers of environment steps from stdin, trains for that many and prints the CPU seconds
used.
"""

import importlib
import sys
import time

import gymnasium
from stable_baselines3.common.vec_env import DummyVecEnv


def main(library: str, task: str, *numbers: str) -> None:
    n_envs, steps, minibatches, epochs, hidden = map(int, numbers)
    recurrent = library == "sb3_contrib"
    learner = getattr(importlib.import_module(library), "RecurrentPPO" if recurrent else "PPO")
    model = learner(
        "MlpLstmPolicy" if recurrent else "MlpPolicy",
        DummyVecEnv([lambda: gymnasium.make(task, disable_env_checker=True)] * n_envs),
        policy_kwargs={"lstm_hidden_size": hidden} if recurrent else {"net_arch": [hidden, hidden]},
        device="cpu",
        n_steps=steps,
        batch_size=n_envs * steps // minibatches,
        n_epochs=epochs,
    )
    for line in sys.stdin:
        begin_s = time.process_time()
        model.learn(int(line), reset_num_timesteps=False)
        print(time.process_time() - begin_s, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
