"""A custodian's logged rows: each is privatised once, on this machine, and sent as a report.

source (CSV or Parquet) → rows → one device per row → journal → server. Raw values go no further
than the device: the journal holds reports, counts and hashes.
"""
