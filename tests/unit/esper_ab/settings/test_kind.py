"""Kinds of task: no file of the room but their own asks for a name of theirs."""

import ast
from pathlib import Path

import esper_ab.settings


def test_the_room_of_settings_knows_kinds_of_task_by_their_objects_alone():
    room = Path(esper_ab.settings.__file__).parent
    files = [path for path in room.rglob("*.py") if path.parent.name != "kinds"]
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "esper_ab.contracts.settings":
                assert not {one.name for one in node.names} & {"GROWTH", "GYMNASIUM", "TRAINER", "kind_of_task"}, path
