"""Figures of the training: curves by episode, and what became of seeds by step."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.outcomes import held_out_accuracy, mean
from esper_ab.report import style
from esper_ab.report.content import Content
from esper_ab.report.drawing import Drawing, group_legend

_POINTS_PER_FIGURE = 3000  # keeps the page small: longer curves are averaged over bins
Curve = list[tuple[float, float]]  # (episode, value)


def accuracy(content: Content) -> Drawing | None:
    """Held-out accuracy at the end of every training episode."""
    return _curves(
        content,
        name="curves",
        title="Training curves",
        label="held-out accuracy, %",
        caption="Mean over hosts at the end of each training episode. Thin: single runs. Thick: mean of the group's "
        "runs. Not the endpoint: the policy still changes and explores.",
        value=held_out_accuracy,
    )


def entropy(content: Content) -> Drawing | None:
    """Entropy of the policy, by episode; groups that do not learn have none."""
    return _curves(
        content,
        name="entropy",
        title="Entropy of the policy",
        label="entropy per decision, nats",
        caption="Joint entropy over valid actions, before each update. Falling: the policy decides. Thin: single runs.",
        value=lambda record: None if record.ppo is None else record.ppo.entropy,
    )


def _curves(
    content: Content,
    *,
    name: str,
    title: str,
    label: str,
    caption: str,
    value: Callable[[EpisodeRecord], float | None],
) -> Drawing | None:
    figure = Figure(figsize=(4.6, 3.3))
    axes = figure.subplots()
    most = max(20, _POINTS_PER_FIGURE // max(1, len(content.outcomes)))
    shown: list[tuple[int, str]] = []
    words = []
    for index, group in enumerate(content.groups):
        curves = [_curve(run, value) for run in content.history.of_group(group)]
        middle = _mean_curve(curves)
        if not middle:
            continue
        shown.append((index, group))
        for curve in curves:
            thin = _binned(curve, most)
            axes.plot(
                [x for x, _ in thin], [y for _, y in thin], color=style.colour(index), linewidth=0.8, alpha=0.35
            )
        middle = _binned(middle, most)
        single = style.marker(index) if len(middle) == 1 else ""
        axes.plot(
            [x for x, _ in middle],
            [y for _, y in middle],
            color=style.colour(index),
            linestyle=style.line(index),
            linewidth=2.2,
            marker=single,
        )
        words.append(f"{group} from {middle[0][1]:.2f} to {middle[-1][1]:.2f}")
    if not shown:
        return None
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("training episode")
    axes.set_ylabel(label)
    group_legend(figure, shown, markers=False)
    return Drawing(
        name=name,
        title=title,
        caption=caption,
        alt=f"{label}, first to last episode, mean over runs: " + "; ".join(words) + ".",
        svg=style.svg(figure, name),
    )


def _curve(run: RunHistory, value: Callable[[EpisodeRecord], float | None]) -> Curve:
    found = ((record.episode + 1, value(record)) for record in run.curve())
    return [(float(episode), number) for episode, number in found if number is not None]


def _mean_curve(curves: list[Curve]) -> Curve:
    """Over the runs that have got to an episode."""
    by_episode: dict[float, list[float | None]] = {}
    for curve in curves:
        for episode, number in curve:
            by_episode.setdefault(episode, []).append(number)
    means = ((episode, mean(by_episode[episode])) for episode in sorted(by_episode))
    return [(episode, number) for episode, number in means if number is not None]


def _binned(curve: Curve, most: int) -> Curve:
    """At most `most` points: means of equally long stretches."""
    width = -(-len(curve) // most)
    if width <= 1:
        return curve
    stretches = [curve[i : i + width] for i in range(0, len(curve), width)]
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in stretches]


_EVENTS = (("germinated", "germinated"), ("fossilized", "fossilised"), ("pruned", "pruned"))


def seeds(content: Content) -> Drawing | None:
    """Share of hosts in which a seed has been germinated, fossilised, pruned by each step; None without any event."""
    steps = content.history.plan.experiment.steps
    shares = {
        group: {event: _shares(content.history.of_group(group), event, steps) for event, _ in _EVENTS}
        for group in content.groups
    }
    if not any(max(share, default=0.0) > 0 for found in shares.values() for share in found.values()):
        return None
    figure = Figure(figsize=(9.4, 2.9))
    panels = figure.subplots(1, len(_EVENTS), sharey=True)
    for axes, (event, word) in zip(panels, _EVENTS, strict=True):
        for index, group in enumerate(content.groups):
            share = shares[group][event]
            if share:
                axes.step(
                    range(1, steps + 1), share, where="post", color=style.colour(index), linestyle=style.line(index)
                )
        axes.set_title(word)
        axes.set_xlabel("step")
        axes.set_ylim(-3, 103)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    panels[0].set_ylabel("hosts, %")
    group_legend(figure, [(i, group) for i, group in enumerate(content.groups) if shares[group]], markers=False)
    ends = (
        f"{group}: " + ", ".join(f"{shares[group][event][-1]:.0f} % {word}" for event, word in _EVENTS)
        for group in content.groups
        if shares[group]["germinated"]
    )
    return Drawing(
        name="seeds",
        title="Life of the seeds",
        caption="Share of hosts in which a seed has germinated, been fossilised, or been pruned, up to each step; over "
        "the second half of the training episodes.",
        alt="By the last step: " + "; ".join(ends) + ".",
        svg=style.svg(figure, "seeds"),
        wide=True,
    )


def _shares(runs: tuple[RunHistory, ...], event: str, steps: int) -> list[float]:
    """Percent of hosts with `event` by step 1 ... steps; empty without records. [steps]"""
    hosts = 0
    first_steps: list[int] = []
    for run in runs:
        records = run.curve()
        for record in records[len(records) // 2 :]:
            hosts += len(record.envs)
            first: dict[int, int] = {}
            for item in record.seed_events:
                if item.event == event:
                    first[item.env] = min(item.step, first.get(item.env, item.step))
            first_steps += first.values()
    if not hosts:
        return []
    return [100 * sum(step <= upto for step in first_steps) / hosts for upto in range(1, steps + 1)]
