"""esper_ab: which of these training conditions trains a better policy?"""

__version__ = "0.1.0"
