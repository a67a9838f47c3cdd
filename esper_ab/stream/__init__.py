"""Candidates, one after the other, against the best so far, with an error rate over all of them."""
