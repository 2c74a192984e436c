# SPDX-License-Identifier: BSD-3-Clause
"""`perdure pool`: what pools hold, and whether it is whole."""
