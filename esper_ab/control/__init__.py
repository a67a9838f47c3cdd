"""A plan becomes a finished journal: processes, sockets and files of a running experiment."""
