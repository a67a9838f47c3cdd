"""Long and unusual text of every flag is refused by the parser or fits into messages."""

import msgspec
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.settings import Settings
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request
from esper_ab.settings.schema import FIELDS

FLAGS_OF_KINDS = {
    "growth": {"groups": "shaped,wait"},
    "gymnasium": {"task": "gym:CartPole-v1", "groups": "env,random", "margin": 1.0},
    "command": {"trainer": "python t.py {lr} {seed} {out}", "vary": "lr=1,2", "higher": "score", "margin": 1.0},
    "trainer": {"trainer": "t.py", "vary": "lr=1,2", "higher": "score", "margin": 1.0},
}
TEXTS = ("x" * 21, "x" * 61, "x" * 5000, "a\nb", "a\x1b[2J", "a\x7f", "$x$", "\u202ex", "a b", "ü", "-", "")
FLAGS = ["higher", "lower", *(field.flag for field in FIELDS.values() if field.type in (str, tuple[str, ...]))]


def check_round_trip(message: Settings) -> None:
    """Encode a message and decode it, which checks every bound."""
    assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


@pytest.mark.parametrize("kind", FLAGS_OF_KINDS)
@pytest.mark.parametrize("flag", FLAGS)
def test_accepted_text_of_a_flag_survives_every_message(kind: str, flag: str) -> None:
    for text in TEXTS:
        for flag_text in (text, f"info:{text}", f"{text}=1"):
            flags: dict[str, object] = FLAGS_OF_KINDS[kind] | {flag: flag_text}
            if flag == "lower":
                flags.pop("higher", None)
            if flag in ("controller.schedule", "growth.blueprints"):
                flags[flag] = f"[{flag_text}]"
            try:
                request = parse(
                    read_request(
                        {key: value for key, value in flags.items() if "." not in key}
                        | {
                            "set": [f"{key}={value}" for key, value in flags.items() if "." in key],
                        }
                    )
                )
            except UsageError:
                continue
            assert isinstance(request, AskedExperiment)
            check_round_trip(request)
            questions = settings_of(request.task).ask(request)
            assert isinstance(questions, Questions)
            check_round_trip(questions)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"outcome_unit": "points of the evaluation score"}, "--outcome-unit: expected at most 20 characters"),
        ({"outcome_unit": "a\x1b[2J"}, r"--outcome-unit: expected .* without control characters and .*, not 'a\\x1b"),
        ({"higher": "a\nb"}, r"--higher or --lower: expected a name without control characters and .*, not 'a\\nb'"),
    ],
)
def test_the_refusal_of_a_flag_names_its_bound(flags: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(read_request(FLAGS_OF_KINDS["command"] | flags))
