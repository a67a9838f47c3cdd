"""One folder per kind of task, with its `KIND` in kind.py; kinds do not import each other, and nothing imports them."""
