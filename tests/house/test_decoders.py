"""Decoders are built at import time: two threads that build one at once crash the process (seen with msgspec 0.22).

So every module makes its decoders when it is imported, before an HTTP server or a reader thread can call it.
"""

import ast
from collections.abc import Iterator

from house.sources import breaking

# Modules that learn the type only at the call.
KNOWN_LATER = {
    "esper_ab/api/arguments.py": "the type of one argument or setting, which is no struct",
    "esper_ab/settings/values.py": "the type of one key, which is no struct",
    "workers/kinds/gymnasium/world.py": "a struct of the user's",
    "workers/kinds/trainer/module.py": "likewise",
    "workers/user_code/loading.py": "likewise, one thread at a time",
}
_DECODES = ("msgspec.json.decode", "msgspec.msgpack.decode", "msgspec.convert")
_DECODERS = ("msgspec.json.Decoder", "msgspec.msgpack.Decoder")


def _calls(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the function and the type of all calls that decode or make a decoder; "" for any type."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        place = 1 if name in _DECODES else 0
        types = [*call.args[place : place + 1], *(keyword.value for keyword in call.keywords if keyword.arg == "type")]
        if name in _DECODES or name in _DECODERS:
            yield name, ast.unparse(types[0]) if types else ""


def _late(source: str) -> list[str]:
    """Return the types that are first analysed inside a function."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    calls_in_functions = {call for function in functions for call in _calls(function)}
    ready_kinds = {kind for name, kind in set(_calls(tree)) - calls_in_functions if name in _DECODERS}
    return sorted(
        f"{name}({kind})"
        for name, kind in calls_in_functions
        if kind and (name != "msgspec.convert" or kind not in ready_kinds)
    )


def test_decoders_are_built_at_import_time():
    assert breaking(_late) == KNOWN_LATER.keys()
