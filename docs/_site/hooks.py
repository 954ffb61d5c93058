"""Files of the repository that are pages of the site, too, and links that lead to them.

A page is written to be read in the repository, where a link leads to any file. The site has the
pages only: a link to another file becomes its text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Where on the site a file outside of docs/ is."""

SOURCES = {page: source for source, page in PAGES.items() if source != "README.md"}

ADDRESS = re.compile(r"^(### `(\w+) /experiments/\{experiment\}(/\S+)`)$", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are written outside of docs/."""
    for page, source in SOURCES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead each link to where its file is on the site."""
    here = page.file.src_uri
    folder = posixpath.dirname(SOURCES.get(here, f"docs/{here}"))

    def lead(found: re.Match[str]) -> str:
        image, text, target, anchor = found.groups(default="")
        path = posixpath.normpath(posixpath.join(folder, target))
        on_site = path.removeprefix("docs/") if path.startswith("docs/") else PAGES.get(path)
        if on_site is None:
            return text
        return f"{image}[{text}]({posixpath.relpath(on_site, posixpath.dirname(here))}{anchor})"

    # The table of contents has room for the end of an address only.
    markdown = ADDRESS.sub(r'\1 { data-toc-label="\2 …\3" }', markdown)
    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if piece.startswith("```") else LINK.sub(lead, piece) for piece in pieces)
