"""The part of quota that runs inside each broker: counts, reports, obeys grants, falls back when the master is gone."""
