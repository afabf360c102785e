"""Ready diagrams: each module offers ``build(sim, **options)``, which returns a wired diagram."""
