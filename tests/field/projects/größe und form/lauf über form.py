"""A script whose path has spaces and letters outside ASCII."""

import json
import sys
from pathlib import Path

from maße import fläche

_, seed, länge, out = sys.argv
Path(out, "ergebnis.json").write_text(json.dumps({"fläche": fläche(int(seed), float(länge))}), encoding="utf-8")
