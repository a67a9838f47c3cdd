"""Rehearsals of commands in two states of the code; the field tests do the same with functions and Python trainers."""

import msgspec
import pytest
from support.repositories.users_repository import users_repository

from esper_ab.code_trees.sealing import seal
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion
from workers.kinds.trainer.rehearsal import rehearse
from workers.kinds.trainer.states_rehearsal import rehearse_states

OUTCOME = Measure(name="outcome", label="score", better="higher")


@pytest.fixture
def repository(tmp_path):
    made = users_repository(tmp_path / "project")
    made.commit({"train.sh": "echo score=$(($1 % 100)).1\n", "uv.lock": "1"}, tag="v1")
    made.commit({"train.sh": "echo score=$(($1 % 100)).2\n", "uv.lock": "2"}, tag="v2")
    return made


def question(repository, command="sh train.sh {seed}", states=("v1", "v2"), settings=None):
    sealed = seal(dict(zip(("base", "head"), states, strict=True)), repository.top, None, [])
    asked = TrainerQuestion(
        reference=command,
        directory=str(repository.top),
        outcome="stdout:score",
        groups={group: settings or {} for group in ("base", "head")},
        rehearsal={},
        points=1,
        evaluations=1,
        margin=1.0,
        rng_seed=0,
        threads=1,
        deterministic=True,
        gpus=(),
        states=sealed.states,
        states_in=str(sealed.store.folder.parent),
    )
    return sealed, asked


def said(step):
    assert step


def test_every_state_is_rehearsed_with_its_own_files(repository):
    _sealed, asked = question(repository)
    facts = rehearse(asked, OUTCOME, said)
    assert facts.problem == ""
    assert [own.found.split()[0][-3:-1] for own in facts.states.values()] == [".1", ".2"]
    assert [own.files for own in facts.states.values()] == [("train.sh",)] * 2
    assert facts.states["base"].sha256 != facts.states["head"].sha256
    assert facts.repeats
    assert facts.settings == {"base": {}, "head": {}}


def test_a_state_that_fails_is_named(repository):
    repository.commit({"train.sh": "exit 3\n"}, tag="broken")
    _sealed, asked = question(repository, states=("v1", "broken"))
    problem = rehearse(asked, OUTCOME, said).problem
    assert problem.startswith("group 'head', broken (")
    assert "exit status 3" in problem


def test_a_file_that_only_one_state_has_is_refused(repository):
    repository.commit({"new.sh": "echo score=$1\n"}, tag="v3")
    _sealed, asked = question(repository, command="sh new.sh {seed}", states=("v1", "v3"))
    problem = rehearse(asked, OUTCOME, said).problem
    assert problem.startswith("group 'base', v1 (")
    assert "it has no file new.sh, which the command names" in problem


def test_an_absolute_path_in_the_repository_is_refused(repository):
    _sealed, asked = question(repository, command=f"sh {repository.top}/train.sh {{seed}}")
    assert "which would be the same file for every state" in rehearse(asked, OUTCOME, said).problem


def facts_of(**facts):
    return TrainerFacts(root="/", settings={"base": {}, "head": {}}, **facts)


def merged(repository, base, head):
    """Return what is known of both states if their rehearsals find `base` and `head`."""
    sealed, asked = question(repository)
    answers = iter([(sealed.states[0], base), (sealed.states[1], head)])

    def answer(own_question):
        state, facts = next(answers)
        assert own_question.groups.keys() == {state.group}
        return msgspec.structs.replace(facts, root=own_question.directory)

    return rehearse_states(asked, answer, said)


def test_what_is_known_holds_in_every_state(repository):
    base = facts_of(repeats=True, resumption="exactly", points=5, metrics={"loss": "loss", "old": "old"}, point_s=1.0)
    head = facts_of(repeats=False, resumption="resumes", points=4, metrics={"loss": "loss"}, point_s=2.0)
    both = merged(repository, base, head)
    assert (both.repeats, both.resumption, both.points, both.point_s) == (False, "resumes", 4, 2.0)
    assert both.metrics == {"loss": "loss"}
    assert [own.repeats for own in both.states.values()] == [True, False]


def test_states_whose_evaluations_cannot_be_compared_are_refused(repository):
    with pytest.raises(ValueError, match="returns 1 outcomes in base but 3 in head"):
        merged(repository, facts_of(), facts_of(evaluations=3))
