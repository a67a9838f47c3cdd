"""A plan and observations become an answer: looks, numbers, one word, sentences. Pure."""
