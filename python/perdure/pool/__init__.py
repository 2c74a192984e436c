"""`perdure pool`: what pools hold, and whether it is whole."""
