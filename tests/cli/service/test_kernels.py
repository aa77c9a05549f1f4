"""The process that compiles sweeps beside the one that compiles all else."""

import subprocess
import sys

from weald.cli.service.kernels import _refined

CHILD = """
from weald.cli.service.kernels import _interpret_all_but, _refined, _sweeps
_interpret_all_but(_sweeps())
chain, _ = _refined("gaussian")
from weald.mcmc.chain.arrival import arrive
from weald.treecore.guide.guide import _raise_top
assert all(each.overloads for each in _sweeps())
assert not arrive.overloads and not _raise_top.overloads
print(chain.labels.tolist())
"""


def test_it_comes_to_the_same_and_compiles_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(_refined("gaussian")[0].labels.tolist())
