"""Views of an experiment while it runs. They only observe: nothing here affects training."""
