"""BLIND: stores and counts reports; never sees raw data. It works without the device installed.

Its modules are internal: what is public are ``sottovoce serve`` and the HTTP interface.
"""
