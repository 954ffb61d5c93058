"""The paper's Algorithms 2 and 3."""

from sottovoce.estimate.ldpmab.book import LdpmabBook
from sottovoce.estimate.ldpmab.layouts import LdpmabLayouts

begin, resume, past_releases = LdpmabBook.begin, LdpmabBook.from_table, LdpmabLayouts

__all__ = ["begin", "past_releases", "resume"]
