# SPDX-License-Identifier: BSD-3-Clause
"""`perdure advise`: one light recorded run of a program as it is, then what to protect and how.

Recording (recording, memory, mappings, written) looks from outside; place measures commits where
pools are to be; judge decides, and is pure; view shows.
"""
