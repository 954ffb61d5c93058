"""Check the built site: every link leads somewhere, and nothing comes from anybody else.

Run by make docs, on the HTML as a browser gets it.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script", "link", "img", "source", "iframe", "video", "audio", "embed", "object", "use"}


class Page(HTMLParser):
    """What one page has and where it points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the names and addresses of one element."""
        given = {name: value for name, value in attrs if value}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src", "data"):
            if name in given and (tag in LOADED or name == "href"):
                (self.loads if tag in LOADED else self.links).append(given[name])


def has(page: Page | None, name: str) -> bool:
    """Say whether a page has a place of that name; of what is no page, nothing is known."""
    return page is None or name in page.names


def troubles(site: Path) -> list[str]:
    """Return what is wrong, in words."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are absolute: it may be shown at any address
            continue
        for address in (*page.loads, *page.links):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{path}: loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.is_file():
                found.append(f"{path}: {address} leads nowhere")
            elif parts.fragment and not has(pages.get(target), unquote(parts.fragment)):
                found.append(f"{path}: {address} has no such place")
    return found


if __name__ == "__main__":
    wrong = troubles(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "every link of the site leads somewhere, and all is its own")
    sys.exit(bool(wrong))
