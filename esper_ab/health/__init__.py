"""What `esper-ab doctor` checks, one file per subject, and limits that stop a command early."""
