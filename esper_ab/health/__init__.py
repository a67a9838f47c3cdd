"""What `esper-ab doctor` looks at: one file per subject, each a function from facts to findings."""
