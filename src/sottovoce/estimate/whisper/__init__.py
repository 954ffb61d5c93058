"""The project's own method, and the default: contrasts inside a bin, learned from few bits."""
