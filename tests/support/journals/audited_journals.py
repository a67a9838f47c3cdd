"""Journals with planted problems, and the findings of the audit."""

import msgspec

from esper_ab.analysis.analyse import analyse
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated
from esper_ab.journal.fold import fold
from support.journals.ready_journals import planted_effect

replace = msgspec.structs.replace


def findings(events):
    """Return the findings of the audit of a journal, ordered by weight."""
    return analyse(fold(events)).findings


def finding_sentences(events):
    """Return the sentence of each finding, by (kind, weight, groups)."""
    found_findings = findings(events)
    for finding in found_findings:
        assert finding.sentence.endswith(".")
    return {(finding.kind, finding.weight, finding.groups): finding.sentence for finding in found_findings}


def only_finding(events):
    """Return the only finding of the audit, as ((kind, weight, groups), sentence)."""
    (item,) = finding_sentences(events).items()
    return item


def episodes(events, change, group="simplified", select=lambda record: True):
    """Return the journal with the episode records of `group` ("": of every group) replaced by `change(record)`."""
    return [
        EpisodeRecorded(record=change(event.record))
        if isinstance(event, EpisodeRecorded) and group in ("", event.record.run.group_id) and select(event.record)
        else event
        for event in events
    ]


def evaluations(events, change):
    """Return the journal with every evaluation replaced by `change(record)`."""
    return [RunEvaluated(record=change(event.record)) if isinstance(event, RunEvaluated) else event for event in events]


def played_again(events, change):
    """Return the journal with every evaluation episode replaced by `change(run, episode)`."""
    return evaluations(
        events, lambda record: replace(record, episodes=tuple(change(record.run, result) for result in record.episodes))
    )


def updates(events, select=lambda record: True, **change):
    """Return the journal with some numbers in the updates of `simplified` replaced."""
    return episodes(events, lambda record: replace(record, ppo=replace(record.ppo, **change)), select=select)


def planned(events, change):
    """Return the journal with its plan replaced by `change(plan)`."""
    return [replace(events[0], plan=change(events[0].plan)), *events[1:]]


def with_entry(category, run="simplified/2", detail="what happened"):
    return [*planted_effect(), Incident(category=category, run_name=run, episode=None, detail=detail)]
