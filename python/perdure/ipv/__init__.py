"""In-place versioning: which data a loop carries, and whether hooks keep to their rules."""
