"""A trainer's setting that has the name of one of esper_ab's: `trainer.NAME` sets it, or the error says so."""

import json

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.trainer import FILLED
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request
from esper_ab.settings.schema import EXPERIMENT_FIELDS, FIELDS, SHORT
from esper_ab.settings.settings_file import read_toml
from esper_ab.stream.proposal import proposal_of_flags, read_proposal

NAMES = sorted({*SHORT, *(key for key in FIELDS if "." not in key)} - {*FILLED})
OTHERS = [name for name in NAMES if name in SHORT or not FIELDS[name].of_trainers]  # e.g. steps
TRAINERS = ("mine.py", "mine.py:train", "python mine.py --seed {seed} --lr {lr} --X {X} --out {out}")
QUESTION = {"higher": "return", "margin": 1.0}
VALUES = {"episodes": "3", "eval_episodes": "3", "outcome_over": "last-third"}


def asked(trainer, name, **flags):
    return parse_parts(read_request({"trainer": trainer.replace("X", name), **QUESTION, **flags}))


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(
    "flags",
    [
        {"set": ["X=3"], "vary": "lr=1,2"},
        {"grid": ("X=3,5",), "vary": "lr=1,2"},
        {"group": ["a:X=3", "b:X=5"], "set": ["trainer.lr=1"]},
    ],
    ids=["set", "grid", "group"],
)
def test_a_refused_name_says_how_the_trainers_setting_is_written(trainer, flags):
    for name in OTHERS:
        texts = json.dumps(flags).replace("X", name)
        with pytest.raises(UsageError, match=rf"if it is a setting of your trainer, write trainer\.{name}\b"):
            asked(trainer, name, **json.loads(texts))
        parts = asked(trainer, name, **json.loads(texts.replace(f"{name}=", f"trainer.{name}=")))
        assert {group.settings.trainer[name] for part in parts for group in part.asked.groups} <= {"3", "5"}


@pytest.mark.parametrize("name", NAMES)
def test_in_vary_and_in_candidates_a_bare_name_is_the_trainers(name):
    (part,) = asked(TRAINERS[-1], name, vary=f"{name}=3,5", set=["trainer.lr=1"])
    assert [group.settings.trainer[name] for group in part.asked.groups] == ["3", "5"]
    if name in OTHERS:
        candidates = [
            read_proposal(json.dumps({"settings": {name: 3}})),
            proposal_of_flags("", [f"{name}=3"], "", is_repeated=False),
        ]
        assert [candidate.settings for candidate in candidates] == [{f"trainer.{name}": 3}] * 2
    else:  # a setting of the experiment, too, in which both groups agree
        with pytest.raises(UsageError, match=rf"if it is a setting of your trainer, write trainer\.{name}$"):
            read_proposal(json.dumps({"settings": {name: 3}}))


@pytest.mark.parametrize("name", sorted(EXPERIMENT_FIELDS))
def test_a_group_with_a_setting_of_the_experiment_says_how_the_trainers_is_written(name):
    with pytest.raises(UsageError, match=rf"write trainer\.{name}$"):
        asked(TRAINERS[-1], name, group=[f"a:{name}=3", "b:trainer.lr=2"])


@pytest.mark.parametrize("name", ["lr", *OTHERS])
def test_a_file_says_how_the_trainers_setting_is_written(tmp_path, name):
    path = tmp_path / "a.toml"
    path.write_text(f"train = {TRAINERS[-1]!r}\n{name} = 3\n".replace("X", name))
    with pytest.raises(UsageError, match=rf"write trainer\.{name}\b"):
        parse_parts(read_request({"vary": "lr=1,2", **QUESTION}, read_toml(path)))


@pytest.mark.parametrize(("name", "value"), VALUES.items())
def test_a_number_that_a_command_cannot_have_may_be_the_trainers_own(name, value):
    with pytest.raises(UsageError, match=rf"; if it is a setting of your trainer, write trainer\.{name}$"):
        asked(TRAINERS[-1], name, vary="lr=1,2", set=[f"{name}={value}"])


@pytest.mark.parametrize("name", ["seeds", "margin"])
def test_a_grid_over_what_all_cells_share_says_how_the_trainers_setting_is_written(name):
    with pytest.raises(UsageError, match=rf"must be the same in every cell; .* write trainer\.{name}$"):
        asked(TRAINERS[-1], name, vary="lr=1,2", grid=(f"{name}=3,5",))
