"""Every reader of another experiment refuses other circumstances, by the same function."""

from collections.abc import Callable, Sequence

import msgspec
import pytest
from support.journals.replications import experiment as replication
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.calibration import calibration_of
from esper_ab.contracts.code_state import StateOfCode
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.trainer import StateFacts, TrainerFacts
from esper_ab.design.calibration_file import check_belongs
from esper_ab.journal.fold import History, fold
from esper_ab.plan.pooling import declared
from esper_ab.plan.user_code import sources_of_plan
from esper_ab.readers.agreement import incomparable
from esper_ab.readers.compared import observe_together
from esper_ab.readers.same_question import different_questions, same_question
from esper_ab.settings.circumstances import circumstances_in_words, source_of_trainer, treatment_of

COMMAND = "python train.py --seed {seed} --lr {lr} --steps 2"
ONE_MODE = {"a": Shape(stream="a"), "b": Shape(stream="b")}
SHA256 = "a" * 64


def history(rng_seed: int = 11, sha256: str = SHA256, **changes: object) -> History:
    """Return an experiment of a command whose files have this sha256; `changes`: of its settings."""
    first_event, *later_events = replication(rng_seed, groups=ONE_MODE).events()
    plan = first_event.plan
    asked = msgspec.structs.replace(plan.experiment, **{"trainer": COMMAND, "outcome": "return", **changes})
    facts = TrainerFacts(root="", files=("train.py",), sha256=sha256)
    return fold(
        [
            msgspec.structs.replace(first_event, plan=msgspec.structs.replace(plan, experiment=asked, trainer=facts)),
            *later_events,
        ]
    )


def by_compare_with_one_seed(first: History, other: History) -> Sequence[str]:
    return incomparable([("first", first), ("other", other)])


def by_compare_with_other_seeds(first: History, other: History) -> Sequence[str]:
    return tuple(different_questions([("first", first), ("other", other)]))


def by_a_calibration(first: History, other: History) -> Sequence[str]:
    calibration = calibration_of(first, 10, deterministic=True, margin_named=True)
    try:
        return check_belongs(calibration, other.plan.experiment, sources_of_plan(other.plan) | first.started.code)
    except UsageError as error:
        return str(error).removesuffix("; calibrate again").split("; ")


def by_a_replication(first: History, other: History) -> Sequence[str]:
    again = msgspec.structs.replace(
        other.plan,
        experiment=msgspec.structs.replace(other.plan.experiment, rng_seed=other.plan.experiment.rng_seed + 1),
    )
    return () if declared(again, first.plan).earlier else ("not pooled",)


READERS = (by_compare_with_one_seed, by_compare_with_other_seeds, by_a_calibration, by_a_replication)
Reader = Callable[[History, History], Sequence[str]]


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_an_experiment_of_equal_circumstances(reader: Reader) -> None:
    assert not reader(history(), history())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "changes",
    [
        {"trainer": COMMAND.replace("2", "20")},
        {"task": "trainer:other"},
        {"outcome": "length"},
        {"outcome_summary": "max"},
        {"slots": ("early",)},
        {"n_envs": 5},
        {"episodes": 9},
        {"steps": 26},
    ],
)
def test_a_reader_refuses_an_experiment_of_other_circumstances(reader: Reader, changes: dict[str, object]) -> None:
    (line,) = reader(history(), history(**changes))
    assert line


@pytest.mark.parametrize("reader", [by_compare_with_one_seed, by_a_calibration, by_a_replication])
def test_a_reader_says_if_the_source_of_the_trainer_differs(reader: Reader) -> None:
    (line,) = reader(history(), history(sha256="b" * 64))
    assert "source of the trainer" in line or reader is by_a_replication


def test_compare_says_how_two_states_of_the_code_are_compared() -> None:
    with pytest.raises(UsageError, match="--code base=COMMIT --code head=") as caught:
        observe_together([("first", history()), ("other", history(sha256="b" * 64))])
    assert "source of the trainer: aaaaaaaaaaaa in first; bbbbbbbbbbbb in other" in str(caught.value)


def test_experiments_on_other_seeds_whose_trainer_differs_are_not_pooled() -> None:
    question = same_question([("first", history(1)), ("other", history(2, sha256="b" * 64))])
    assert not question.one_plan
    assert "source of the trainer: aaaaaaaaaaaa in first; bbbbbbbbbbbb in other" in question.differs


def test_a_trainer_in_another_folder_is_the_same() -> None:
    moved = [history(trainer=f"/{folder}/train.py:train") for folder in ("old", "new")]
    for reader in READERS[:3]:
        assert not reader(*moved)


def test_what_an_experiment_does_not_have_has_words() -> None:
    words = circumstances_in_words(Synthetic().plan().experiment)
    assert (words["task"], words["trainer"], words["summary of the outcome"]) == ("digits", "none", "the last value")
    assert words["arithmetic.threads"] == "1"


def test_the_source_of_a_trainer_names_files_that_changed_later() -> None:
    facts = TrainerFacts(root="", files=("train.py",), sha256=SHA256)
    assert source_of_trainer(None) == ""
    assert source_of_trainer(facts, "b" * 64) == "aaaaaaaaaaaa, then bbbbbbbbbbbb"
    state = StateOfCode(group="a", asked="main", commit="c", sealed="c", top="/")
    states = {"a": StateFacts(state=state, root="", files=(), sha256=SHA256, repeats=True, found="")}
    assert source_of_trainer(msgspec.structs.replace(facts, states=states)) == "a state of the code per group"


def test_groups_of_equal_settings_in_other_states_of_the_code_are_treated_differently() -> None:
    experiment = msgspec.structs.replace(
        Synthetic(groups=ONE_MODE).plan().experiment, task="trainer:x", trainer=COMMAND, code=("a=c1", "b=c2")
    )
    first, second = (treatment_of(experiment, group) for group in experiment.groups)
    assert (first.state, second.state) == ("c1", "c2")
    assert first.settings == second.settings
