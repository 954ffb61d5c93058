"""A custodian's logged rows, privatised here, once each, and sent as reports.

source (CSV or Parquet) → rows → one device per row → journal → server. Nothing raw goes further
than the device: the journal holds reports, counts and hashes.
"""
