"""One thread per test process, as a worker has: tiny tensors gain nothing from more, and a busy machine loses much."""

import torch

torch.set_num_threads(1)
