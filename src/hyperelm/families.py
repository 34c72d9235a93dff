"""Families of algebras, such as the 512 sign tables, and their classes."""

from hyperelm._algebra.families import (
    FAMILIES,
    Copies,
    canonical_form,
    classes,
    known_names,
    members,
    returning_units,
    sign_table,
)

__all__ = ["FAMILIES", "Copies", "canonical_form", "classes", "known_names", "members", "returning_units", "sign_table"]
