"""Types and codecs shared by the control plane and the data plane: the only part of esper_ab that workers import.

No module imports torch. Only `rng` uses numpy, and `--help` and `status` do not load `rng`. Types and codecs do no
I/O; modules such as `files_below` and `own_packages` handle files and processes.
"""
