"""The paper's Algorithms 2 and 3: constants → estimates and bounds → decisions → next partition."""
