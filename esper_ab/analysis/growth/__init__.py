"""What only growth has in an analysis: the exam, floors, what parameters are worth. Pure."""
