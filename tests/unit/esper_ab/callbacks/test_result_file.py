import json
from pathlib import Path

from esper_ab.callbacks.result_file import write_result
from esper_ab.contracts.trainer import read_source
from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.read import find_outcome


def test_a_written_result_is_found_by_the_name_of_the_outcome(tmp_path: Path) -> None:
    write_result(tmp_path, {"mean_reward": 1.0, "curve": [1.0]})
    write_result(tmp_path, {"mean_reward": 2.5, "curve": [1.0, 2.5]})
    (tmp_path / "log").touch()
    assert find_outcome(read_source("mean_reward"), Left(tmp_path, tmp_path / "log", 0)).value == 2.5
    assert json.loads((tmp_path / "result.json").read_text())["curve"] == [1.0, 2.5]
