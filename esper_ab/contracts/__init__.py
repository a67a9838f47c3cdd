"""Types and codecs shared by the control plane and the data plane: the only part of esper_ab that workers import.

No torch. Only `rng` uses numpy, and the control plane does not load it for `--help` and `status`. Types and codecs do
no I/O; files and processes belong to modules such as `files` and `own_packages`.
"""
