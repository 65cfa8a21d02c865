"""``python -m fraglab`` and the command ``fraglab``: this process becomes the program, or the server of ``fraglab mcp``."""
from __future__ import annotations

import os
import sys

from fraglab._places import find_bin


def main() -> None:
    if sys.argv[1:2] == ["mcp"]:
        from fraglab.mcp import main as serve

        sys.exit(serve(sys.argv[2:]))
    try:
        program = find_bin()
        os.execv(program, ["fraglab", *sys.argv[1:]])
    except OSError as error:
        print(f"fraglab: {error}", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main()
