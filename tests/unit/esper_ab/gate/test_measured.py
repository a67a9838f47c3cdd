"""Later gates are planned with what earlier ones measured."""

import json
import os

from esper_ab.gate.measured import measured_before

ANSWER = {
    "schema": 1,
    "subject": "s",
    "verdict": "NOT WORSE",
    "directory": "gate-1",
    "pairs": 20,
    "run_seconds": 3.5,
    "sd_of_base": 2.0,
    "another key": 1,
}


def write(folder, name, text, age_s=0):
    (folder / name).mkdir()
    path = folder / name / "gate.json"
    path.write_text(text)
    os.utime(path, (1e9 - age_s, 1e9 - age_s))


def test_the_newest_answers_to_the_same_question_come_first(tmp_path):
    write(tmp_path, "gate-1", json.dumps(ANSWER), age_s=5)
    write(tmp_path, "gate-2", json.dumps(ANSWER | {"run_seconds": 4.0}))
    write(tmp_path, "gate-3", json.dumps(ANSWER | {"subject": "other"}))
    write(tmp_path, "gate-4", json.dumps(ANSWER | {"schema": 2}))
    write(tmp_path, "gate-5", '{"schema": 1')
    write(tmp_path, "other", json.dumps(ANSWER))
    assert [answer.run_seconds for answer in measured_before(tmp_path, "s")] == [4.0, 3.5]


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert measured_before(tmp_path / "nothing", "s") == ()
