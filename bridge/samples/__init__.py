"""The set `samples`: a few tools that have nothing to do with the room.

They are written as anybody's would be: of the bridge they import the toolkit, and nothing else.
"""

from bridge.samples import clock, questions, weather, words
from bridge.toolkit import Toolset

TOOLSET = Toolset.of_modules("samples", words, clock, questions, weather)
"""All of them, in the order in which they are listed."""
