"""The tables of reports, one file per subject."""
