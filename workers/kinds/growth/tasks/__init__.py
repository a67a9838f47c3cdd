"""A catalogue of tasks, one file each."""
