"""Starts the bridge in the environment that uv made for this bundle."""

import sys

from bridge.__main__ import main

sys.exit(main())
