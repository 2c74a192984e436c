# SPDX-License-Identifier: BSD-3-Clause
"""Pages of HTML that need no other file: their frame, and pictures that follow its colours."""
