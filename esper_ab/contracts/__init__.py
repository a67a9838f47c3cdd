"""The only part of esper_ab that workers import: messages, records, settings, errors, catalogues.

No module imports torch. Only `rng` uses numpy, and `--help` and `status` do not load `rng`. Types and codecs do no
I/O; modules such as `files_below` and `own_packages` handle files and processes.
"""
