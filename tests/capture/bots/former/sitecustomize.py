"""What SleekXMPP 1.3.3, the last one, misses in Python 3.10 and later: it is put back."""

import collections
import collections.abc

for name in ("Callable", "Iterable", "Mapping", "MutableMapping", "MutableSet", "Set"):
    setattr(collections, name, getattr(collections.abc, name))
