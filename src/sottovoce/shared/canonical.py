"""The one form of a public document: canonical JSON, for fingerprints and for the wire."""

import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value, for fingerprints and for the wire."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
