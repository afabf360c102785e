"""Mathematics of signals: limits, switches, waves, noise, tables, delays, linear systems, estimators, on plain numbers.

Functions of floats and of arrays, element by element; symbols will do too, so that what a block computes by them can be
traced.
"""
