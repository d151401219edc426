"""What happens when the machine fails: every n-th allocation, read, write, sync, rename and close in turn.

``doubles`` puts itself between the package and the system and lets the n-th call of a kind fail, or ends the process
there. ``scenarios`` are what is done meanwhile: train, predict, save, load, learn. ``driver`` does each with
n = 1, 2, 3, ... until nothing fails any more, and looks afterwards: the exit code is a documented one, a file is the
old one or a new one, the model in memory is the one before or the complete one. ``disk`` replays the calls of a save
on a disk that loses what was not synced. ``python -m tests.faults`` runs all of it and prints the number of faults;
``python -m tests.faults.kills`` ends whole trainings by signals at random moments.
"""
