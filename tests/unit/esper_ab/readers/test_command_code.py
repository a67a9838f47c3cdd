"""What is said about the code of commands: the same, different, or not known."""

import msgspec
import pytest
from support.journals.replications import experiment as replication

from esper_ab.journal.events import ExperimentContinued, RunReady
from esper_ab.journal.fold import fold
from esper_ab.readers.command_code import command_code
from esper_ab.readers.compared import observe_together
from esper_ab.readers.same_question import same_question
from esper_ab.report.confirmation import confirmations, with_other_code
from esper_ab.report.replications import replications_json, replications_report
from esper_ab.report.text import render_text
from esper_ab.report.together import together

FIRST = {"commit": "1111111aaaa"}
CHANGED = {"commit": "1111111aaaa", "changed": "2", "changes": "5552fd7aaaa"}
COMMAND = "python train.py --seed {seed}"


def history(rng_seed=11, repository=FIRST, later=None, **changes):
    """An experiment of a command in this state of its repository; `later`: the state when it was resumed."""
    started, *events = replication(rng_seed).events()
    asked = msgspec.structs.replace(started.plan.experiment, **{"trainer": COMMAND, **changes})
    plan = msgspec.structs.replace(started.plan, experiment=asked)
    if later is not None:
        place = max(n for n, event in enumerate(events) if isinstance(event, RunReady))
        resumed = {"versions": started.versions, "machine": started.machine, "code": started.code, "repository": later}
        events.insert(place, ExperimentContinued(**resumed))
    return fold([msgspec.structs.replace(started, plan=plan, repository=repository), *events])


def said(*histories):
    return command_code({f"e{number}": (item,) for number, item in enumerate(histories)})


def test_equal_states_are_named_once():
    code = said(history(), history())
    assert (code.sentence, code.same) == ("The command's code was commit 1111111.", True)
    assert said(history(repository=CHANGED), history(repository=CHANGED)).sentence == (
        "The command's code was commit 1111111 with 2 changed files (5552fd7)."
    )


def test_different_states_are_named_with_their_experiments():
    code = said(history(), history(repository=CHANGED))
    assert not code.same
    assert code.sentence == (
        "The command's code differs: commit 1111111 in e0; commit 1111111 with 2 changed files (5552fd7) in e1. "
        "Whatever changed may be part of the difference."
    )


def test_an_experiment_that_was_resumed_with_changed_code_has_two_states():
    code = said(history(), history(later=CHANGED))
    assert "commit 1111111, then commit 1111111 with 2 changed files (5552fd7) in e1" in code.sentence
    assert not code.same


def test_code_that_is_not_known_may_differ():
    code = said(history(), history(repository={}))
    assert not code.same
    assert code.sentence == (
        "The code that the command imported is not known in e1; commit 1111111 in e0. It may differ: only the files "
        "that the command names are compared."
    )


@pytest.mark.parametrize(
    "changes", [{"trainer": ""}, {"trainer": "train.py:train"}, {"code": ("shaped=c", "simplified=d")}]
)
def test_nothing_is_said_about_code_that_is_recorded_elsewhere(changes):
    code = said(history(repository={}, **changes), history(repository={}, **changes))
    assert (code.sentence, code.same) == ("", True)


def test_the_pooled_answer_says_which_code_each_experiment_had():
    same = together(same_question([("one", history(1)), ("two", history(2))]))
    assert "larger experiment. The command's code was commit 1111111." in text_of(same)
    assert with_other_code(same) == confirmations(same)
    other = together(same_question([("one", history(1)), ("two", history(2, CHANGED))]))
    sentence = other.question.command_code.sentence
    assert f"! {sentence}" in text_of(other)
    assert with_other_code(other) == (*confirmations(other), sentence)
    assert sentence in replications_json(other)


def text_of(answer):
    return " ".join(render_text(replications_report(answer), in_full=True).split())


def test_the_comparison_on_one_rng_seed_names_other_code_before_the_answer():
    assert observe_together([("one", history()), ("two", history())])[0].reading == ()
    (sentence,) = observe_together([("one", history()), ("two", history(repository=CHANGED))])[0].reading
    assert sentence.startswith("The command's code differs: commit 1111111 in one; ")
