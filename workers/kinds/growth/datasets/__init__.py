"""The data of tasks: what is in the package, what is fetched, how a task describes it."""
