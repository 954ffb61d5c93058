"""What the software did at one time, kept so that a rebuild can show that it still does it."""
