"""Check the promise of ε-LDP on the code that runs: exactly where that can be done, and by attack.

claims (who promises what) → cases (hard pairs of people, hostile releases) → mechanism (the real
device, or one of your own) → attack (choose an event on one half of the reports) → bounds (bound ε
on the other half) → run (all of it, on several cores) → picture.

adaptive plays the whole protocol; faults breaks devices on purpose, to see that they are caught.
"""
