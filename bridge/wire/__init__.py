"""What the bridge and the sandbox share of the wire, without I/O."""
