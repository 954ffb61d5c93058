"""Many devices and one ``whisper`` learner at once, compiled.

tables (mechanisms, and answers that wait) → draws (one signed subset) → people (who come, and what
they answer) → policy.
"""
