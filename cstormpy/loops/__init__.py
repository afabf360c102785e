"""Closed mechanisms: closure and assembly of their loops, their dynamics and its sensitivities."""
