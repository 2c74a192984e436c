# SPDX-License-Identifier: BSD-3-Clause
"""Memory traces of programs: record, import, look at."""
