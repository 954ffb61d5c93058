"""The server's database: the log of reports, and what was made of it, in SQLite or PostgreSQL.

Nearly every query is written once, for both (``log``); what differs is in ``sqlite`` and
``postgres``. The schema is made by the numbered files in ``migrations``.
"""
