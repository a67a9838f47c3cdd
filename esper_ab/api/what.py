"""What WHAT names: a trainer, a function or a command, or a Python file that declares an experiment."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.trainer import is_function


def trainer_in(target: str) -> str | None:
    """Return the trainer that `target` names; None if it is a Python file that declares an experiment.

    Raises UsageError if it is neither.
    """
    path = Path(target)
    if path.suffix == ".py" and (path.exists() or not {" ", "{"} & {*target}):
        from esper_ab.api.files import called_with_seed, defines_trainer  # needed for Python files only

        if not defines_trainer(path):
            return None
        return f"{target}:train" if called_with_seed(path) else target
    if "{" in target or is_function(target):
        return target
    if " " in target:
        raise UsageError(
            f"{target}: no such file; if this is a command, put {{seed}} where the script expects its seed, "
            "as in --seed {seed}"
        )
    raise UsageError(
        f"{target}: expected an experiment (.toml, .py), a Python file with train(run), a function as in "
        "train.py:train, or a command in quotes with placeholders, as in 'python train.py --lr {lr} --seed {seed} "
        "--out {out}'"
    )
