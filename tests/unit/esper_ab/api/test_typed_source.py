import pytest
from support.outcomes.cells import executed

from esper_ab.api.typed_source import source_of

METHODS = "class Noise:\n    def draw(self): return 1\n"
FIELDS = "import dataclasses\n@dataclasses.dataclass\nclass Size:\n    width: int = 1\n"


def test_the_source_of_a_nested_function_is_not_indented() -> None:
    def inner(seed):
        return seed

    assert source_of(inner) == "def inner(seed):\n    return seed\n"


def test_the_source_of_a_class_is_read_from_the_cell_of_its_methods() -> None:
    first = executed(METHODS)
    executed("class Noise:\n    def draw(self): return 2\n")
    assert source_of(first["Noise"]) == METHODS


def test_a_class_without_methods_is_found_with_its_decorators() -> None:
    assert source_of(executed(FIELDS)["Size"]) == FIELDS.partition("\n")[2]


def test_a_class_created_at_run_time_has_no_source() -> None:
    with pytest.raises(OSError, match="no source of Made"):
        source_of(type("Made", (), {}))
