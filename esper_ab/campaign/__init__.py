"""The way from a request to a directory with an answer, for one experiment or several."""
