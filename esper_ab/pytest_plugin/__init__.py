"""The plugin of pytest, for `esper_ab.testing`: folders of runs, and answers in reports."""
