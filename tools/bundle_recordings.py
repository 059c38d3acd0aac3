"""Write the bundled workloads: what one worker of each script of a study computes.

Run from the root of the repository: `python tools/bundle_recordings.py studies/two_cores`.
Of the runs in which two workers trained at once without communication, each script's median
one becomes a workload named `recorded-SCRIPT`.
"""

import sys
from pathlib import Path

import msgspec

from wirebound.study.archive import read_runs, read_study
from wirebound.study.predict import sources
from wirebound.workload.files import dumps

FOLDER = Path("src/wirebound/workload/bundled_data")
WORKERS = 2


def main(study: Path) -> None:
    """Write one file a script."""
    FOLDER.mkdir(exist_ok=True)
    known = sources(read_study(study), read_runs(study))
    configs = {config.script: config for config, _ in known.silent if config.workers == WORKERS}
    for script, config in configs.items():
        name = f"recorded-{script.replace('_', '-')}"
        workload = known.typical_workload(config)
        bundled = msgspec.structs.replace(workload, name=name, batch=config.batch)
        (FOLDER / f"{name}.json").write_bytes(dumps(bundled))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
