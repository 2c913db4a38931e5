"""Membership in rooms (XEP-0045): entering, staying, sending, receiving, coming back."""
