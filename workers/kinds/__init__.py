"""One folder per kind of task, found by its name; `kind` in each has what a worker asks."""
