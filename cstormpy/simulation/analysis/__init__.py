"""Analysis of diagrams by exact derivatives: linear models, operating points, gradients of a run's cost, tuning."""

from __future__ import annotations
