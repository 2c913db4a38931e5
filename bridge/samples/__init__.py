"""The set `samples`: a few tools that have nothing to do with the room.

They are written like tools of another package: of the bridge they import only the toolkit.
"""

from bridge.samples import clock, questions, weather, words
from bridge.toolkit import Toolset

TOOLSET = Toolset.of_modules("samples", words, clock, questions, weather)
"""The set of all sample tools, in the order in which they are listed."""
