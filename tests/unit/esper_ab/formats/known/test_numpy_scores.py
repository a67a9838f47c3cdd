"""NumPy arrays of scores."""

import numpy as np

from esper_ab.formats.known import read_file


def test_the_third_dimension_of_an_array_is_the_step(tmp_path):
    scores = np.arange(12.0).reshape(2, 3, 2)
    np.savez(tmp_path / "f.npz", a=scores, b=np.asfortranarray(scores))
    (table,) = read_file(tmp_path / "f.npz")
    assert table.roles == {"group": "group", "run": "run", "task": "task", "step": "step"}
    assert list(table.columns["score"]) == [*range(12)] * 2
    assert list(table.columns["step"][:4]) == [0, 1, 0, 1]
    assert list(table.columns["run"][:12]) == [0] * 6 + [1] * 6


def test_a_one_dimensional_array_has_a_run_per_value(tmp_path):
    np.savez(tmp_path / "f.npz", a=np.array([1, 2]), b=np.array([True, False]))
    (table,) = read_file(tmp_path / "f.npz")
    assert (list(table.columns["group"]), list(table.columns["score"])) == (["a", "a", "b", "b"], [1, 2, 1, 0])


def test_arrays_with_known_names_are_read_as_columns(tmp_path):
    rows = np.array([("a", 1.5), ("b", 2.5)], dtype=[("group", "U5"), ("outcome", "f8")])
    np.save(tmp_path / "f.npy", rows)
    np.savez(tmp_path / "f.npz", group=rows["group"], outcome=rows["outcome"])
    for name in ("f.npy", "f.npz"):
        (table,) = read_file(tmp_path / name)
        assert {name: list(cells) for name, cells in table.columns.items()} == {
            "group": ["a", "b"],
            "outcome": [1.5, 2.5],
        }
