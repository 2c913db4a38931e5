"""Being in rooms (XEP-0045): entering, staying, speaking, hearing, coming back."""
