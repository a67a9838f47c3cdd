"""`evaluations.npz`, which Stable-Baselines3's EvalCallback writes: some episodes of one run at several timesteps.

`results` and `ep_lengths` [evaluations, episodes] are returns and lengths; `successes`, if the environment tells them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._archive import names_in
from esper_ab.formats.known._npy import read_npz
from esper_ab.formats.source_table import SourceTable

_NAME = "an SB3 evaluations.npz"
_STEPS = "timesteps"
_EPISODE = "episode"
_MEASURES = ("results", "successes", "ep_lengths")


def _recognises(file: Path, head: bytes) -> bool:
    return {"timesteps.npy", "results.npy"} <= {*names_in(file, head)}


def _read(file: Path) -> list[SourceTable]:
    """Return a row per evaluation, with the mean of its episodes."""
    steps, measures = _arrays(file)
    episodes = measures["results"].shape[1]
    means = {name: values.mean(axis=1) for name, values in measures.items()}
    note = f"Each evaluation is the mean of its {episodes} episodes."
    return [_table(file, {_STEPS: steps} | means, {"step": _STEPS}, (note,))]


def _read_items(file: Path) -> list[SourceTable]:
    """Return a row per episode. Episodes are numbered, but not the same from run to run."""
    steps, measures = _arrays(file)
    evaluations, episodes = measures["results"].shape
    columns = {_STEPS: np.repeat(steps, episodes), _EPISODE: np.tile(np.arange(episodes), evaluations)}
    return [
        _table(
            file,
            columns | {name: values.reshape(-1) for name, values in measures.items()},
            {"step": _STEPS, "repeat": _EPISODE},
            (),
        )
    ]


def _table(file: Path, columns: dict[str, np.ndarray], roles: dict[str, str], notes: tuple[str, ...]) -> SourceTable:
    return SourceTable(
        file=file,
        format=_NAME,
        columns=columns,
        row_numbers=range(1, len(columns[_STEPS]) + 1),
        roles=roles,
        outcomes=tuple(name for name in _MEASURES if name in columns),
        better="higher",
        notes=notes,
    )


def _arrays(file: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return timesteps [evaluations], and the measures [evaluations, episodes] by name."""
    arrays = read_npz(file)
    if not {"timesteps", "results"} <= arrays.keys():
        raise UsageError(f"{file}, {_NAME}: timesteps or results are missing")
    steps = arrays["timesteps"]
    measures = {name: arrays[name] for name in _MEASURES if name in arrays}
    shape = measures["results"].shape
    if steps.ndim != 1 or len(shape) != 2 or not shape[1] or len(steps) != shape[0]:
        raise UsageError(
            f"{file}, {_NAME}: expected timesteps [evaluations] and results [evaluations, episodes], not "
            f"{list(steps.shape)} and {list(shape)}"
        )
    if any(values.shape != shape for values in measures.values()):
        raise UsageError(f"{file}, {_NAME}: its arrays have different shapes")
    if any(values.dtype.kind not in "fiub" for values in (steps, *measures.values())):
        raise UsageError(f"{file}, {_NAME}: its arrays do not have numbers")
    return steps, {name: values.astype(np.float64) for name, values in measures.items()}


FORMAT = Format(_NAME, _recognises, _read, _read_items, order=0)
