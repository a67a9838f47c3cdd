"""A fake worker without torch: uses the real link, reports a planted effect, injects faults.

Accuracy is 50 + 10·(position of the first letter of the group's name in the alphabet) + noise of the replicate's rng
path: shared by all groups, so that the paired difference is planted exactly, or each group's own when unpaired.

It writes checkpoints and resumes from them by the code of the real worker, with a state of a few bytes.

FAKE_FAULT="kind:run:milestone[:times][,…]" plants a fault when `run` reaches `milestone`, but not when it only resumes
there; with `times`, only in a worker's first `times` incarnations: "die:a/0:2:1" strikes once if w00 did a/0 from
its first start, without `times` at every attempt. The kinds are the functions of `_FAULTS`, and "protocol", which
concerns a worker whose name is given as `run`.
"""

import hashlib
import math
import os
import shutil
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import zmq

from esper_ab.contracts import link_keys, users_shell
from esper_ab.contracts.evaluation import episode_sizes
from esper_ab.contracts.messages import (
    PROTOCOL,
    Assign,
    Cancel,
    EpisodeFinished,
    Evaluated,
    Hello,
    Progress,
    Ready,
    Release,
    Stop,
)
from esper_ab.contracts.records import (
    EnvEpisode,
    EpisodeRecord,
    EvaluatedEpisode,
    EvaluationRecord,
    SeedEvent,
    Timing,
)
from esper_ab.contracts.rng import run_path
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder
from workers.kinds.growth.measures import MEASURES
from workers.process import setup as process
from workers.process.entry import failure
from workers.process.link import Link
from workers.storage import durable
from workers.storage.durable import Damaged

FAULT_VARIABLE = "FAKE_FAULT"
SCRIBBLE_VARIABLE = "SCRIBBLE_IN"
TIMING = Timing(total_s=0.0, train_s=0.0, validate_s=0.0, decide_s=0.0, update_s=0.0)


def main(order: WorkerOrder) -> None:
    """Entry point of a worker process, which does the same as the real one but for torch."""
    process.redirect_output(Path(order.experiment_dir), order.log_file)
    process.ignore_signals()
    users_shell.enter(order.shell)
    process.set_environment(order.lane, order.arithmetic)
    main_in_thread(order)


def main_in_thread(order: WorkerOrder) -> None:
    link = Link(
        order.endpoint,
        order.identity,
        resend_after_s=0.2,
        keys=link_keys.take(order.identity),
        lost_after_s=order.lost_after_s,
        beat_s=order.beat_s,
    )
    try:
        link.send(hello(order))
        _serve(link, order)
    except Exception as error:
        link.send(failure(error))
        raise
    finally:
        link.close(is_finished=True)


def hello(order):
    protocol = 99 if ("protocol", order.worker, 0) in _planted(order) else PROTOCOL
    return Hello(
        worker=order.worker,
        incarnation=order.incarnation,
        protocol=protocol,
        pid=os.getpid(),
        uuids=order.lane.uuids,
        torch_version="none",
        host=socket.gethostname(),
        titles=order.lane.titles,
        sources="an edit" if ("sources", order.worker, 0) in _planted(order) else "",
    )


def _planted(order):
    planted_faults = [fault.split(":") for fault in os.environ.get(FAULT_VARIABLE, "").split(",") if fault]
    return {
        (kind, run, int(milestone))
        for kind, run, milestone, *times in planted_faults
        if not times or order.incarnation <= int(times[0])
    }


def _serve(link, order):
    while True:
        message = link.orders()
        if isinstance(message, Stop) or (isinstance(message, Assign) and not _run(link, order, message)):
            return


def _run(link, order: WorkerOrder, assign: Assign) -> bool:
    """Train and report one run; return False on a Stop message."""
    spec = assign.spec
    start, damage_reports = take_up(order, assign)
    for milestone in range(start, spec.episodes + 2):
        link.send(Progress(run=spec.ref, milestone=milestone, step=1, phase=phase_of(spec, milestone)))
        if milestone == start:
            report = Ready(run=spec.ref, warm_up_s=0.0, milestone=start, damaged=damage_reports)
        else:
            report = report_of(spec, milestone, save(link, order, spec, milestone))
        for kind, run, fault_milestone in sorted(_planted(order)):
            if (run, fault_milestone) == (spec.ref.name, milestone) and (milestone > start or start == 0):
                report = _FAULTS[kind](link, report)
        link.send(report)
        answer = _answer(link, spec, milestone)
        if not isinstance(answer, Release):
            return isinstance(answer, Cancel)
    return True


def _answer(link, spec, milestone):
    """Wait for the release of `milestone`, or for the message that ends the run or the worker."""
    while True:
        message = link.receive()
        if isinstance(message, Stop):
            return message
        is_for_this_run = isinstance(message, Release | Cancel) and message.run_name == spec.ref.name
        if is_for_this_run and (isinstance(message, Cancel) or message.milestone == milestone):
            return message


def learns(spec):
    return spec.ref.controller == "ppo"


def state(spec, milestone):
    return f"{spec.ref.name} at {milestone}".encode()


def save(link, order, spec, milestone):
    if learns(spec) and 0 < milestone <= spec.episodes:
        return durable.store(Path(order.experiment_dir), spec.ref, milestone, state(spec, milestone), order.writer)
    return None


def policy(spec):
    return f"the policy of {spec.ref.name}".encode()


def take_up(order, assign):
    """Resume from a checkpoint; return the milestone and damaged files, as in workers/process/loop.py."""
    spec = assign.spec

    def resume(data):
        if data not in {state(spec, checkpoint.milestone) for checkpoint in assign.checkpoints}:
            raise Damaged("is no checkpoint of this run")

    if not learns(spec):
        return assign.milestone, ()
    return durable.take_up(Path(order.experiment_dir), spec.ref, assign.checkpoints, resume)


def phase_of(spec, milestone):
    return "warm-up" if milestone == 0 else "train" if milestone <= spec.episodes else "evaluate"


def report_of(spec: RunSpec, milestone: int, saved_checkpoint=None):
    if milestone == 0:
        return Ready(run=spec.ref, warm_up_s=0.0)
    if milestone <= spec.episodes:
        return EpisodeFinished(run=spec.ref, record=episode(spec, milestone - 1), checkpoint=saved_checkpoint)
    return Evaluated(run=spec.ref, record=evaluation(spec))


def accuracy(spec, episode, env):
    path = run_path(spec.rng_seed, spec.ref.replicate, spec.rng_label) / "fake" / episode / env
    return 50.0 + 10.0 * (ord(spec.ref.group_id[0]) - ord("a")) + path.key() / 2**128


def _env(spec, episode, env):
    outcome = accuracy(spec, episode, env)
    counts = {"host_params": 100.0, "params_added": 10.0, "germinated": 1.0, "fossilized": 1.0, "contributing": 1.0}
    counts |= {"op_wait": spec.steps - 1.0, "op_germinate": 1.0}
    measures = dict.fromkeys(MEASURES.names, 0.0) | {"val_accuracy": outcome, "best_val_accuracy": outcome}
    return EnvEpisode(
        env=env,
        device=spec.env_devices[env],
        steps=spec.steps,
        outcome=outcome,
        reward_sum=outcome / 10,
        failed=False,
        measures=measures | {"val_loss": None} | counts,
    )


def _digest(facts):
    return hashlib.sha256(repr((facts,)).encode()).hexdigest()


def episode(spec, index):
    envs = tuple(_env(spec, index, env) for env in range(spec.n_envs))
    return EpisodeRecord(
        run=spec.ref, episode=index, envs=envs, ppo=None, seed_events=(), timing=TIMING, digest=_digest(envs)
    )


def evaluation(spec):
    episodes = tuple(
        EvaluatedEpisode(
            episode=index,
            actions=actions,
            result=_env(spec, spec.episodes + index, env),
            rewards=dict.fromkeys(spec.eval_reward_modes, 1.0),
        )
        for actions in ("sampled", "greedy")
        for index, size in enumerate(episode_sizes(spec.eval_episodes, spec.n_envs))
        if actions == "sampled" or not index
        for env in range(size)
    )
    return EvaluationRecord(
        run=spec.ref,
        episodes=episodes,
        policy_file=spec.policy_file,
        policy_sha256=hashlib.sha256(policy(spec)).hexdigest(),
        timing=TIMING,
        digest=_digest(episodes),
    )


# --- faults: each gets the report about to be sent and returns the one to send ---


def _die(link, report):
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(link, report):
    raise SystemExit(0)


def _raise(link, report):
    raise RuntimeError("the planted error")


def _hang(link, report):
    sys.stdout.write("about to hang\n")
    sys.stdout.flush()
    threading.Event().wait()


def _send_noise(count, link, report):
    """Send bad messages. The coordinator tolerates a single one, because a flipped bit can cause it."""
    for _ in range(count):
        link._socket.send(b"\xc1 no message")
    return report


def _send_twice(link, report):
    link.send(report)
    return report


def _scribble(link, report):
    """Write to the journal, like a reward function that mistakes the journal for its own log."""
    with Path(os.environ[SCRIBBLE_VARIABLE]).open("ab") as journal:
        journal.write(b'{"reward": 1.0}\n')
    return report


def _move(link, report):
    """Move the experiment's directory, and put another with a file of the same name in its place."""
    folder = Path(os.environ[SCRIBBLE_VARIABLE]).parent
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    (folder / "events.jsonl").write_text("foreign\n")
    return report


def _remove(link, report):
    """Remove the experiment's directory, even if another worker writes a checkpoint to it meanwhile."""
    folder = Path(os.environ[SCRIBBLE_VARIABLE]).parent
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    return report


def _change_digest(link, report):
    """Report a digest other than that of the planted result."""
    return msgspec.structs.replace(report, record=msgspec.structs.replace(report.record, digest="e" * 64))


def _make_nan(link, report):
    broken_record = msgspec.structs.replace(report.record.envs[0], outcome=math.nan)
    return msgspec.structs.replace(report, record=msgspec.structs.replace(report.record, envs=(broken_record,)))


def _make_large(link, report):
    """Make the report larger than a chunk, so that it is sent in pieces."""
    event = SeedEvent(
        env=0,
        step=1,
        slot="early",
        event="germinated",
        seed_id="s" * 50,
        blueprint="norm",
        stage="GERMINATED",
        alpha=0.0,
        contribution=None,
        params=10,
    )
    record = msgspec.structs.replace(report.record, seed_events=(event,) * 7_000)
    return msgspec.structs.replace(report, record=record)


_CROWD: list[socket.socket] = []  # stay open as long as the process


def _open_connections(link, report):
    """Open as many silent TCP connections to the coordinator as this process may have."""
    endpoint = link._socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    with suppress(OSError):
        while True:
            _CROWD.append(socket.socket())
            _CROWD[-1].setblocking(False)
            _CROWD[-1].connect_ex((host, int(port)))
    _CROWD.pop().close()  # the link needs one now and then
    return report


_FAULTS = {
    "crowd": _open_connections,
    "die": _die,
    "leave": _leave,
    "raise": _raise,
    "hang": _hang,
    "garbage": partial(_send_noise, 10),
    "slip": partial(_send_noise, 1),
    "twice": _send_twice,
    "other": _change_digest,
    "nan": _make_nan,
    "large": _make_large,
    "scribble": _scribble,
    "move": _move,
    "remove": _remove,
}
