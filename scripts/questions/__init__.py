"""The three open questions of the plan for two policies, a file each: what is measured, and what follows from it."""
