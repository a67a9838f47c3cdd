"""W&B and TensorBoard: each follows the journal in a process of its own, which delays no training."""
