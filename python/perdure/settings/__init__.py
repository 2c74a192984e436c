# SPDX-License-Identifier: BSD-3-Clause
"""Perdure's settings: one list of keys, of which the environment is made for jobs and verbs.

A key is a variable of the library, PERDURE_X, and x in a file of settings. Programs read variables
only; `perdure` turns files into them, for its own verbs and for what they start.
"""
