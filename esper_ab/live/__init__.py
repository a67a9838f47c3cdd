"""Views of an experiment while it runs. Subscribers only: nothing here is on the training path or loads numpy."""
