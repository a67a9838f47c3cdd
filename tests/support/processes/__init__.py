"""Child processes: started, waited for, left behind."""
