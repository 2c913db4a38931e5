"""Telling coding agents' programs how to start this bridge."""
