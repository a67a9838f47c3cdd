"""Puts tests/ on the path, so that every test finds `support`; no deadline per Hypothesis example.

On a busy machine a deadline measures the neighbours.
"""

import hypothesis

hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")
