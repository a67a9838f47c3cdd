"""Which files of workers that share none are taken, before a byte of them has come."""

from __future__ import annotations

import pytest
from support import fake_plans
from support.journals import started

from esper_ab.contracts.messages import FILE_LIMIT_BYTES, LOG_BYTES, Grant, Lane, Upload, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.rules.files import WorkerFiles
from esper_ab.control.rules.transfers import Answer
from esper_ab.control.rules.validation import Rejected
from esper_ab.control.rules.worker_state import Workers
from esper_ab.journal.fold import fold

PLAN = fake_plans.plan()
SPEC = PLAN.blocks[0].runs[0]
ORDER = WorkerOrder(
    endpoint="", worker="w00", incarnation=1, lane=Lane(name=SPEC.ref.lane, devices=(SPEC.ref.lane,), uuids=("",)),
    arithmetic=Arithmetic(), experiment_dir="", log_file="logs/w00.log", shares_files=False,
)  # fmt: skip
LOGS = (("worker log", None), ("run log", SPEC.ref))


@pytest.fixture
def files_and_worker():
    history, workers = fold([started(PLAN)]), Workers()
    history.runs[SPEC.ref.name].started = True
    worker = workers.ordered(ORDER, tried=True)
    worker.run = SPEC
    return WorkerFiles(history, workers), worker


def upload(file, run, **changed):
    given = {"size_bytes": LOG_BYTES, "milestone": 0} | changed
    return Upload(number=1, file=file, run=run, sha256="0" * 64, **given)


@pytest.mark.parametrize(("file", "run"), LOGS)
@pytest.mark.parametrize("size_bytes", [0, LOG_BYTES + 1, FILE_LIMIT_BYTES])
def test_a_log_comes_by_as_much_as_a_worker_sends_at_a_time(files_and_worker, file, run, size_bytes):
    files, worker = files_and_worker
    with pytest.raises(Rejected, match=f"announces {size_bytes} bytes of a {file}, which comes by 1 to {LOG_BYTES}"):
        files.heard(worker, upload(file, run, size_bytes=size_bytes))


@pytest.mark.parametrize(("file", "run"), LOGS)
def test_as_much_of_a_log_as_a_worker_sends_is_taken(files_and_worker, file, run):
    files, worker = files_and_worker
    assert files.heard(worker, upload(file, run)) == [
        Answer(worker.identity, Grant(number=1, offset=0, length=LOG_BYTES))
    ]


@pytest.mark.parametrize(("file", "milestone"), [("checkpoint", 1), ("policy", 0)])
def test_a_file_that_goes_to_the_disk_piece_by_piece_may_be_large(files_and_worker, file, milestone):
    files, worker = files_and_worker
    assert files.heard(worker, upload(file, SPEC.ref, milestone=milestone, size_bytes=FILE_LIMIT_BYTES))
