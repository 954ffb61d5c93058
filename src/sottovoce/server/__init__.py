"""BLIND: stores and counts reports; never sees raw data. It works without the device installed."""
