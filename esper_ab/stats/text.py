"""How the numbers of statistics are written."""

from __future__ import annotations


def points(value: float) -> str:
    """Write a difference of accuracies with its sign: "+1.20", "-0.35", "0.00"."""
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text


def percent(level: float) -> str:
    """Write a probability as "95 %", "98.3 %"."""
    return f"{100 * level:.3g} %"


def p_text(p: float) -> str:
    """Write p, with its relation, in the digits that matter: "= 0.031", "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}" if p < 0.1 else f"= {p:.2f}"


def n_pairs(count: int) -> str:
    """Write "1 pair", "6 pairs"."""
    return f"{count} pair" if count == 1 else f"{count} pairs"
