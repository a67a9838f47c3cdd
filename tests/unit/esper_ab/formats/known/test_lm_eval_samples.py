"""Samples of older versions of lm-evaluation-harness, and metrics that are better when lower."""

import json

from esper_ab.formats.known import read_file


def write(folder, *records):
    file = folder / "samples_my_task.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


DOCUMENT = {"doc_id": 0, "doc": {"a": 1}, "target": "1", "filtered_resps": ["1"]}


def test_numbers_are_metrics_in_old_files_without_metric_names(tmp_path):
    (table,) = read_file(
        write(tmp_path, DOCUMENT | {"acc": 1.0, "words": [1, 2]}, DOCUMENT | {"doc_id": 1, "acc": False})
    )
    assert (table.outcomes, list(table.columns["acc"])) == (("acc",), [1.0, False])
    assert table.columns["task"] == ["my_task", "my_task"]


def test_a_lower_perplexity_is_better(tmp_path):
    (table,) = read_file(write(tmp_path, DOCUMENT | {"metrics": ["perplexity"], "perplexity": 7.5}))
    assert table.better == "lower"
