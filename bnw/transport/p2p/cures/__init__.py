"""Subclasses of py-libp2p's classes, one module for each group of faults.

Each docstring names the faults, the version, how they show on the stock library, and when the module can go.
"""
