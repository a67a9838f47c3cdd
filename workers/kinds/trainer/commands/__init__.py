"""The child process that tries a trainer: a part of its rehearsal."""
