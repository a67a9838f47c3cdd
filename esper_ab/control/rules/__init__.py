"""What follows from what happens in an experiment: values in, values out; no socket, file, thread or clock."""
