"""Journals with something wrong in them, and what the audit finds there."""

from __future__ import annotations

import msgspec

from esper_ab.analysis.analyse import analyse
from esper_ab.journal.events import EpisodeRecorded, Incident
from esper_ab.journal.fold import fold
from support.journals import planted_effect

replace = msgspec.structs.replace


def findings(events):
    """Of the audit of a journal, the weightiest first."""
    return analyse(fold(events)).findings


def found(events):
    """(kind, weight, groups) -> sentence"""
    everything = findings(events)
    for finding in everything:
        assert finding.sentence.endswith(".")
    return {(finding.kind, finding.weight, finding.groups): finding.sentence for finding in everything}


def only(events):
    """The one finding there is."""
    (item,) = found(events).items()
    return item


def episodes(events, change, group="simplified", which=lambda record: True):
    """The journal with the episode records of one group replaced by `change(record)`."""
    return [
        EpisodeRecorded(record=change(event.record))
        if isinstance(event, EpisodeRecorded) and event.record.run.group_id == group and which(event.record)
        else event
        for event in events
    ]


def updates(events, which=lambda record: True, **change):
    """The journal with some numbers of the updates of `simplified` replaced."""
    return episodes(events, lambda record: replace(record, ppo=replace(record.ppo, **change)), which=which)


def planned(events, change):
    """The journal with its plan replaced by `change(plan)`."""
    return [replace(events[0], plan=change(events[0].plan)), *events[1:]]


def with_entry(category, run="simplified/2", detail="what happened"):
    return [*planted_effect(), Incident(category=category, run_name=run, episode=None, detail=detail)]
