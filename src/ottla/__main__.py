"""`python -m ottla` is `ottla`, for whoever has Python and this package and no idea where scripts are installed."""

from __future__ import annotations

from ottla.cli.main import main

main()
