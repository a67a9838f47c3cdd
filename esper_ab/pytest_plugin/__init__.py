"""The plugin of pytest: where the assertions of `esper_ab.testing` keep their runs, and their answers in reports."""
