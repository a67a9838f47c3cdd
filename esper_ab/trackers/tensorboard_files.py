"""TensorBoard tracker: one event file per run in EXPERIMENT/tensorboard/GROUP/SEED, and one for the comparison.

All bytes of a file, even the times, follow from the journal, so the file itself records the progress: existing bytes
are compared and skipped, a torn end is overwritten, and a repeated run changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import plugin_data_pb2, summary_v2
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from esper_ab.contracts.files_below import open_below, write_all
from esper_ab.trackers.tracker import Conclusion, Scalar, Subject

FOLDER = "tensorboard"
_VERSION = "brain.Event:2"  # first record of every event file, as from TensorBoard's own writer


class Continuing:
    """A file for writing: bytes that are already there are skipped, and the file is truncated where they differ."""

    def __init__(self, root: Path, name: str) -> None:
        """Open the file `name` below `root`; create it if it does not exist."""
        self._file = os.fdopen(open_below(root, name, os.O_RDWR | os.O_CREAT), "r+b", buffering=0)
        self._at = 0  # bytes written or already there
        self._same = True  # all bytes so far were already there

    def write(self, data: bytes) -> None:
        """Write `data`. Raises OSError on a full disk; the next process that opens the file repairs a torn end."""
        if self._same:
            if self._file.read(len(data)) == data:
                self._at += len(data)
                return
            self._same = False
            self._file.seek(self._at)
            self._file.truncate()
        write_all(self._file.fileno(), data)
        self._at += len(data)

    def flush(self) -> None:
        """Do nothing: writes are unbuffered."""

    def close(self, *, truncates: bool = False) -> None:
        """Close the file; if it `truncates`, without anything after the last byte written."""
        if truncates and os.fstat(self._file.fileno()).st_size > self._at:
            self._file.truncate(self._at)
        self._file.close()


class TensorBoardFiles:
    """Tracker for TensorBoard, as defined in `trackers/fold.py`."""

    def __init__(self, experiment_dir: Path) -> None:
        self._experiment_dir = experiment_dir
        self.where = str(experiment_dir / FOLDER)
        self._files: dict[str, Continuing] = {}  # of subjects not yet concluded

    def begin(self, subject: Subject) -> None:
        began_s = subject.began_ms / 1000
        name = f"{FOLDER}/{subject.key}/events.out.tfevents.{int(began_s)}.{subject.id}"
        self._files[subject.key] = Continuing(self._experiment_dir, name)
        self._put(subject, began_s, file_version=_VERSION)
        self._put(subject, began_s, summary=_settings(subject.settings, subject, began_s))

    def log(self, subject: Subject, step: int, numbers: dict[str, float], time_ms: int) -> None:
        self._put(subject, time_ms / 1000, step=step, summary=_scalars(numbers))

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        texts = {**conclusion.words, "outcome": conclusion.state}
        for summary in (_scalars(conclusion.numbers), *(text_pb(name, text) for name, text in texts.items())):
            self._put(subject, conclusion.at_ms / 1000, step=conclusion.step, summary=summary)
        self._files.pop(subject.key).close(truncates=True)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _put(self, subject: Subject, time_s: float, **fields: Any) -> None:
        event = event_pb2.Event(wall_time=time_s, **fields)
        RecordWriter(self._files[subject.key]).write(event.SerializeToString(deterministic=True))


def _scalars(numbers: dict[str, float]) -> summary_pb2.Summary:
    """Return the numbers as a summary of 32-bit floats, the precision that TensorBoard keeps."""
    values = [summary_pb2.Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
    return summary_pb2.Summary(value=values)


def _settings(settings: dict[str, Scalar], subject: Subject, began_s: float) -> summary_pb2.Summary:
    """Return the settings for the HPARAMS page, serialised deterministically, unlike the library's own summary."""
    summary = summary_v2.hparams_pb(settings, trial_id=subject.id, start_time_secs=began_s)
    for value in summary.value:
        plugin_data = value.metadata.plugin_data
        data = plugin_data_pb2.HParamsPluginData.FromString(plugin_data.content)
        plugin_data.content = data.SerializeToString(deterministic=True)
    return summary
