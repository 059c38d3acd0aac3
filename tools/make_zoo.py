"""Make the model zoo's data files, or check that they are what this program makes.

    python tools/make_zoo.py            # write src/wirebound/workload/zoo_data/*.json
    python tools/make_zoo.py --check    # exit status 1 if a file differs

Needs torch (made with 2.13.0, CPU build); nothing is computed, all tensors are on the
meta device. wirebound itself reads the files and needs no torch.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import torch
from zoo.catalogue import CATALOGUE, Entry
from zoo.trace import trace

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "wirebound" / "workload" / "zoo_data"
NUMBERED = re.compile(r"^(\D*)(\d+)(\..*)$")
"""`h.3.ln_1` is layer `.ln_1` of block 3 among the `h.` blocks."""

Record = dict[str, Any]


def make(entry: Entry) -> str:
    """The text of one architecture's file."""
    with torch.device("meta"):
        targets = None if entry.targets is None else entry.targets()
        layers = trace(entry.build(), *entry.inputs(), targets=targets)
    head = {
        "title": entry.title,
        "arithmetic": entry.arithmetic,
        "sample": entry.sample,
        "published_parameters": entry.published_parameters,
        "published_source": entry.published_source,
    }
    lines = [json.dumps(block, separators=(",", ":")) for block in fold(layers)]
    return f'{json.dumps(head)[:-1]}, "blocks": [\n' + ",\n".join(lines) + "\n]}\n"


def fold(layers: list[Record]) -> list[Record]:
    """Layers as blocks, with equal neighbours written once: `h.{i}.ln_1`, 12 times."""
    blocks: list[Record] = []
    last_number = None
    for layer in layers:
        number, template = _template(layer)
        if blocks and number is not None and number == last_number:
            blocks[-1]["layers"].append(template)
        else:
            blocks.append({"first": number or 0, "repeat": 1, "layers": [template]})
        last_number = number
    folded: list[Record] = []
    for block in blocks:
        if folded and _continues(folded[-1], block):
            folded[-1]["repeat"] += 1
        else:
            folded.append(block)
    return folded


def _template(layer: Record) -> tuple[int | None, Record]:
    match = NUMBERED.match(layer["name"])
    if match is None:
        return None, layer
    prefix, number, _ = match.groups()

    def numbered(name: str) -> str:
        return name.replace(f"{prefix}{number}.", f"{prefix}{{i}}.", 1)

    parameters = [[numbered(name), shape] for name, shape in layer["parameters"]]
    return int(number), layer | {"name": numbered(layer["name"]), "parameters": parameters}


def _continues(run: Record, block: Record) -> bool:
    return bool(
        run["layers"] == block["layers"]
        and "{i}" in block["layers"][0]["name"]
        and block["first"] == run["first"] + run["repeat"]
    )


def main() -> int:
    """Write or check all files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    is_check = parser.parse_args().check
    texts = {f"{name}.json": make(entry) for name, entry in CATALOGUE.items()}
    if not is_check:
        DATA.mkdir(exist_ok=True)
        for name, text in texts.items():
            (DATA / name).write_text(text, encoding="utf-8")
        return 0
    found = {path.name: path.read_text(encoding="utf-8") for path in DATA.glob("*.json")}
    wrong = sorted(
        name for name in found.keys() | texts.keys() if found.get(name) != texts.get(name)
    )
    for name in wrong:
        sys.stderr.write(f"{DATA / name} is not what tools/make_zoo.py makes\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
