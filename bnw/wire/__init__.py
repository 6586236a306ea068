"""Bytes: content ids, deterministic CBOR, frames, names, limits and errors.

Nothing here does I/O, reads a clock or draws randomness; `environment` only says what shape those have when a caller
hands them in. Every other layer may use this one, and it uses none of them.
"""
