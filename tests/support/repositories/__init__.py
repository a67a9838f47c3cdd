"""Git repositories for tests."""
