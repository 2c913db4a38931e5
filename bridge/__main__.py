"""`python -m bridge` is the command `xmpp-bridge`."""

import sys

from bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
