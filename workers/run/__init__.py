"""One run: its episodes, evaluation and policy file."""
