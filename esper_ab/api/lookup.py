"""Looking up by name, where a name that is not there is answered with those that are."""

from __future__ import annotations

from esper_ab.settings.assignments import did_you_mean


class NoSuchName(KeyError):
    """A KeyError that reads as a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class Verdicts(dict[tuple[str, str], str]):
    """(a, b) -> the verdict on a - b. Another pair is a KeyError that says which there are."""

    def __missing__(self, pair: object) -> str:
        listed = ", ".join(f"{a} - {b}" for a, b in self)
        match pair:
            case (str(a), str(b)) if (b, a) in self:
                raise NoSuchName(f"no comparison {a} - {b}; there is {b} - {a}, with the signs the other way round")
            case (str(a), str(b)):
                raise NoSuchName(f"no comparison {a} - {b}; there is {listed or 'none'}")
        raise NoSuchName(f"{pair!r} is not a pair of groups, as in verdicts[a, b]; there is {listed or 'none'}")


def no_variant(name: object, known: tuple[str, ...]) -> NoSuchName:
    """Make the error for a variant that an experiment does not have."""
    return NoSuchName(f"no variant {name!r}; {did_you_mean(str(name), known)}")
