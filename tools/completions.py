# SPDX-License-Identifier: BSD-3-Clause
"""Makes what completes the words of `perdure` in bash, zsh and fish, where these look for it.

    python completions.py FOLDER     below which the files have their places in PREFIX/share

The shells ask the command itself, so that nothing here knows its verbs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from perdure.about import completion_script

PLACES = {
    "bash": "bash-completion/completions/perdure",
    "zsh": "zsh/site-functions/_perdure",
    "fish": "fish/vendor_completions.d/perdure.fish",
}


def main() -> None:
    for shell, place in PLACES.items():
        script = completion_script(shell)
        if shell == "zsh":  # the file is the function that zsh calls, so the first time too
            script += '\n_perdure_completion "$@"'
        path = Path(sys.argv[1]) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
