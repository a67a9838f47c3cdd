"""What tasks share: their definition, splits and generated samples; data that ship with the package."""
