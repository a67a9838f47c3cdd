"""Inspect logs: scores of every kind, and unfinished logs."""

import json
import zipfile

from esper_ab.formats.known import read_file

EVAL = {"model": "m", "task": "t"}


def sample(number, value, epoch=1):
    return {"id": number, "epoch": epoch, "scores": {"match": {"value": value}}}


def test_grades_words_and_numbers_are_read_as_numbers(tmp_path):
    values = ["C", "I", "P", "N", True, 0.25, "0.75", "yes", "rambling", None]
    file = tmp_path / "log.json"
    samples = [sample(number, value) for number, value in enumerate(values)]
    file.write_text(json.dumps({"version": 2, "status": "success", "eval": EVAL, "samples": samples}))
    (table,) = read_file(file)
    assert list(table.columns["match"]) == [1, 0, 0.5, 0, 1, 0.25, 0.75, 1, None, None]
    assert table.notes == ("2 samples of 10 without a score.",)


def test_each_part_of_a_score_is_an_outcome(tmp_path):
    file = tmp_path / "log.json"
    log = {"version": 2, "status": "success", "eval": EVAL, "samples": [sample(0, {"style": 3, "facts": "C"})]}
    file.write_text(json.dumps(log))
    assert read_file(file)[0].outcomes == ("match/style", "match/facts")


def test_an_unfinished_log_has_the_samples_written_so_far(tmp_path):
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": EVAL}))
        archive.writestr("_journal/summaries/1.json", json.dumps([sample(0, "C")]))
        archive.writestr("_journal/summaries/2.json", json.dumps([sample(1, "I")]))
    (table,) = read_file(file)
    assert list(table.columns["match"]) == [1, 0]
    assert table.notes == ("The log's status is 'started', not 'success': samples may be missing.",)
