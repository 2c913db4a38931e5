"""Hands what participants see to the store, and reads it back."""
