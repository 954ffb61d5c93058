"""Parts of a page that several of its sections have."""

from collections.abc import Sequence


def section(title: str, content: str) -> str:
    """Write a section under its title."""
    return f"<section><h2>{title}</h2>{content}</section>"


def table(head: Sequence[str], bodies: str) -> str:
    """Write a table that may be wider than the screen."""
    cells = "".join(f'<th scope="col">{each}</th>' for each in head)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead>{bodies}</table></div>'
