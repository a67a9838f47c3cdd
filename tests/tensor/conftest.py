"""One thread per test process, as a worker has: tiny tensors gain nothing from more, and a busy machine loses much.

No deadline per Hypothesis example either: on a busy machine it measures the neighbours.
"""

import hypothesis
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")
