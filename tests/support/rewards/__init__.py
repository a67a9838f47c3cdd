"""Facts for rewards, and rewards that misbehave."""
