"""``python -m cstormpy`` is ``cstorm``."""

import sys

from cstormpy.cli import main

sys.exit(main())
