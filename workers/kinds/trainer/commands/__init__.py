"""The trainers' programs, started as child processes."""
