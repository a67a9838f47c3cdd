"""Make tests/field/files: small files as other libraries write them.

Each library runs for itself, so that its files are those of its newest version:

    python3 -m venv /tmp/sb3 && /tmp/sb3/bin/pip install stable-baselines3
    /tmp/sb3/bin/python scripts/field_files.py sb3

Nothing is installed and nothing downloaded here. The libraries' names are those of the functions below:

    tensorboard   torch, tensorboard            inspect   inspect-ai (its tokenizer, a download, is replaced)
    sb3           stable-baselines3             frames    pandas, polars, pyarrow
    rl_zoo3       rl-zoo3                       lm_eval   lm-eval (model "dummy")
    wandb         wandb                         wandb_offline  wandb

LeRobot is run by its writer alone, because its environments are not on PyPI: `field_files.py lerobot FOLDER`, with the
folder of an unpacked wheel, in an environment with torch, gymnasium and einops.
Host names and descriptions of the machine are replaced by "host".
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FILES = Path(__file__).parents[1] / "tests" / "field" / "files"
_RETURNS = {"small": 60.0, "large": 80.0}  # the groups' outcomes


def tensorboard(folder: Path) -> str:
    """Events as CleanRL logs them: several episodes at a step, a text, a histogram; and a new kind of scalar."""
    from torch.utils.tensorboard import SummaryWriter

    rng = np.random.default_rng(0)
    for group, end in _RETURNS.items():
        for seed in range(3):
            run = folder / f"CartPole-v1__{group}__{seed}"
            with SummaryWriter(run) as writer:
                writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|seed|1|")
                for step in range(0, 500, 50):
                    for _ in range(1 + (step == 200)):
                        value = end * (step + 50) / 500 + rng.normal()
                        writer.add_scalar("charts/episodic_return", value, step)
                    writer.add_scalar("losses/value_loss", 1 / (1 + step), step, new_style=True)
                if seed == 0:
                    writer.add_histogram("actions", rng.normal(size=5), 450)
            for file in run.iterdir():
                file.rename(run / "events.out.tfevents.1700000000.host.1.0")
    return _version("torch", "tensorboard")


def sb3(folder: Path) -> str:
    """A run with Monitor, EvalCallback and the CSV logger."""
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.monitor import Monitor

    run = folder / "ppo-seed3"
    run.mkdir()
    model = PPO("MlpPolicy", Monitor(gymnasium.make("CartPole-v1"), str(run)), seed=3, n_steps=256, device="cpu")
    model.set_logger(configure(str(run), ["csv"]))
    evaluation = Monitor(gymnasium.make("CartPole-v1"))
    model.learn(1024, EvalCallback(evaluation, n_eval_episodes=4, eval_freq=512, log_path=str(run), verbose=0))
    return _version("stable-baselines3")


def rl_zoo3(folder: Path) -> str:
    """A folder of RL Zoo: two environments, each with a monitor file, and evaluations."""
    command = "-m rl_zoo3.train --algo a2c --env CartPole-v1 -n 1200 --eval-freq 300 --eval-episodes 3 --n-eval-envs 1"
    parameters = ["--hyperparams", "n_envs:2", "n_timesteps:1200.0", "policy:'MlpPolicy'"]
    words = [sys.executable, *command.split(), "--seed", "3", "--device", "cpu", "-f", str(folder), *parameters]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    for unused_file in [file for end in ("zip", "yml", "pkl", "txt") for file in folder.rglob(f"*.{end}")]:
        unused_file.unlink()
    return _version("rl-zoo3")


def wandb(folder: Path) -> str:
    """Two offline runs, one of which fails; the longest record fills several blocks."""
    import wandb as library

    quiet_settings = library.Settings(
        mode="offline", host="host", console="off", disable_git=True, disable_code=True, x_disable_meta=True,
        x_disable_stats=True, x_disable_machine_info=True, silent=True,
    )  # fmt: skip
    for name, seed, exit_code in (("large-seed3", 3, 0), ("large-seed4", 4, 1)):
        config = {"seed": seed, "lr": 0.1, "model": {"width": 64}}
        run = library.init(
            project="p", name=name, id=name, group="large", config=config, dir=folder, settings=quiet_settings
        )
        for step in range(5):
            run.log({"eval/return": 10.0 * step + seed, "eval": {"done": step > 2}, "episodes": step})
        run.log({"note": "x" * (17_000 if exit_code else 10), "loss": 0.5})
        run.finish(exit_code=exit_code)
    for path in sorted((folder / "wandb").glob("offline-run-*")):
        for file in path.glob("*.wandb"):
            file.rename(folder / file.name)
    shutil.rmtree(folder / "wandb")
    return _version("wandb")


def wandb_offline(folder: Path) -> str:
    """The folder `wandb` that offline runs leave, whole: only the configuration tells their groups."""
    import wandb as library

    os.chdir(folder)  # so that logs have relative paths
    settings = library.Settings(
        mode="offline", host="host", disable_git=True, disable_code=True, x_disable_meta=True, x_disable_stats=True,
        x_disable_machine_info=True, x_save_requirements=False, silent=True,
    )  # fmt: skip
    for place, (algorithm, seed) in enumerate((algorithm, seed) for algorithm in _RETURNS for seed in range(2)):
        config = {"algo": algorithm, "seed": seed, "lr": 0.1, "layers": [64, 64]}
        run = library.init(project="p", id="dywx"[place] + "4k2q9h1", dir=".", config=config, settings=settings)
        for step in range(3):
            print(f"step {step}")
            run.log({"return": _RETURNS[algorithm] * (step + 1) / 3 + seed})
        run.log({"examples": library.Table(columns=["question", "answer"], data=[["1+1", "2"], ["1+2", "3"]])})
        run.finish()
    for place, path in enumerate(sorted((folder / "wandb").glob("offline-run-*"))):
        (path / "logs" / "debug-core.log").unlink()  # a link to a log of the machine
        shutil.rmtree(path / "tmp")
        path.rename(path.with_name(f"offline-run-20260101_00000{place}-{path.name.rpartition('-')[2]}"))
    for link in [path for path in (folder / "wandb").iterdir() if path.is_symlink()]:
        link.unlink()
    os.chdir(FILES)
    return _version("wandb")


_LM_EVAL_TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
"""
_GENERATE = """
output_type: generate_until
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list:
  - {name: strict-match, filter: [{function: regex, regex_pattern: "(o+)"}, {function: take_first}]}
  - {name: flexible-extract, filter: [{function: take_first}]}
"""
_CHOOSE = """
output_type: multiple_choice
doc_to_choice: ["{{answer}}", "{{wrong}}"]
doc_to_target: 0
metric_list: [{metric: acc}, {metric: acc_norm}]
"""


def lm_eval(folder: Path) -> str:
    """Samples and results of two tasks, one of which is scored after two filters."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "adding.jsonl"
        documents = [{"question": f"{n}+1?", "answer": str(n + 1), "wrong": str(n)} for n in range(4)]
        data.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
        for name, task_text in (("adding", _GENERATE), ("choosing", _CHOOSE)):
            text = _LM_EVAL_TASK.format(name=name, data=data) + task_text
            (Path(place) / f"{name}.yaml").write_text(text, encoding="utf-8")
        words = f"-m lm_eval --model dummy --include_path {place} --tasks adding,choosing --log_samples"
        offline_environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        subprocess.run(
            [sys.executable, *words.split(), "--output_path", folder / "checkpoint"],
            check=True,
            env=offline_environment,
        )
        for results in folder.rglob("results_*.json"):
            document = json.loads(results.read_text(encoding="utf-8"))
            document["pretty_env_info"] = "host"
            text = json.dumps(document, indent=2).replace(place, "data")
            results.write_text(text + "\n", encoding="utf-8")
    for file in folder.rglob("*_20*"):
        file.rename(folder / re.sub(r"_20\d\d-.*?(?=\.json)", "_2026-01-01T00-00-00.000000", file.name))
    shutil.rmtree(folder / "checkpoint")
    return _version("lm-eval")


def inspect(folder: Path) -> str:
    """A log in each of the two formats, with two scorers and two epochs."""
    import tiktoken

    ranks_of_bytes = {bytes([byte]): byte for byte in range(256)}
    tiktoken.get_encoding = lambda name: tiktoken.Encoding(
        name, pat_str=".", mergeable_ranks=ranks_of_bytes, special_tokens={}
    )
    from inspect_ai import Epochs, Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import includes, match

    samples = MemoryDataset([Sample(id=f"q{n}", input=f"{n}+1?", target=str(n + 1)) for n in range(3)])
    os.chdir(folder)
    for kind in ("eval", "json"):
        task = Task(dataset=samples, scorer=[match(), includes()], epochs=Epochs(2, "mean"), name="adding")
        answers = (ModelOutput.from_content("mockllm/model", str(1 + n % 4)) for n in range(100))
        model = get_model("mockllm/model", custom_outputs=answers)
        limit = 1 if kind == "json" else None  # a sample takes 12 kB there
        eval(task, limit=limit, model=model, log_dir=kind, log_format=kind, display="none")
        for file in (folder / kind).iterdir():
            file.rename(folder / f"2026-01-01T00-00-00-00-00_adding_{kind}.{kind}")
        (folder / kind).rmdir()
    return _version("inspect-ai")


def lerobot(folder: Path, package: Path) -> str:
    """Episodes by the functions of LeRobot's script that fill its file, without the imports of the script.

    Since 0.4 they are of two tasks, before of one environment.
    """
    scripts = package / "lerobot" / "scripts"
    script = next(path for path in (scripts / "lerobot_eval.py", scripts / "eval.py") if path.is_file())
    scope = _functions_of(script)
    seeds = {"n_episodes": 4, "start_seed": 1000}
    if "eval_policy_all" in scope:
        environments = {"toy": {0: _environments(), 1: _environments()}}
        unchanged_steps = [scope["preprocess_observation"], *[_unchanged] * 3]
        info = scope["eval_policy_all"](environments, _policy(), *unchanged_steps, **seeds)
    else:
        info = scope["eval_policy"](_environments(), _policy(), **seeds)
    version = next(package.glob("lerobot-*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]
    (folder / f"eval_info_{version}.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    return f"lerobot {version} (its writer alone)"


def _functions_of(script: Path) -> dict[str, Any]:
    """Return the functions of LeRobot's script, with simple ones in place of what they import from elsewhere."""
    import concurrent.futures
    import functools
    import threading

    import einops
    import gymnasium
    import torch
    import typing_extensions
    from tqdm import trange

    wanted_names = {"rollout", "eval_policy", "TaskMetrics", "eval_one", "run_one", "eval_policy_all", "ACC_KEYS"}

    def name(node: ast.stmt) -> str:
        return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else getattr(node, "name", "")

    def tensors(observation: dict[str, Any]) -> dict[str, Any]:
        return {
            key: torch.as_tensor(value) if isinstance(value, np.ndarray) else value
            for key, value in observation.items()
        }

    nodes = [node for node in ast.parse(script.read_text(encoding="utf-8")).body if name(node) in wanted_names]
    code = "from __future__ import annotations\n" + "\n".join(map(ast.unparse, nodes))
    scope: dict[str, Any] = {
        "gym": gymnasium, "np": np, "torch": torch, "nn": torch.nn, "einops": einops, "trange": trange, "time": time,
        "json": json, "cf": concurrent.futures, "threading": threading, "partial": functools.partial, "Path": Path,
        "defaultdict": defaultdict, "deepcopy": deepcopy, "nullcontext": contextlib.nullcontext,
        "TypedDict": typing_extensions.TypedDict, "PreTrainedPolicy": torch.nn.Module, "inside_slurm": lambda: True,
        "get_device_from_parameters": lambda policy: torch.device("cpu"), "preprocess_observation": tensors,
        "add_envs_task": lambda env, observation: observation, "check_env_attributes_and_types": _unchanged,
        "ACTION": "action", "DONE": "done", "REWARD": "reward", "OBS_STR": "observation",
        "NEW_ROLLOUT_OPTION": "new_rollout",
    }  # fmt: skip
    exec(compile(code, str(script), "exec"), scope)
    return scope


def _unchanged(value: Any) -> Any:
    return value


def _environments() -> Any:
    """Return two environments side by side whose episodes end after three steps, and succeed for even seeds."""
    import gymnasium

    class Toy(gymnasium.Env):  # type: ignore[type-arg]
        observation_space = gymnasium.spaces.Dict({"agent_pos": gymnasium.spaces.Box(-1, 1, (1,), np.float32)})
        action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        task = task_description = "toy"
        _max_episode_steps = 3

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            self.seed, self.steps = seed or 0, 0
            return {"agent_pos": np.zeros(1, np.float32)}, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.steps += 1
            ended = self.steps == 3
            success = ended and self.seed % 2 == 0
            return {"agent_pos": np.zeros(1, np.float32)}, float(success), ended, False, {"is_success": success}

    modes = getattr(gymnasium.vector, "AutoresetMode", None)  # from Gymnasium 1.1 on
    return gymnasium.vector.SyncVectorEnv([Toy, Toy], **({"autoreset_mode": modes.SAME_STEP} if modes else {}))


def _policy() -> Any:
    import torch

    class Policy(torch.nn.Module):
        config = SimpleNamespace(device="cpu", use_amp=False)

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def reset(self) -> None:
            pass

        def select_action(self, observation: Any, **_: Any) -> Any:
            return torch.zeros(2, 1)

    return Policy()


def frames(folder: Path) -> str:
    """One table as Parquet, JSON and JSON lines; scores as rliable takes them."""
    import pandas
    import polars

    rng = np.random.default_rng(0)
    runs = [(group, seed) for group in _RETURNS for seed in range(6)]
    table = pandas.DataFrame(runs, columns=["group", "seed"])
    table["outcome"] = [_RETURNS[group] + seed + rng.normal() for group, seed in runs]
    table.loc[3, "outcome"] = None
    table.to_parquet(folder / "pandas.parquet")
    polars.from_pandas(table).write_parquet(folder / "polars.parquet", compression="zstd")
    for orient in ("records", "columns", "split", "table"):
        table.to_json(folder / f"{orient}.json", orient=orient)
    table.to_json(folder / "lines.jsonl", orient="records", lines=True)
    scores = {group: mean + rng.normal(size=(6, 3)) for group, mean in _RETURNS.items()}
    np.savez(folder / "rliable.npz", **scores)
    np.save(folder / "large.npy", scores["large"])
    (folder / "rliable.json").write_text(json.dumps({name: rows.tolist() for name, rows in scores.items()}))
    return _version("pandas", "polars", "pyarrow", "numpy")


def _version(*packages: str) -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def main() -> None:
    """Make the files of the library that the first argument names, and store its version beside them."""
    name, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs"
        folder.mkdir()
        version = globals()[name](folder, *map(Path, arguments))
        kept_folder = FILES / name
        shutil.copytree(folder, kept_folder, dirs_exist_ok=True)
    with (FILES / "versions.txt").open("a", encoding="utf-8") as versions:
        versions.write(f"{name}: {version}\n")
    print(
        f"{name}: {version}: "
        f"{sorted(str(file.relative_to(kept_folder)) for file in kept_folder.rglob('*') if file.is_file())}"
    )


if __name__ == "__main__":
    main()
