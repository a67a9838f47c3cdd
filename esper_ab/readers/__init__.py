"""What lies in files and directories becomes observations, tables or a status."""
