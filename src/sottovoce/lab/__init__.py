"""BOTH: the only room where raw data and reports meet, because everyone in it is simulated."""
