"""structure.md lists every room once with the first line of the room's docstring."""

import ast
import re

from house.sources import ROOT

STRUCTURE = ROOT / "docs" / "internals" / "structure.md"
_ROOM = re.compile(r"( *)(\w+)/ +(.+)")
_INDENT = 2  # per level of folders; details of a room are indented further than any room


def listed(text: str) -> dict[str, str]:
    """Return room -> its line, from the block that begins with `esper_ab/`."""
    block = text[text.index("```\nesper_ab/") :].split("```")[1]
    lines = {}
    path: list[str] = []
    for line in block.splitlines():
        room = _ROOM.fullmatch(line)
        if room and len(room[1]) <= _INDENT * len(path):
            path = [*path[: len(room[1]) // _INDENT], room[2]]
            name = "/".join(path)
            assert name not in lines, f"{name} is listed twice"
            lines[name] = room[3]
    return lines


def documented() -> dict[str, str]:
    """Return room -> the first line of its docstring."""
    lines = {}
    for package in ("esper_ab", "workers"):
        for init in (ROOT / package).rglob("__init__.py"):
            docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
            lines[str(init.parent.relative_to(ROOT))] = docstring.partition("\n")[0]
    return lines


def test_rooms_are_read_from_an_indented_list():
    lines = [
        "esper_ab/   Plans.",
        "            launch/ is no room",
        "  a/   Does A.",
        "    b/ Does B.",
        "  c/   Does C.",
    ]
    text = "\n".join(["```", *lines, "```"])
    assert listed(text) == {
        "esper_ab": "Plans.",
        "esper_ab/a": "Does A.",
        "esper_ab/a/b": "Does B.",
        "esper_ab/c": "Does C.",
    }


def test_every_room_has_the_docstring_listed_in_structure_md():
    assert documented() == listed(STRUCTURE.read_text(encoding="utf-8"))
