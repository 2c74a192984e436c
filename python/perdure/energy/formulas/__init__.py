# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of expected time and energy, and the simulation that checks them."""
