"""The paper's Algorithms 2 and 3."""

from sottovoce.estimate.ldpmab.book import LdpmabBook
from sottovoce.estimate.ldpmab.layouts import LdpmabLayouts as past_releases

begin, resume = LdpmabBook.begin, LdpmabBook.from_table

__all__ = ["begin", "past_releases", "resume"]
