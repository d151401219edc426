"""What a parser tells about a chunk: an array of so many whole numbers, and what stands where in it."""

POSITION, LINES, ROWS, ENTRIES, BAD, NAMED, FULL, STOPPED, BASE = range(9)
"""Bytes taken; lines, rows and entries made of them; bad records; slots named; whether there was no room for the pairs
of the next row; whether there was one bad record too many; entries of the chunks before."""
N_REPORT = 9
