"""Evaluations of one run, as written by SB3's EvalCallback."""

import numpy as np
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import series_of

ARRAYS = {
    "timesteps": np.array([1000, 2000]),
    "results": np.array([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]]),
    "ep_lengths": np.array([[10, 10, 10], [20, 20, 20]]),
}


def write(folder, **arrays):
    file = folder / "evaluations.npz"
    np.savez(file, **(ARRAYS | arrays))
    return file


def test_an_sb3_evaluation_is_the_mean_of_its_episodes(tmp_path):
    (table,) = read_file(write(tmp_path))
    series = series_of(table, "results")
    assert (series.steps.tolist(), series.values.tolist()) == ([1000, 2000], [2.0, 6.0])
    assert table.notes == ("Each evaluation is the mean of its 3 episodes.",)
    assert (table.format, table.outcomes) == ("an SB3 evaluations.npz", ("results", "ep_lengths"))


def test_episodes_of_an_sb3_evaluation_can_be_read_as_repeats(tmp_path):
    (table,) = read_file(write(tmp_path, successes=np.array([[True, False, True]] * 2)), items=True)
    assert table.roles == {"step": "timesteps", "repeat": "episode"}
    assert list(table.columns["episode"]) == [0, 1, 2, 0, 1, 2]
    assert list(table.columns["successes"]) == [1, 0, 1, 1, 0, 1]


def test_arrays_of_different_shapes_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"expected timesteps \[evaluations\] and results"):
        read_file(write(tmp_path, timesteps=np.array([1, 2, 3])))
    with pytest.raises(UsageError, match=r"its arrays have different shapes$"):
        read_file(write(tmp_path, ep_lengths=np.array([[1, 2]])))


def test_pickled_python_objects_are_not_loaded(tmp_path):
    with pytest.raises(UsageError, match=r"results.npy has Python objects \(a pickle\), which are not loaded"):
        read_file(write(tmp_path, results=np.array([[1.0], None], dtype=object)))
