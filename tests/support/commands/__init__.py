"""Call commands of `esper-ab`, and check command lines."""
