"""Descriptions of studies: what they mean, and how what is none is refused."""

from pathlib import Path

import pytest

from wirebound.errors import WireboundError
from wirebound.study.spec import Grid, parse_spec, read_spec

LEAST = """
name = "small"
[[script]]
name = "net"
program = ["train.py", "--batch", "{batch}"]
[[grid]]
"""


def test_defaults() -> None:
    """A name, a script and a grid are enough."""
    spec = parse_spec(LEAST)

    assert (spec.where, spec.repeats, spec.timeout_s, spec.cores, spec.warmup) == (
        "lab", 1, 600.0, 1, 3,
    )  # fmt: skip
    assert (spec.baseline.alone, spec.baseline.apart, spec.bench.enabled) == (True, True, True)
    assert spec.grid == (Grid(),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[grid]]", "[[grid]]\nworker = [2]",
         "unknown key 'worker' in grid 1, expected one of scripts, workers, link, bucket_cap, "),
        ('name = "small"', 'nam = "small"', "unknown key 'nam', expected one of name, script"),
        ("[[grid]]", "[[grid]]\n[bench]\nsize = 1", "unknown key 'size' in bench, expected"),
        ("[[grid]]", '[[grid]]\nworkers = [2, "3"]',
         "grid 1.workers 2: expected `int`, got `str`"),
        ("[[grid]]", "[[grid]]\nworkers = 2", "grid 1.workers: expected `array`, got `int`"),
        ("[[grid]]", "[[grid]]\nworkers = [0]", "grid 1: workers is 0, expected 1 to 1000000"),
        ("[[grid]]", "[[grid]]\nbatch = []", "grid 1: batch is an empty list"),
        ("[[grid]]", '[[grid]]\nlink = ["10"]', "grid 1: link '10': a bare number has no unit"),
        ("[[grid]]", '[[grid]]\nlink = ["1bps"]', "a link of 1 bit/s cannot be made"),
        ("[[grid]]", '[[grid]]\nbucket_cap = ["0B"]', "grid 1: bucket_cap 0B: expected a size"),
        ("[[grid]]", '[[grid]]\nscripts = ["x"]', "grid 1: no script 'x', expected one of net"),
        ("[[grid]]", "", "no grid, expected at least one [[grid]]"),
        ('"{batch}"', '"{size}"',
         "script net: unknown placeholder {size}, expected one of {bucket_cap_mb}, {bucket_cap}"),
        ('["train.py"', '["-m", "train"', "script net: program begins with no script"),
        ('name = "net"', 'name = "../net"', "script '../net': expected letters"),
        ('name = "small"', 'name = "small"\nrepeats = 0', "repeats is 0, expected 1 to 1000"),
        ('name = "small"', 'name = "small"\ntimeout = "0s"', "timeout 0s: expected a time > 0"),
        ('name = "small"', 'name = "small"\nwhere = "moon"', "where: invalid enum value 'moon'"),
        ("[[grid]]", '[[grid]]\n[bench]\nbudget = "1"', "bench: budget '1': a bare number"),
        ("[[grid]]", '[[grid]]\n[bench]\nkinds = ["x"]', "bench.kinds 1: invalid enum value 'x'"),
        ('name = "small"', "name = ", "expected TOML such as"),
    ],
)  # fmt: skip
def test_what_is_no_study_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the file and the place."""
    path = tmp_path / "study.toml"
    path.write_text(LEAST.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(WireboundError) as caught:
        read_spec(path)

    assert caught.value.message.startswith(f"{path}: ")
    assert message in caught.value.message


def test_names_of_scripts_differ() -> None:
    """Ids are made of them."""
    script = LEAST[LEAST.index("[[script]]") : LEAST.index("[[grid]]")]
    with pytest.raises(WireboundError, match="script net: named twice"):
        parse_spec(LEAST.replace("[[grid]]", f"{script}[[grid]]"))


def test_links_are_set_in_the_lab_only() -> None:
    """Elsewhere `none` is all there is."""
    elsewhere = LEAST.replace('name = "small"', 'name = "small"\nwhere = "hosts"')
    assert parse_spec(elsewhere.replace("[[grid]]", '[[grid]]\nlink = ["none"]')).where == "hosts"
    with pytest.raises(WireboundError, match="link 1Gbps: cannot be set on hosts, expected none"):
        parse_spec(elsewhere.replace("[[grid]]", '[[grid]]\nlink = ["1Gbps"]'))
