"""What a script imports as `wandb` if it reports its outcome that way."""
