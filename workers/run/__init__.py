"""One run: its session, its episodes for training and evaluation, its policy's file."""
