"""`perdure bench`: runs the benchmark programs and shows their facts against their targets."""
