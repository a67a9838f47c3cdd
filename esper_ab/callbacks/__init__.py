"""Callbacks for trainers of other libraries: they write a run's numbers to the file from which its outcome is read.

Each module needs the library that it is named after.
"""
