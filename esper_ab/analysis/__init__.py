"""A History becomes the observations of a verdict, with an audit of how they came about."""
