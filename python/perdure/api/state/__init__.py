# SPDX-License-Identifier: BSD-3-Clause
"""States of programs as text and blocks: what is given back equals what was given.

Nothing is pickled: a type is named by a word of a fixed list, and reading runs none of the code
that a text names. Needs numpy, and neither torch nor the library.
"""
