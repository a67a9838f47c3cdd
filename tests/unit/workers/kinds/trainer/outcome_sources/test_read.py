import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.outcome_summary import read_summary
from esper_ab.contracts.trainer import read_source
from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.read import find_outcome, read_outcome
from workers.kinds.trainer.outcome_sources.wandb_log import WANDB_FILE

NUMBERS = st.floats(allow_nan=False)


def outcome_of(tmp_path: Path, source: str, text: str) -> float:
    outcome_source = read_source(source)
    (tmp_path / (outcome_source.path or WANDB_FILE)).write_text(text)
    return read_outcome(outcome_source, Left(tmp_path))


@given(values=st.lists(NUMBERS, min_size=1))
def test_the_last_row_of_a_column_is_the_outcome(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    text = "step,return\n" + "".join(f"{step},{value!r}\n" for step, value in enumerate(values))
    assert outcome_of(tmp_path_factory.mktemp("out"), "log.csv:return", text) == values[-1]


@given(value=NUMBERS)
def test_a_nested_key_of_a_json_file_is_the_outcome(tmp_path_factory: pytest.TempPathFactory, value: float) -> None:
    folder = tmp_path_factory.mktemp("out")
    for key, written in (("x", {"x": value}), ("eval.x", {"eval": {"x": value}}), ("eval.x", {"eval.x": value})):
        assert outcome_of(folder, f"a.json:{key}", json.dumps(written)) == value


@pytest.mark.parametrize(
    ("source", "text", "outcome"),
    [
        ("a.csv:x", 'x,note\n1.5,"two\nlines"\n2.5,first\u2028half\n', 2.5),  # only ends of lines end a row
        ("a.json:x", '\ufeff{"x": 3.5}', 3.5),
        ("a.csv:x", "\ufeffx,y\n3.5,1\n", 3.5),  # a byte order mark is no text
        ("a.json:x", f'{{"x": {-(10**400)}}}', -math.inf),
        # Stable-Baselines3: monitor.csv, and progress.csv, whose last row has no evaluation.
        ("a.csv:r", '#{"t_start": 1.5, "env_id": "Pendulum-v1"}\nr,l,t\n-825.1,200,0.1\n-640.5,200,0.2\n', -640.5),
        ("a.csv:eval/mean", "time,eval/mean,rollout\n1,,5\n2,7.5,\n3,8.5,\n4,,6\n", 8.5),
        ("a.csv:#step", "#step,x\n1,2\n", 1.0),
        ("a.json:solved", '{"solved": true}', 1.0),
        ("a.json:solved", '{"solved": false}', 0.0),
        ("a.csv:solved", "solved\nTrue\nfalse\n", 0.0),
    ],
)
def test_an_outcome_is_read_from_unusual_file_contents(tmp_path: Path, source: str, text: str, outcome: float) -> None:
    assert outcome_of(tmp_path, source, text) == outcome


@pytest.mark.parametrize(
    ("source", "text", "complaint"),
    [
        ("a.json:x", '{"y": 1, "z": {"x": 2}}', "a.json: no key 'x'; available keys: y, z.x"),
        ("a.json:x.z", '{"x": 1}', "no key 'x.z'"),
        ("a.json:x", '{"x": {"y": 1}}', "x is dict, not a number"),
        ("a.json:x", '{"x": ', "a.json: not JSON"),
        ("a.csv:x", "y,z\n1,2\n", "no column 'x'; available columns: y, z"),
        ("a.csv:x", "x\n", "no rows"),
        ("a.csv:y", "x,y\n1\n", "row 2 has 1 cells, the header 2"),
        ("a.csv:y", "x,y\n1,\n2, \n", "y is empty in every row"),
        ("a.csv:y", "x,y\n1\n2,\n", "row 2 has 1 cells, the header 2"),
        ("a.csv:y", "x,y\n1,2\n2,none\n", "y is 'none' in row 3, not a number"),
        ("a.csv:y", '#{"t": 1}\nx\n1\n', "no column 'y'; available columns: x"),
        ("a.csv:y", '#{"t": 1}\n', "no column 'y'; available columns: #{"),
        ("a.csv:x", "x,y,x\n1,2,3\n", "the column name 'x' occurs twice"),
        ("a.csv:x", 'x,y\n1,"2', "a.csv: not CSV: unexpected end of data"),
        ("a.csv:x", "x\n1_0\n", "x is '1_0' in row 2, not a number"),
        ("a.csv:x", "x\n\u0663.5\n", "x is '\u0663.5' in row 2, not a number"),
        ("a.json:x", '{"x": "0.5"}', "x is the text '0.5', not a number; write it without quotes"),
        ("a.json:x", '{"x": 1, "x": 2}', "a.json: not JSON: the key 'x' occurs twice"),
        ("a.csv:x", "", "no column 'x'; available columns: nothing"),
        ("a.csv:x", f"x\n{'y' * 200_000}\n", "a.csv: not CSV: field larger"),
        ("a.json:x", f'{{"x": 1{"0" * 5000}}}', "a.json: not JSON"),
        ("a.json:x", "[" * 100_000, "a.json: not JSON"),
    ],
)
def test_the_refusal_of_an_unreadable_outcome_lists_the_available_names(
    tmp_path: Path, source: str, text: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint.replace(".", r"\.").replace("[", r"\[")):
        outcome_of(tmp_path, source, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", '{"return": 2.5}'),
        ("log.csv", "step,return\n1,9\n2,2.5\n"),
        ("deep/down/eval.json", '{"return": 2.5}'),
    ],
)
def test_a_bare_name_is_read_from_the_only_candidate_file(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    for other_name in ("model.pt", "json", "notes.txt", WANDB_FILE):
        (tmp_path / other_name).write_text("return")
    assert read_outcome(read_source("return"), Left(tmp_path)) == 2.5


def test_a_bare_name_found_in_several_files_is_refused(tmp_path: Path) -> None:
    for name, value in (("b.json", 1), ("a/x.json", 2)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"return": value}))
    (tmp_path / "0.csv").write_text("return\n3\n")
    with pytest.raises(ValueError, match=r"0.csv, a/x.json, b.json in \{out\} all have return; .*as in a/x.json:"):
        read_outcome(read_source("return"), Left(tmp_path))
    outcomes = [read_outcome(read_source(f"{name}:return"), Left(tmp_path)) for name in ("b.json", "a/x.json", "0.csv")]
    assert outcomes == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("other_name", "text"),
    [
        ("config.json", '{"lr": 0.1}'),
        ("log.csv", "step,loss\n1,2\n"),
        ("config.json", "{ // no JSON"),
        ("log.csv", 'step,loss\n1,"2'),
    ],
)
def test_a_bare_name_is_read_from_the_only_file_that_contains_it(tmp_path: Path, other_name: str, text: str) -> None:
    (tmp_path / other_name).write_text(text)
    (tmp_path / "result.csv").write_text('#{"of": "a monitor"}\nreturn\n2.5\n')
    assert read_outcome(read_source("return"), Left(tmp_path)) == 2.5


@pytest.mark.parametrize("broken", ['{"return": 1, "return": 2}', '{"return": "1"}'])
def test_a_name_is_ambiguous_even_if_one_file_has_an_unusable_value(tmp_path: Path, broken: str) -> None:
    (tmp_path / "a.json").write_text(broken)
    (tmp_path / "b.json").write_text('{"return": 2.5}')
    with pytest.raises(ValueError, match=r"a.json, b.json in \{out\} all have return"):
        read_outcome(read_source("return"), Left(tmp_path))


def test_the_refusal_of_an_unknown_name_lists_all_files(tmp_path: Path) -> None:
    for name in ("a.json", "b.csv"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=r"left a.json, b.csv in \{out\}, of which none has return; say which has it"):
        read_outcome(read_source("return"), Left(tmp_path))


@pytest.mark.parametrize(
    ("source", "file_names", "complaint"),
    [
        ("return", (), r"left no \.json or \.csv file in \{out\}; it left nothing"),
        ("return", ("model.pt",), r"it left model\.pt"),
        ("a.json:x", ("sub/model.pt",), r"left no a\.json in \{out\}; it left sub/model\.pt"),
        ("wandb:x", (), "logged no number 'x' with wandb"),
    ],
)
def test_the_refusal_of_a_missing_outcome_lists_the_files_of_the_run(
    tmp_path: Path, source: str, file_names: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "sub").mkdir()
    for name in file_names:
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=complaint):
        read_outcome(read_source(source), Left(tmp_path))


def write_events(folder: Path, tag: str, values: Sequence[float], first_step: int = 0) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), filename_suffix=f".{first_step}") as writer:
        for step, value in enumerate(values, first_step):
            writer.add_scalar(tag, value, step)


def left(tmp_path: Path, output: str = "") -> Left:
    log = tmp_path / "run.log"
    log.write_text(f"$ python train.py score=9\n{output}")
    (tmp_path / "out").mkdir()
    return Left(tmp_path / "out", log)


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("global_step=0, score=1.5\nglobal_step=9, score=2.5\n", 2.5),
        ("score: -1e-3\n", -0.001),
        ("step 3 score 4\ndone\n", 4.0),
        ('{"score": 0.5}\n', 0.5),
        ("| score     | 12.25    |\n", 12.25),  # as Stable-Baselines3 prints
        ("score=3\nbest_score=7\nscore_max=8\n", 3.0),  # other names
    ],
)
def test_a_name_missing_in_all_files_is_read_from_the_standard_output(
    tmp_path: Path, output: str, outcome: float
) -> None:
    found = find_outcome(read_source("score"), left(tmp_path, output))
    assert (found.value, found.source) == (outcome, "stdout:score")


def test_the_logged_command_line_is_not_read_as_output(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no number follows 'score' in the output of the script; it wrote nothing"):
        read_outcome(read_source("stdout:score"), left(tmp_path))


def test_the_refusal_of_a_misspelt_name_shows_the_last_line_of_the_output(tmp_path: Path) -> None:
    complaint = r"it left nothing; no number follows 'retrun' in the output of the script; its last line is 'return=2'"
    with pytest.raises(ValueError, match=complaint):
        read_outcome(read_source("retrun"), left(tmp_path, "return=1\nreturn=2\n"))


def test_an_outcome_is_read_from_the_group_of_a_pattern(tmp_path: Path) -> None:
    run = left(tmp_path, "epoch 1: 3 of 4 right\nepoch 2: 4 of 4 right\n")
    assert read_outcome(read_source(r"stdout:(\d+) of"), run) == 4.0


def test_a_file_has_precedence_over_the_standard_output(tmp_path: Path) -> None:
    run = left(tmp_path, "score=1\n")
    (run.out / "log.jsonl").write_text('{"step": 1, "score": 2}\n{"step": 2, "score": 3.5}\n')
    found = find_outcome(read_source("score"), run)
    assert (found.value, found.source) == (3.5, "log.jsonl:score")


def test_the_last_evaluation_of_sb3_is_the_mean_of_its_episodes(tmp_path: Path) -> None:
    run = left(tmp_path)
    results = np.array([[1.0, 2.0], [3.0, 6.0]])
    np.savez(run.out / "evaluations.npz", timesteps=np.array([10, 20]), results=results, ep_lengths=results)
    found = find_outcome(read_source("results"), run)
    assert (found.value, found.where, found.source) == (
        4.5,
        "evaluations.npz, results, step 20",
        "evaluations.npz:results",
    )


def test_a_tag_of_an_event_file_is_found_by_its_name(tmp_path: Path) -> None:
    run = left(tmp_path)
    write_events(run.out / "runs" / "a__1695316079", "charts/score", [0.5, 1.5, 2.5])
    found = find_outcome(read_source("charts/score"), run)
    assert (found.value, found.source) == (2.5, "tb:charts/score")
    assert found.where.endswith(", charts/score, step 2")
    assert read_outcome(read_source("tb:charts/score"), run) == 2.5
    with pytest.raises(ValueError, match=r"no 'score'; available names: step, charts/score"):
        read_outcome(read_source("tb:score"), run)


def test_a_tag_in_two_folders_is_refused_without_the_folder(tmp_path: Path) -> None:
    run = left(tmp_path)
    write_events(run.out / "runs" / "train", "score", [1.0])
    write_events(run.out / "runs" / "eval", "score", [2.0])
    for source in ("score", "tb:score"):
        with pytest.raises(ValueError, match=r"in runs/eval, runs/train all have score; .* as in tb:eval:score"):
            read_outcome(read_source(source), run)
    assert [read_outcome(read_source(f"tb:{name}:score"), run) for name in ("eval", "runs/train")] == [2.0, 1.0]
    assert find_outcome(read_source("tb:eval:score"), run).source == "tb:eval:score"


def test_folders_of_the_same_name_are_distinguished_by_longer_paths(tmp_path: Path) -> None:
    run = left(tmp_path)
    write_events(run.out / "a" / "eval", "score", [1.0])
    write_events(run.out / "b" / "eval", "score", [2.0])
    with pytest.raises(ValueError, match=r"as in tb:a/eval:score"):
        read_outcome(read_source("tb:eval:score"), run)


def test_a_tag_of_an_event_file_may_contain_a_colon(tmp_path: Path) -> None:
    run = left(tmp_path)
    write_events(run.out, "eval:score", [1.0])
    assert read_outcome(read_source("tb:eval:score"), run) == 1.0


def test_event_files_of_a_restarted_writer_form_one_curve(tmp_path: Path) -> None:
    run = left(tmp_path)
    write_events(run.out, "score", [1.0, 2.0])
    write_events(run.out, "score", [4.0], first_step=2)
    outcomes = [read_outcome(read_source("score"), run, read_summary(text)) for text in ("", "mean-last-2", "min")]
    assert outcomes == [4.0, 3.0, 1.0]


CURVES = {
    "log.csv": "score\n1\n\n4\n1\n3\n",
    "log.jsonl": '{"score": 1}\n{"score": 4}\n{"loss": 0}\n{"score": 1}\n{"score": 3}\n',
    "log.json": '{"score": [1, 4, 1, 3]}',
    WANDB_FILE: "1.0\n4.0\n1.0\n3.0\n",
}


@pytest.mark.parametrize(
    ("file", "source", "where"),
    [
        ("log.csv", "log.csv:score", "log.csv, score, row 3"),
        ("log.jsonl", "log.jsonl:score", "log.jsonl, score, row 2"),
        ("log.json", "log.json:score", "log.json, score [1]"),
        (WANDB_FILE, "wandb:score", "wandb.log, score"),
        ("", "stdout:score", "line 2 of its output: score=4"),
    ],
)
def test_a_curve_from_every_source_can_be_summarised(tmp_path: Path, file: str, source: str, where: str) -> None:
    run = left(tmp_path, "score=1\nscore=4\nscore=1\nscore=3\n")
    if file:
        (run.out / file).write_text(CURVES[file])
    texts = ("last", "mean-last-2", "max", "min")
    outcomes = [read_outcome(read_source(source), run, read_summary(text)) for text in texts]
    assert outcomes == [3.0, 2.0, 4.0, 1.0]
    largest = find_outcome(read_source(source), run, read_summary("max"))
    assert (largest.where, largest.summary) == (where, "the largest of 4 values")


def test_a_summary_of_a_single_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1.5}')
    with pytest.raises(
        ValueError, match=r"a\.json, x is one number, so there is nothing to summarise; omit --outcome-s"
    ):
        read_outcome(read_source("a.json:x"), Left(tmp_path), read_summary("max"))
    assert read_outcome(read_source("a.json:x"), Left(tmp_path), read_summary("last")) == 1.5


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "[1, 2]",
            r"a\.json, x is a list of 2; say how it becomes the outcome \(last, .* as in --outcome-summary last",
        ),
        ("[]", r"a\.json: x is an empty list"),
        ('[1, "two"]', r"a\.json: x \[1\] is the text 'two', not a number"),
    ],
)
def test_a_list_in_a_json_file_is_refused_without_a_summary(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"x": {text}}}')
    summary = read_summary("" if text == "[1, 2]" else "max")
    with pytest.raises(ValueError, match=complaint):
        read_outcome(read_source("a.json:x"), Left(tmp_path), summary)


def test_a_summary_reads_only_the_required_rows_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("score,note\nnone,a\n1\n2,b\n")
    assert read_outcome(read_source("log.csv:score"), Left(tmp_path)) == 2.0
    with pytest.raises(ValueError, match="row 3 has 1 cells, the header 2"):
        read_outcome(read_source("log.csv:score"), Left(tmp_path), read_summary("mean-last-2"))


def test_outcomes_are_read_from_run_files_of_wandb(tmp_path: Path) -> None:
    kept = Path(__file__).parents[5] / "field/files/wandb/run-large-seed3.wandb"
    folder = tmp_path / "wandb/offline-run-1"
    folder.mkdir(parents=True)
    shutil.copy(kept, folder)
    by_name, by_prefix = (
        find_outcome(read_source(f"{prefix}eval/return"), Left(tmp_path)) for prefix in ("", "wandb:")
    )
    assert by_name == by_prefix
    assert (by_name.source, by_name.total > 1) == ("wandb-offline:eval/return", True)
    shutil.copy(kept, tmp_path / "wandb/second.wandb")
    with pytest.raises(ValueError, match=r"several runs of W&B have eval/return: wandb/offline-run-1/.*, wandb/second"):
        read_outcome(read_source("wandb-offline:eval/return"), Left(tmp_path))
    with pytest.raises(ValueError, match=r"left no file of W&B's offline mode in \{out\}; it left nothing"):
        read_outcome(read_source("wandb-offline:x"), Left(folder / "none"))


@pytest.mark.parametrize("summary", ["", "mean-last-2", "max", "min"])
@pytest.mark.parametrize("file", ["log.jsonl", "log.csv", "events"])
def test_a_curve_that_ends_in_a_nan_has_no_finite_outcome(tmp_path: Path, file: str, summary: str) -> None:
    run = left(tmp_path)
    (run.out / "log.jsonl").write_text('{"score": 1}\n{"score": 2}\n{"score": NaN}\n')
    (run.out / "log.csv").write_text("score\n1\n2\nnan\n")
    if file == "events":
        write_events(run.out, "score", [1.0, 2.0, math.nan])
    source = "tb:score" if file == "events" else f"{file}:score"
    assert math.isnan(read_outcome(read_source(source), run, read_summary(summary)))
