"""Jobs of GitHub: a runner of the steps of an action, and a server for its API."""
