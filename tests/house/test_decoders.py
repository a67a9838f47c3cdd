"""msgspec analyses a type when it is first used, and two threads that do so at once end the process (seen with 0.22).

So what is decoded is analysed when its module is imported, whoever may call it later: an HTTP server, a node's reader.
"""

import ast
from collections.abc import Iterator

from house.sources import breaking

# Where the type is not known before.
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
        types = [*call.args[place : place + 1], *(one.value for one in call.keywords if one.arg == "type")]
        if name in _DECODES or name in _DECODERS:
            yield name, ast.unparse(types[0]) if types else ""


def _late(source: str) -> list[str]:
    """Types that are analysed in a function although the module does not do so when it is imported."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    within = {call for function in functions for call in _calls(function)}
    ready = {kind for name, kind in set(_calls(tree)) - within if name in _DECODERS}
    return sorted(
        f"{name}({kind})" for name, kind in within if kind and (name != "msgspec.convert" or kind not in ready)
    )


def test_types_are_analysed_when_their_module_is_imported():
    assert breaking(_late) == KNOWN_LATER.keys()
