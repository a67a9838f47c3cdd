"""Samples of older versions and of metrics that are lower for better models."""

import json

from esper_ab.formats.known import read_file


def write(folder, *records):
    file = folder / "samples_my_task.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


DOCUMENT = {"doc_id": 0, "doc": {"a": 1}, "target": "1", "filtered_resps": ["1"]}


def test_before_the_names_of_metrics_were_written_numbers_are_metrics(tmp_path):
    (table,) = read_file(
        write(tmp_path, DOCUMENT | {"acc": 1.0, "words": [1, 2]}, DOCUMENT | {"doc_id": 1, "acc": False})
    )
    assert (table.outcomes, list(table.columns["acc"])) == (("acc",), [1.0, False])
    assert table.columns["task"] == ["my_task", "my_task"]


def test_less_perplexity_is_better(tmp_path):
    (table,) = read_file(write(tmp_path, DOCUMENT | {"metrics": ["perplexity"], "perplexity": 7.5}))
    assert table.better == "lower"
