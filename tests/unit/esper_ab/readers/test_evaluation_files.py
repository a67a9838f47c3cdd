"""Which files of evaluations are of one checkpoint: a folder with a file per task, and logs that name their model."""

import json

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.read_outcomes import read_outcomes
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.verdict.levels import at_level


def samples(folder, task, metric="acc", documents=3):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"doc_id": place, "doc": {}, "filtered_resps": [], "filter": "none", "metrics": [metric], metric: place % 2}
        for place in range(documents)
    ]
    file = folder / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def log(file, model, task="adding", epochs=2):
    file.parent.mkdir(parents=True, exist_ok=True)
    scored = [
        {"id": f"q{item}", "epoch": epoch, "scores": {"match": {"value": "C"}}}
        for item in range(3)
        for epoch in range(1, epochs + 1)
    ]
    document = {"version": 2, "status": "success", "eval": {"model": model, "task": task}, "samples": scored}
    file.write_text(json.dumps(document))


def read(*paths, **rules):
    found = read_outcomes(paths, ReadingRules(**rules))
    return at_level(found.observations, None), found.name_lines


def test_a_folder_with_a_file_per_task_is_read_as_one_checkpoint(tmp_path):
    for model in ("old", "new"):
        samples(tmp_path / model, "adding")
        samples(tmp_path / model, "choosing")
    found, lines = read(tmp_path)
    assert lines == ("Groups and seeds from names: --runs '{group}'", "new; old")
    assert (found.groups, found.tasks) == (("new", "old"), ("adding", "choosing"))
    assert found.reading == ("Read: 2 checkpoints x 3 items in 2 groups and 2 tasks; level: checkpoints.",)


def test_each_task_may_have_a_different_metric(tmp_path):
    for model in ("old", "new"):
        samples(tmp_path / model, "adding", metric="exact_match")
        samples(tmp_path / model, "choosing", metric="acc")
    found, _ = read(tmp_path)
    assert found.reading[0] == 'The outcome is "exact_match" of adding and "acc" of choosing.'
    assert all(row.value is not None for row in found.rows)


def test_a_single_folder_with_a_file_per_task_is_refused(tmp_path):
    samples(tmp_path / "new", "adding")
    samples(tmp_path / "new", "choosing")
    with pytest.raises(UsageError, match="new; a comparison needs runs of two groups, each with a file or folder of"):
        read(tmp_path)


def test_logs_of_several_models_are_read_as_their_checkpoints(tmp_path):
    for model in ("old", "new"):
        for task in ("adding", "choosing"):
            log(tmp_path / f"2026_{task}_{model}.json", f"openai/{model}", task)
    found, lines = read(tmp_path)
    assert lines == ()
    assert found.reading == ("Read: 2 checkpoints x 3 items x 2 repeats in 2 groups and 2 tasks; level: checkpoints.",)


def test_several_logs_of_one_model_and_task_are_read_as_repeats(tmp_path):
    for name, model in (("1", "old"), ("2", "old"), ("3", "new")):
        log(tmp_path / f"{name}.json", model)
    found, _ = read(tmp_path)
    assert found.reading == (
        "The 2 logs of old on adding count as repeats of one checkpoint.",
        "Read: 2 checkpoints x 3 items (2 to 4 repeats of each) in 2 groups; level: checkpoints.",
    )


def test_logs_of_one_model_are_distinguished_by_their_folders(tmp_path):
    for prompt in ("terse", "wordy"):
        log(tmp_path / prompt / "2026_adding.json", "old")
    found, lines = read(tmp_path)
    assert lines[1] == "terse; wordy"
    assert found.reading[0] == "All logs are of the model old, so the names of the files tell the groups."
