"""What the groups of a comparison differ in: settings, the state of the code, or both."""

from dataclasses import dataclass

import msgspec
import pytest
from support.journals.synthetic import Shape, Synthetic

from esper_ab.journal.events import EpisodeRecorded, RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.next_steps import next_steps
from esper_ab.settings.differences import WHICH_FUNCTION
from esper_ab.verdict.verdict import Verdict

CODE = {"code": ("base=main", "head=dev")}


@pytest.mark.parametrize(
    ("settings", "modes", "reason", "step"),
    [
        ({}, ("shaped", "shaped"), "the same computation.", "Nothing to compare: the settings make the same"),
        ({}, ("shaped", "sparse"), "their settings differ, but", "The settings that differ have had no effect: train"),
        (CODE, ("shaped", "shaped"), "their code differs, but", "The change of code has had no effect: train longer"),
        (CODE, ("shaped", "sparse"), "their code and settings differ, but", "The code and settings that differ have"),
    ],
)
def test_equal_records_are_explained_by_what_differs(settings, modes, reason, step):
    shapes = [Shape(mode=mode, stream="same") for mode in modes]
    journal = Synthetic(groups=dict(zip(("base", "head"), shapes, strict=True)), episodes=2, settings=settings)
    report_content = content(fold(journal.events()))
    (comparison,) = report_content.comparisons
    assert comparison.verdict is Verdict.IDENTICAL
    assert comparison.question.same_computation is (not settings and modes[0] == modes[1])
    assert f"All records of base and head agree: {reason}" in comparison.sentence
    assert next_steps(report_content)[0].sentence.startswith(step)


@dataclass(frozen=True, kw_only=True)
class Calling(Shape):
    """A group of a comparison of two functions."""

    function: str

    @property
    def settings(self):
        return msgspec.structs.replace(super().settings, trainer={WHICH_FUNCTION: self.function})


def test_another_function_is_a_change_of_code():
    groups = {name: Calling(function=name, stream="same") for name in ("fast", "slow")}
    (comparison,) = content(fold(Synthetic(groups=groups, episodes=2).events())).comparisons
    assert comparison.headline.endswith("all records agree, so the change of code had no effect on these runs.")


@pytest.mark.parametrize(
    ("settings", "digest_of", "verdict"),
    [
        (CODE, lambda seed: seed % 2, Verdict.INCONCLUSIVE),
        (CODE, lambda seed: max(seed, 3), Verdict.INCONCLUSIVE),
        (CODE, lambda seed: max(seed, 2), Verdict.IDENTICAL),
        ({}, lambda _: 1, Verdict.IDENTICAL),
    ],
)
def test_equal_records_of_two_codes_show_little_if_they_are_those_of_several_seeds(settings, digest_of, verdict):
    """Two codes may both reach the best score, or fail and succeed on the same few seeds by chance."""
    groups = {name: Shape(stream="same") for name in ("base", "head")}
    events = []
    for event in Synthetic(groups=groups, episodes=2, settings=settings).events():
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            digest = f"{digest_of(event.record.run.replicate):064}"
            event = msgspec.structs.replace(event, record=msgspec.structs.replace(event.record, digest=digest))
        events.append(event)
    (comparison,) = content(fold(events)).comparisons
    assert (comparison.verdict, comparison.same_records) == (verdict, True)
    if verdict is Verdict.INCONCLUSIVE:
        (caveat,) = [text for text in comparison.caveats if "coarse or saturated" in text]
        assert caveat == "base and head have equal outcomes in every pair: look for a coarse or saturated outcome."
