"""The comment of a gate that equal records do not pass says why: its headline does not."""

from support.journals.synthetic import Shape, Synthetic

from esper_ab.gate.comment import MOST_LINES, comment
from esper_ab.journal.fold import fold
from esper_ab.report.content import content

COMPLAINT = (
    '"head not-worse-than base with guardrails" does not hold: …, but the guardrail wall time (10 %) is not shown'
)
DOCUMENT = {
    "passed": False,
    "complaint": COMPLAINT,
    "headline": "head and base did the same.",
    "warnings": ("one warning", "another warning"),
    "states": {"base": {"words": "main"}, "head": {"words": "change"}},
    "pairs": 20,
    "most_pairs": 20,
    "runs": 40,
    "reused": {},
    "seconds": 66.0,
    "minutes": 5.0,
    "claim": "head not-worse-than base with guardrails",
    "report": "report.html",
}


def test_a_guardrail_that_fails_identical_states_is_named():
    groups = {"head": Shape(stream="one"), "base": Shape(stream="one")}
    settings = {"guardrails": ("lower wall_s margin 10%",), "claim": "not-worse"}
    journal = Synthetic(groups=groups, replicates=20, episodes=2, settings=settings)
    (comparison,) = content(fold(journal.events())).comparisons
    text = comment(DOCUMENT, comparison)
    assert text.startswith("### IDENTICAL: the gate is not passed\n")
    assert "but the guardrail wall time (10 %) is not shown" in text
    assert "1.1 of 5 min" in text
    assert len(text.splitlines()) <= MOST_LINES
    assert "guardrail wall time" not in comment({**DOCUMENT, "passed": True, "complaint": ""}, comparison)
