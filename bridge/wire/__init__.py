"""XML streams and SCRAM, for the bridge and for the sandbox, without I/O."""
