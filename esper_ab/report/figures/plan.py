"""Figure of the plan: the group on each lane in each block, and which runs have their outcome."""

from __future__ import annotations

from esper_ab.journal.fold import RunHistory
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing, Picture, group_legend, shortened

_MOST_BLOCKS = 60  # columns that remain legible; the table of lanes counts all

_ORDERS = {
    "balanced": " The order is a Williams sequence: every group on every device equally often, as far as the number of "
    "blocks allows.",
    "fixed": " The order is the same in every block: devices cannot be told from groups.",
    "shuffled": " The order is drawn afresh for every block.",
}


def layout(content: Content) -> Drawing | None:
    """Plot lanes in start order from top to bottom, blocks from left to right. None for one lane and one block."""
    history = content.history
    lanes = [lane.name for lane in history.plan.lanes]
    replicates = sorted({run.ref.replicate for run in history.runs.values()})[:_MOST_BLOCKS]
    if len(lanes) < 2 and len(replicates) < 2:
        return None
    column = {replicate: place for place, replicate in enumerate(replicates)}
    runs = [run for run in history.runs.values() if run.ref.replicate in column and run.ref.device in lanes]
    size = 8.0 if len(replicates) <= 24 else 5.0
    figure = Picture(figsize=(9.4, 1.15 + 0.3 * len(lanes)))
    axes = figure.subplots()
    for run in runs:
        index = content.groups.index(run.ref.group_id)
        state = content.outcomes[run.ref.name].outcome is not None
        axes.plot(
            [column[run.ref.replicate]], [lanes.index(run.ref.device)], style.marker(index), markersize=size,
            color=style.colour(index), markerfacecolor=style.colour(index) if state else style.CARD,
            markeredgewidth=1.3, clip_on=False,
        )  # fmt: skip
    axes.set_yticks(range(len(lanes)), [shortened(lane) for lane in lanes])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_xlim(-0.6, len(replicates) - 0.4)
    stride = -(-len(replicates) // 20)
    axes.set_xticks(range(0, len(replicates), stride), [str(r) for r in replicates[::stride]])
    axes.tick_params(length=0)
    axes.grid(visible=False, axis="x")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlabel("seed (block)")
    group_legend(figure, list(enumerate(content.groups)), markers=True)
    return Drawing(
        name="layout", title="Who ran where",
        caption="Devices from top to bottom in start order, blocks from left to right. Filled: the run has its "
                "outcome. "
        "Hollow: not yet, not needed, or lost." + _ORDERS[history.plan.experiment.order]
        + (f" The first {_MOST_BLOCKS} blocks." if len(history.plan.blocks) > _MOST_BLOCKS else ""),
        alt="Runs per device: " + "; ".join(_on_lanes(group, lanes, runs) for group in content.groups) + ".",
        figure=figure, wide=True,
    )


def _on_lanes(group: str, lanes: list[str], runs: list[RunHistory]) -> str:
    counts = (sum(run.ref.group_id == group and run.ref.device == lane for run in runs) for lane in lanes)
    return f"{group}: " + ", ".join(f"{lane} {count}" for lane, count in zip(lanes, counts, strict=True))
