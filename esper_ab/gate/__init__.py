"""`esper-ab gate`: is a change to the code worse? A plan that is fitted to minutes, and its answer."""
