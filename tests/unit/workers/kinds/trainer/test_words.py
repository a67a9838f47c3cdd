from pathlib import Path

from esper_ab.contracts.rng import RngPath
from workers.kinds.trainer import words


def test_the_folder_of_a_repeated_run_has_no_earlier_results(tmp_path: Path) -> None:
    folder = words.fresh_folder(tmp_path, "runs/a-0/out")
    (folder / "result.json").write_text('{"return": 1}')
    assert list(words.fresh_folder(tmp_path, "runs/a-0/out").iterdir()) == []


def test_a_value_of_a_placeholder_is_not_expanded_by_a_shell() -> None:
    command = words.words_of("run --lr {lr} '{out}/a b'", {"lr": "1 $(touch x) ; 'y"}, 3, Path("/o"), Path("/"))
    assert command == ["run", "--lr", "1 $(touch x) ; 'y", "/o/a b"]


def test_seeds_of_different_rng_paths_differ() -> None:
    seeds = {words.seed_at(RngPath(0) / "train" / step) for step in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_command_without_out_runs_in_a_separate_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "app").mkdir()
    command = "python train.py --config=train.py --lr {lr} -m app new.txt"
    filled = words.words_of(command, {"lr": 1}, 3, Path("/o"), tmp_path)
    script = str(tmp_path / "train.py")
    assert filled == ["python", script, f"--config={script}", "--lr", "1", "-m", "app", "new.txt"]
    assert words.folder_of(command, str(tmp_path), Path("/o")) == "/o"
    assert words.search_path(command, str(tmp_path)) == str(tmp_path)


def test_a_command_with_out_runs_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    command = "python train.py --out {out}"
    assert words.words_of(command, {}, 3, Path("/o"), tmp_path) == ["python", "train.py", "--out", "/o"]
    assert words.folder_of(command, str(tmp_path), Path("/o")) == str(tmp_path)
    assert words.search_path(command, str(tmp_path)) == ""
