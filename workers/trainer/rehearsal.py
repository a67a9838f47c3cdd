"""Rehearses a trainer before any budget is spent: describes it, and finds out how its runs behave.

- Two seeds must give different results: if a trainer ignores its seed, all replicates are the same run.
- The same seed twice shows whether the trainer is bit-reproducible.
- Continuing from a state in a different process shows whether the trainer resumes.
- The last state is evaluated in a process that has not trained, to see whether evaluation needs anything else.

Each part is called a trial and has its own process, with the threads, determinism and number of GPUs that runs have.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from esper_ab.contracts import users_shell
from esper_ab.contracts.child import child_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import UNREADABLE
from esper_ab.contracts.measures import PRINTABLE_WORDS, RESERVED, is_printable
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import (
    Resumption,
    TrainerFacts,
    TrainerQuestion,
    TrainerValue,
    fill,
    is_command,
    placeholders,
    read_source,
)
from esper_ab.contracts.wording import end_told
from workers.devices import pinned
from workers.devices.by_torch import seen_gpus
from workers.trainer import module, ports, script
from workers.trainer.module import Run
from workers.trainer.script import read_outcome


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the rehearsal that one process runs."""

    question: TrainerQuestion
    settings: dict[str, TrainerValue]
    rng: RngPath
    folder: str
    gpu: bool
    last: int  # the trial ends after this many points
    first: int = 0  # if equal to `last`, only the state in `state_file` is evaluated
    state_file: str = ""  # holds the state after point `first` - 1; if "", start from scratch
    keep: str = ""  # prefix of the state files' names; the point's number follows


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial. Numbers are stored as text, so that non-finite numbers can be compared."""

    points: tuple[dict[str, str], ...]
    outcomes: tuple[str, ...]
    state_was_read: bool
    point_s: float
    evaluate_s: float


def attempt(trial: Trial, device: str) -> Tried:
    """Train and evaluate; ValueError if the trainer breaks a rule. The trainer's own exceptions are not caught."""
    question, data = trial.question, Path(trial.state_file).read_bytes() if trial.state_file else b""
    trainer, _ = module.load(question.reference)
    run = Run(
        settings=trainer.settings(trial.settings), points=question.points, rng=trial.rng, device=device,
        folder=Path(trial.folder), eval_episodes=question.evaluations or EVALUATIONS, on_step=lambda step: None,
        point=trial.first, given=module.restored(data) if data else None,
    )  # fmt: skip
    began, points, found = time.perf_counter(), trainer.train(run), list[dict[str, str]]()
    for number in range(trial.first, trial.last):
        metrics, data = module.next_point(points, number, run, question.outcome)
        if found and found[0].keys() != metrics.keys():
            raise ValueError(f"point {number} and the first differ in their metrics; yield the same at every point")
        found.append({name: repr(value) for name, value in metrics.items()})
        if trial.keep:
            Path(f"{trial.keep}{number}").write_bytes(data)
    trained = time.perf_counter()
    outcomes = module.outcomes_of(trainer.evaluate(run, module.restored(data)), question.outcome)
    evaluated = time.perf_counter()
    return Tried(
        points=tuple(found), outcomes=tuple(map(repr, outcomes)), state_was_read=run.state_was_read,
        point_s=(trained - began) / max(1, len(found)), evaluate_s=evaluated - trained,
    )  # fmt: skip


EVALUATIONS = 16  # outcomes an evaluation may return as a list when no number was asked for
_SEEDS = 3  # seeds to try before equal results count as one run, because two seeds may both reach a task's maximum
_NAME_CHARS = 48
_LOG = "rehearsal.log"
Doing = Callable[[str], None]
_decode = msgspec.json.Decoder(Tried).decode


def rehearse(question: TrainerQuestion, doing: Doing) -> TrainerFacts:
    """Load and rehearse a trainer; a fault becomes the `problem` of the answer."""
    try:
        return (_of_command if is_command(question.reference) else _of_python)(question, doing)
    except (ValueError, OSError) as error:
        return TrainerFacts(problem=" ".join(str(error).split()))


def measure_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return a unique measure name for each metric, made of lower-case letters, digits and underscores.

    Raises ValueError for a metric whose own name cannot be a label in figures.
    """
    names: dict[str, str] = {}
    for metric in metrics:
        if not metric or not is_printable(metric):
            raise ValueError(f"the metric {metric!r} needs a name {PRINTABLE_WORDS}")
        base = re.sub(r"[^a-z0-9]+", "_", metric.lower()).strip("_")[:_NAME_CHARS]
        base = base if base[:1].isalpha() else f"metric_{base}".rstrip("_")
        tries = itertools.chain((base, f"metric_{base}"), (f"{base}_{number}" for number in itertools.count(2)))
        names[metric] = next(name for name in tries if name not in RESERVED and name not in names.values())
    return names


def behaviour(whole: Tried, again: Tried, resumed: Tried | None, alone: Tried) -> tuple[bool, Resumption]:
    """Return whether a trainer is bit-reproducible, and how it continues from the state after point 0.

    `whole` and `again`: the same run twice, uninterrupted. `resumed`: the run continued from the state after point 0,
    or None. `alone`: only the evaluation of the last state.
    """
    repeats = (whole.points, whole.outcomes) == (again.points, again.outcomes)
    if resumed is None or not resumed.state_was_read:
        return repeats, "anew"
    same = (resumed.points, resumed.outcomes, alone.outcomes) == (whole.points[1:], whole.outcomes, whole.outcomes)
    return repeats, "exactly" if repeats and same else "resumes"


def _text(settings: Mapping[str, TrainerValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _refuse_one_run(results: Sequence[object], shown: str, remedy: str) -> None:
    """Raise ValueError if all seeds gave the same result."""
    if all(result == results[0] for result in results):
        raise ValueError(f"{len(results)} seeds gave the same {shown}, so every seed would repeat the same "
                         f"run; {remedy}")  # fmt: skip


def _settings_of_groups(trainer: module.PythonTrainer, question: TrainerQuestion) -> dict[str, dict[str, TrainerValue]]:
    """Return each group's settings, read by the trainer; ValueError with the group's name if it refuses them."""
    settings = {}
    for group, values in question.groups.items():
        try:
            settings[group] = module.flat(trainer.settings(values))
        except ValueError as error:
            raise ValueError(f"group {group!r}: {error}") from None
    return settings


def _of_python(question: TrainerQuestion, doing: Doing) -> TrainerFacts:
    doing(f"loading {question.reference}")
    trainer, code = module.load(question.reference)
    settings = _settings_of_groups(trainer, question)
    short = module.flat(trainer.settings({**next(iter(settings.values())), **question.rehearsal}))
    last, pins = min(2, question.points), _pins(question)
    gpu = bool(pins["CUDA_VISIBLE_DEVICES"])
    with TemporaryDirectory() as folder:
        states, trained = str(Path(folder, "state")), "trained"

        def trial(seed: int, words: str, *, first: int = 0, keep: str = "", within: str = "") -> Tried:
            doing(f"rehearsing {Path(question.reference).name}, {words}")
            place = Path(folder, within or f"{seed}-{words.replace(' ', '-')}")
            place.mkdir(exist_ok=True)
            return _tried(Trial(
                question=question, settings=short, rng=_rng(question, seed), folder=str(place), gpu=gpu, last=last,
                first=first, state_file=f"{states}{first - 1}" if first else "", keep=keep,
            ), pins)  # fmt: skip

        at_once = 1 if gpu else 3  # a run may need all of a GPU's memory
        with ThreadPoolExecutor(at_once) as pool:
            parts = [
                pool.submit(trial, 0, "a seed", keep=states, within=trained),
                pool.submit(trial, 0, "the same seed again"), pool.submit(trial, 1, "another seed"),
            ]  # fmt: skip
            whole, again, other = (part.result() for part in parts)
            evaluated = pool.submit(trial, 0, "its evaluation alone", first=last, within=trained)
            went_on = pool.submit(trial, 0, "from a state", first=1) if last > 1 else None
            alone, resumed = _evaluated(evaluated), went_on.result() if went_on else None
        others = [other]
        if other.outcomes == whole.outcomes and other.points == whole.points:
            others += [trial(seed, f"seed {seed + 1}") for seed in range(2, _SEEDS)]
    _refuse_one_run(
        [(one.points, one.outcomes) for one in (whole, *others)], f"results ({question.outcome} {whole.outcomes[0]})",
        "draw everything from run.seed(…)",
    )
    if question.evaluations and len(whole.outcomes) != question.evaluations:
        found = len(whole.outcomes)
        raise ValueError(f"evaluate returned {found} outcomes; --eval-episodes asks for {question.evaluations}")
    repeats, resumption = behaviour(whole, again, resumed, alone)
    return TrainerFacts(
        settings=settings, root=str(code.root), files=code.files, sha256=code.sha256,
        metrics=measure_names(name for name in whole.points[0] if name != question.outcome),
        evaluations=len(whole.outcomes), repeats=repeats, resumption=resumption,
        evaluates_alike=not repeats or alone.outcomes == whole.outcomes,
        shortened=_text(question.rehearsal), point_s=whole.point_s, evaluate_s=whole.evaluate_s,
    )  # fmt: skip


def _evaluated(alone: Future[Tried]) -> Tried:
    """Return the evaluation in a process that has not trained; ValueError if the evaluation fails."""
    try:
        return alone.result()
    except ValueError as error:
        what = "evaluate(run, state) failed in a process that has not trained"
        raise ValueError(f"{what}: {error}; it receives nothing but the state") from None


def _rng(question: TrainerQuestion, seed: int) -> RngPath:
    return RngPath(question.rng_seed) / "rehearsal" / seed


def _pins(question: TrainerQuestion) -> dict[str, str]:
    """Return the environment variables of a run's process: arithmetic and, if the run needs a GPU, which GPU."""
    names = [name for name, _ in seen_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))] if question.gpu else []
    seen = {f"cuda:{index}": name for index, name in enumerate(names)}
    own = names[:1] if question.gpu == "cuda" else [seen.get(question.gpu, "")]
    return pinned.variables(own, Arithmetic(threads=question.threads, deterministic=question.deterministic))


def _tried(trial: Trial, pins: Mapping[str, str]) -> Tried:
    """Run one trial in its own process.

    Raises ValueError with the fault that the process reports or, if the process crashes, with the last line of output.
    """
    command = child_command("workers.commands.try_trainer")
    with child_of(command, msgspec.json.encode(trial), {**os.environ, **pins}) as child:
        answer, complaint = child.communicate()
    try:
        return _decode(answer)
    except UNREADABLE:
        said = complaint.decode(errors="replace").strip().splitlines()
    if child.returncode == UsageError.exit_code and said and said[-1].startswith("error: "):
        raise ValueError(said[-1].removeprefix("error: ").removeprefix("ValueError: "))
    ended = end_told(child.returncode or 0, said)
    raise ValueError(f"{Path(trial.question.reference).name} ended its process: it {ended}")


def _of_command(question: TrainerQuestion, doing: Doing) -> TrainerFacts:
    source, settings = read_source(question.outcome), next(iter(question.groups.values()))
    files = named_files(question.reference, question.directory, question.groups.values())
    sha256, pins = source_sha256(Path(question.directory), files), _pins(question)
    shell = users_shell.current()
    with TemporaryDirectory() as folder:

        def outcome(seed: int, words: str) -> float:
            doing(f"rehearsing the command with {words}")
            out = script.fresh_folder(Path(folder), "out").resolve()
            with ports.claimed(question.reference) as port:
                filled = script.words_of(
                    question.reference, {**settings, **question.rehearsal, **port},
                    script.seed_at(_rng(question, seed)), out,
                )  # fmt: skip
                script.run_script(
                    filled, question.directory, script.environment(shell, source, out, pins), (Path(folder), _LOG),
                    lambda: None, shell,
                )  # fmt: skip
            return read_outcome(source, out)

        began = time.perf_counter()
        first = outcome(0, "a seed")
        took_s = time.perf_counter() - began
        others = [repr(outcome(1, "another seed"))]
        if others[0] == repr(first):
            others += [repr(outcome(seed, "one more seed")) for seed in range(2, _SEEDS)]
        again = outcome(0, "the same seed again")
    _refuse_one_run([repr(first), *others], f"outcome ({first:g})", "does the script read the seed that it is given?")
    return TrainerFacts(
        settings=question.groups, root=question.directory, files=files, sha256=sha256, evaluations=1,
        repeats=repr(first) == repr(again), resumption="anew", shortened=_text(question.rehearsal), point_s=took_s,
    )


def named_files(
    command: str, directory: str, groups: Iterable[Mapping[str, TrainerValue]] = ({},)
) -> tuple[str, ...]:
    """Return the files below the command's folder that the command names under any group's settings.

    A word names a file by itself, after an equals sign (`--config=FILE`) or as a module (`-m train`). The program
    counts only if given as a path, because a bare name is looked up on PATH.
    """
    root, named = Path(directory).resolve(), list[str]()
    for settings in groups:
        filled = {name: settings.get(name, f"{{{name}}}") for name in placeholders(command)}
        program, *words = fill(command, filled)
        named += [program] if "/" in program else []
        for before, word in pairwise((program, *words)):
            behind, module = word.partition("=")[2], word.replace(".", "/")
            named += [word, *([behind] if behind else [])]
            named += [f"{module}.py", f"{module}/__main__.py"] if before == "-m" else []
    paths = [(root / name).resolve() for name in named if "{" not in name and (root / name).is_file()]
    return tuple(dict.fromkeys(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root)))
