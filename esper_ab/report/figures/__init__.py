"""The figures of reports, one file per subject, and the style that they share."""
