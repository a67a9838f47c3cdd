"""The figures of a report by name: in the page's colours, or alone on a white ground."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from esper_ab.report.content import Content
from esper_ab.report.figures import curves as figures_curves
from esper_ab.report.figures import effects as figures_effects
from esper_ab.report.figures import outcome as figures_outcome
from esper_ab.report.figures import plan as figures_plan
from esper_ab.report.figures import reward_audit as figures_reward_audit
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing
from esper_ab.report.figures.kinds import Draw, FiguresOfKind, figures_of

_BY_SECTION: FiguresOfKind = {
    "outcome": {
        "effects": figures_effects.effects, "outcomes": figures_outcome.outcomes, "pairs": figures_outcome.pairs,
    },
    "training": {
        "curves": figures_curves.outcome, "entropy": figures_curves.entropy, "heads": figures_curves.heads,
    },
    "rewards": {
        "best-of-n": figures_reward_audit.of_experiment(figures_reward_audit.best_of_n),
        "returns": figures_reward_audit.of_experiment(figures_reward_audit.returns),
        "when-paid": figures_reward_audit.of_experiment(figures_reward_audit.when_paid),
    },
    "trust": {"layout": figures_plan.layout},
}
_COLOURS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")  # properties of artists


def _of_section(section: str, content: Content) -> Mapping[str, Draw]:
    return {**_BY_SECTION.get(section, {}), **figures_of(content).get(section, {})}


def names(content: Content) -> tuple[str, ...]:
    """Return the names of all figures that there are for the kind of the experiment's task."""
    return tuple(name for section in _BY_SECTION for name in _of_section(section, content))


def drawn(section: str, content: Content) -> list[Drawing]:
    """Draw the figures of a section of the page, without those that have no data."""
    with style.look():
        found = [draw(content) for draw in _of_section(section, content).values()]
    return [drawing for drawing in found if drawing is not None]


def figure(name: str, content: Content) -> Figure | None:
    """Draw the figure `name`, one of `names`, on a white ground; None when it has no data yet. No display is needed."""
    with style.look():
        draws = {one: draw for section in _BY_SECTION for one, draw in _of_section(section, content).items()}
        drawing = draws[name](content)
        if drawing is None:
            return None
        style.arrange(drawing.figure)
        drawing.figure.draw_without_rendering()  # matplotlib creates ticks on drawing
    return on_white(drawing.figure)


def on_white(figure: Figure) -> Figure:
    """Give a figure that was drawn the page's light colours in the place of marker colours, for use outside of it."""
    figure.set_facecolor(style.CARD)
    for artist in figure.findobj():
        for colour in _COLOURS:
            _recolour(artist, colour)
    return figure


def _recolour(artist: Artist, name: str) -> None:
    """Replace the marker colours of one property of an artist by the page's light colours; keep other colours."""
    read, write = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
    if read is None or write is None:
        return
    found = read()
    several = getattr(found, "ndim", 1) == 2  # a collection has colours [n, 4]
    meant = [style.LIGHT.get(to_hex(one)) for one in (found if several else [found])]
    if meant and all(meant):
        write(meant if several else meant[0])
