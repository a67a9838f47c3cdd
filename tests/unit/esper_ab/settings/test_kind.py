"""Kinds of task: objects with the same methods, and no other file of the room asks for a name of theirs."""

from __future__ import annotations

import ast
from pathlib import Path

import esper_ab.settings
from esper_ab.contracts import catalog
from esper_ab.contracts.settings import ALL_KINDS
from esper_ab.settings.kind import SettingsKind

KINDS = "esper_ab.settings.kinds"


def test_the_room_of_settings_knows_kinds_of_task_by_their_objects_alone():
    room = Path(esper_ab.settings.__file__).parent
    files = [path for path in room.rglob("*.py") if path.parent.name != "kinds"]
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "esper_ab.contracts.settings":
                assert not {one.name for one in node.names} & {"GROWTH", "GYMNASIUM", "TRAINER", "kind_of_task"}, path


def test_kinds_have_the_same_methods():
    kinds = [catalog.entry(KINDS, name, "KIND") for name in catalog.names(KINDS)]
    assert [kind.name for kind in kinds] == list(ALL_KINDS)
    methods = {name for name, value in vars(SettingsKind).items() if callable(value) and not name.startswith("_")}
    assert methods == {"read", "ask", "resolve", "remarks"}
    for kind in kinds:
        own = {name for name, value in vars(type(kind)).items() if callable(value) and not name.startswith("_")}
        assert own <= methods
