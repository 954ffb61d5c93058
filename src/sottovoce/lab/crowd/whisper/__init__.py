"""Many devices and one ``whisper`` learner at once, compiled.

tables (mechanisms, and answers that wait) → people (who come, and what they answer) → play.
"""
