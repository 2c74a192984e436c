# SPDX-License-Identifier: BSD-3-Clause
"""`python -m perdure`: the same as the command `perdure`."""

from perdure.start import main

if __name__ == "__main__":
    main()
