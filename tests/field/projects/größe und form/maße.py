"""A module beside a script, with a name outside ASCII, like the folder of both."""

import random


def fläche(seed, länge):
    """Return a noisy area."""
    return länge**2 * (1 + 0.1 * random.Random(seed).random())
