"""Results of lm-evaluation-harness: tasks, groups of tasks, and the direction of metrics."""

import json

from esper_ab.formats.known import read_file


def test_a_group_of_lm_eval_tasks_is_not_read_as_a_task(tmp_path):
    file = tmp_path / "results.json"
    results = {name: {"alias": name, "ppl,none": value, "ppl_stderr,none": 0.1} for name, value in (("a", 2), ("g", 3))}
    lower_is_better = {name: {"ppl": False} for name in results}
    file.write_text(
        json.dumps({"results": results, "group_subtasks": {"g": ["a"]}, "higher_is_better": lower_is_better})
    )
    (table,) = read_file(file)
    assert (list(table.columns["task"]), list(table.columns["ppl,none"])) == (["a"], [2])
    assert (table.outcomes, table.better) == (("ppl,none",), "lower")
