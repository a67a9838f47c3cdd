"""scripts/mutants: drawing mutants, locating them after edits, and running each in a child with a timeout."""

import os

import msgspec
import pytest
from mutation import drawn
from mutation.child import CrashedError, TimedOutError, in_child
from mutation.drawn import Mutant

SOURCE = '''
"""At most 1."""
import os

LEAST: int = 6

class Box:
    size: int = 3

    def fits(self, count: int, spare: bool = False) -> bool:
        """Whether 2 fit."""
        if not count:
            raise ValueError(f"none of {count + 1}")
        self.size -= 1
        return count < self.size and spare
'''


@pytest.fixture
def root(tmp_path):
    """A repository with one module."""
    (tmp_path / "esper_ab").mkdir()
    (tmp_path / "workers").mkdir()
    (tmp_path / "esper_ab" / "box.py").write_text(SOURCE)
    return tmp_path


def test_draw_returns_exactly_the_mutants_of_executable_code(root):
    mutants = drawn.draw(root, "esper_ab", 200, rng_seed=1)
    numbers = {(mutant.function, mutant.before) for mutant in mutants if mutant.before.rpartition("= ")[2].isdigit()}
    assert numbers == {("", "LEAST: int = 6"), ("Box", "size: int = 3"), ("Box.fits", "self.size -= 1")}
    assert {(mutant.before, mutant.after) for mutant in mutants if not mutant.before.rpartition("= ")[2].isdigit()} == {
        ("False", "True"),
        ("not count", "count"),
        ("raise ValueError(...)", "pass"),
        ("return count < self.size and spare", "return None"),
        ("count < self.size and spare", "count < self.size or spare"),
        ("count < self.size", "count <= self.size"),
    }


BUG = Mutant("esper_ab/box.py", "Box.fits", "count < self.size", "count <= self.size")


def fits(place, count):
    names = {}
    exec(compile(place.tree, "box", "exec"), names)
    return names["Box"]().fits(count, spare=True)


def test_a_located_mutant_runs_the_mutated_code(root):
    place = drawn.locate(root, BUG)
    assert SOURCE.splitlines()[place.line - 1].strip() == "return count < self.size and spare"
    assert fits(place, 2)
    assert place.is_late


def test_a_mutant_is_located_after_its_code_moved(root):
    (root / "esper_ab" / "box.py").rename(root / "workers" / "chest.py")
    (root / "workers" / "chest.py").write_text("# moved\n" + SOURCE.replace("and spare", "and bool(spare)"))
    assert drawn.locate(root, BUG).path == root / "workers" / "chest.py"


def test_a_mutant_is_not_located_after_its_code_changed(root):
    (root / "esper_ab" / "box.py").write_text(SOURCE.replace("count <", "spare <"))
    assert drawn.locate(root, BUG) is None


def test_a_mutant_whose_code_is_gone_is_replaced_by_a_new_one_of_its_function(root):
    module = root / "esper_ab" / "box.py"
    module.write_text(SOURCE.replace("count < self.size", "count < len(self)"))
    kept_mutant = Mutant("esper_ab/box.py", "Box.fits", "not count", "count", result="killed")
    mutants = drawn.refilled(root, "esper_ab", [kept_mutant, BUG], rng_seed=1)
    assert mutants[0] is kept_mutant
    assert mutants[1].function == "Box.fits"
    assert mutants[1].before != "not count"
    assert drawn.locate(root, mutants[1])


def test_a_list_becomes_shorter_if_no_new_mutant_is_left(root):
    all_mutants = drawn.draw(root, "esper_ab", 200, rng_seed=1)
    gone_mutant = Mutant("esper_ab/box.py", "Box.empty", "self.size", "not self.size")
    assert drawn.refilled(root, "esper_ab", [*all_mutants, gone_mutant], rng_seed=1) == all_mutants


def test_a_mutated_default_takes_effect_only_at_import(root):
    default = next(mutant for mutant in drawn.draw(root, "esper_ab", 200, 1) if mutant.after == "True")
    assert not drawn.locate(root, default).is_late


@pytest.mark.parametrize("path", sorted(drawn.LISTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_stored_lists_of_mutants_contain_no_duplicate(path):
    mutants = drawn.read(path)
    assert len({msgspec.structs.astuple(mutant)[:5] for mutant in mutants}) == len(mutants) > 50


@pytest.mark.parametrize("path", sorted(drawn.LISTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_stored_lists_of_mutants_name_existing_files(path):
    """A mutant whose code is gone counts as gone, but its file and its test would no longer be looked at."""
    mutants = drawn.read(path)
    file_names = {mutant.module for mutant in mutants} | {
        mutant.by.partition("::")[0] for mutant in mutants if mutant.by
    }
    assert [name for name in sorted(file_names - {"import"}) if not (drawn.ROOT / name).is_file()] == []


def test_generated_tables_are_not_mutated(root, monkeypatch):
    assert all((drawn.ROOT / name).is_file() for name in drawn.TABLES)
    monkeypatch.setattr(drawn, "TABLES", ("esper_ab/box.py",))
    assert drawn.draw(root, "esper_ab", 200, 1) == []


def test_crashes_and_timeouts_of_a_child_process_are_reported():
    def run_on():
        while True:
            pass

    assert in_child(lambda: os.getpid(), 5) != os.getpid()
    with pytest.raises(CrashedError, match="ZeroDivisionError"):
        in_child(lambda: 1 / 0, 5)
    with pytest.raises(CrashedError):
        in_child(lambda: os._exit(1), 5)
    with pytest.raises(TimedOutError):
        in_child(run_on, 0)
