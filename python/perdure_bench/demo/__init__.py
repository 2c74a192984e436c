"""The verb `perdure demo`: a solver survives SIGKILL, and what its protections cost."""
