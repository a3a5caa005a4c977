"""`python -m chattts_client` is the command `chattts`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
