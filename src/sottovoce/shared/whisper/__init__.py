"""``whisper``, this project's method: its settings, questions, cells and mechanism."""

from sottovoce.shared.whisper.settings import Whisper

SETTINGS = Whisper
