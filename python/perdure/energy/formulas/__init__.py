"""Formulas of expected time and energy, and the simulation that checks them."""
