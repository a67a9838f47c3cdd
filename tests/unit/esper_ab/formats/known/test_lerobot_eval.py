"""LeRobot evaluations of several tasks."""

import json

from esper_ab.formats.known import read_file


def test_lerobot_tasks_keep_their_names(tmp_path):
    file = tmp_path / "eval_info.json"
    metrics = {"sum_rewards": [1.0, 0.0], "max_rewards": [1.0, float("nan")], "successes": [True, False]}
    tasks = [{"task_group": "libero", "task_id": number, "metrics": metrics} for number in (7, 3)]
    file.write_text(json.dumps({"per_task": tasks}))
    (table,) = read_file(file)
    assert table.columns["task"] == ["libero/7", "libero/7", "libero/3", "libero/3"]
    assert table.columns["success"] == [True, False, True, False]
    assert table.better == "higher"
