from pathlib import Path

import pytest

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import TrainerValue
from workers.kinds.trainer import words
from workers.kinds.trainer.words import CommandLine, device_word


def test_the_folder_of_a_repeated_run_has_no_earlier_results(tmp_path: Path) -> None:
    folder = words.fresh_folder(tmp_path, "runs/a-0/out")
    (folder / "result.json").write_text('{"return": 1}')
    assert list(words.fresh_folder(tmp_path, "runs/a-0/out").iterdir()) == []


def test_a_value_of_a_placeholder_is_not_expanded_by_a_shell() -> None:
    line = CommandLine("run --lr {lr} '{out}/a b'", Path("/"), Path("/o"))
    assert line.words({"lr": "1 $(touch x) ; 'y", "out": "/o"}) == ["run", "--lr", "1 $(touch x) ; 'y", "/o/a b"]


def test_seeds_of_different_rng_paths_differ() -> None:
    seeds = {words.seed_at(RngPath(0) / "train" / step) for step in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)


def filled(command: str, directory: Path, out: str = "/o", **settings: TrainerValue) -> list[str]:
    line = CommandLine(command, directory, Path(out))
    return line.words({**settings, **line.own_values(3, "last", "cpu")})


def test_a_command_without_out_runs_in_a_separate_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "app").mkdir()
    command = "python train.py --config=train.py --lr {lr} -m app new.txt"
    script = str(tmp_path / "train.py")
    assert filled(command, tmp_path, lr=1) == [
        *("python", script, f"--config={script}", "--lr", "1", "-m", "app", "new.txt")
    ]
    line = CommandLine(command, tmp_path, Path("/o"))
    assert (line.folder, line.search_path) == ("/o", str(tmp_path))


def test_only_paths_in_a_command_are_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "small.yaml").touch()
    command = "python train.py {kind} --kind={kind} --config conf/{size}.yaml"
    assert filled(command, tmp_path, kind="conf", size="small") == [
        *("python", "train.py", "conf", "--kind=conf", "--config", str(tmp_path / "conf" / "small.yaml"))
    ]


@pytest.mark.parametrize("word", ["{out}", "{out_file}"])
def test_a_command_with_out_runs_in_the_current_folder(tmp_path: Path, word: str) -> None:
    (tmp_path / "train.py").touch()
    line = CommandLine(f"python train.py --out {word}", tmp_path, Path("/o"))
    assert filled(line.command, tmp_path)[:3] == ["python", "train.py", "--out"]
    assert (line.folder, line.search_path) == (str(tmp_path), "")


def test_every_placeholder_of_a_command_is_filled_in() -> None:
    words = filled("run {seed} {out} {out_file} {name} {device}", Path("/"))
    assert words == ["run", "3", "/o", "/o/result.json", "last", "cpu"]


@pytest.mark.parametrize(
    ("visible", "device"), [("", "cpu"), ("GPU-a", "cuda:0"), ("MIG-a", "cuda:0"), ("GPU-a,GPU-b", "cuda")]
)
def test_the_device_placeholder_numbers_visible_devices_from_0(visible: str, device: str) -> None:
    assert device_word({"CUDA_VISIBLE_DEVICES": visible}) == device


@pytest.mark.parametrize(
    ("command", "first", "again"),
    [
        ("run --resume {resume} -v", ["run", "-v"], ["run", "--resume", "OUT", "-v"]),
        ("run -r {resume}/last.pt", ["run"], ["run", "-r", "OUT/last.pt"]),
        ("run --resume={resume}/last.pt -v", ["run", "-v"], ["run", "--resume=OUT/last.pt", "-v"]),
        ("run a.b=1 resume={resume} -v", ["run", "a.b=1", "-v"], ["run", "a.b=1", "resume=OUT", "-v"]),
        ("run -v resume={resume}", ["run", "-v"], ["run", "-v", "resume=OUT"]),
        ("run train {resume}", ["run", "train"], ["run", "train", "OUT"]),
        ("run --resume {resume}/other.pt", ["run"], ["run"]),
        ("run --resume {resume}/{name}.pt", ["run"], ["run", "--resume", "OUT/last.pt"]),
    ],
)
def test_the_resume_flag_is_left_out_if_there_is_no_state(
    tmp_path: Path, command: str, first: list[str], again: list[str]
) -> None:
    out = str(tmp_path / "out")
    (tmp_path / "out").mkdir()
    assert filled(command, Path("/"), out) == first
    line = CommandLine(command, Path("/"), tmp_path / "out")
    values = line.own_values(3, "last", "cpu")
    assert not line.can_resume(values)
    (tmp_path / "out" / "last.pt").touch()
    assert filled(command, Path("/"), out) == [word.replace("OUT", out) for word in again]
    assert line.can_resume(values) == (first != again)
