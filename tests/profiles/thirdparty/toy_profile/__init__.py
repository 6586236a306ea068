"""Profile plug-ins for a toy format: lines such as `toy NAME SCHEMA`, where SCHEMA is a content id or `-`.

The bad plug-ins claim lines that begin with their own name.
"""
