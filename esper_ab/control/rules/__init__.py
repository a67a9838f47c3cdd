"""The rules of a running experiment: values in, values out. No socket, file, thread or clock is imported here."""
