"""The long description of the package: the README, without what shows and links only in the repository.

Everything else is in pyproject.toml. A package index resolves no relative path, and there is no public address of the
repository that the pictures could be shown from.
"""

import re
from pathlib import Path

from setuptools import setup

readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
readme = re.sub(r"^!\[[^\]]*\]\((?!https?://)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
readme = re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?://|#)[^)]*\)", r"\1", readme)

setup(long_description=readme, long_description_content_type="text/markdown")
