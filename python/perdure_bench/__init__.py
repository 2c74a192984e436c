# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench` and `perdure demo`, in a clone: benchmark programs are run, their facts shown
against their targets. Not in the installed package, which imports nothing from here.
"""
