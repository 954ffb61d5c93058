"""PUBLIC: what both sides may know. Standard library only.

Its modules are internal: import what is public from ``sottovoce``.
"""
