"""What a first demo waits for: kernels, which others compile; and what it shows meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from weald.cli.service.kernels import are_kept, compiling
from weald.cli.terminal.output import note
from weald.cli.terminal.progress import step

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings
    from weald.mcmc.settings import ModelSettings
    from weald.stream.source.source import Source

    from .streams import BundledStream

__all__ = ["compiling_beside", "tell_first_clusters"]

POLL_SECONDS = 0.1
FIRST_RECORDS = 400


@contextmanager
def compiling_beside(
    settings: Settings, bundled: BundledStream
) -> Iterator[Callable[[Source], None]]:
    """Compile beside what follows; yield what joins the source's group and waits for the kernels.

    The embedded broker lets three seconds pass for other members to come, as others do. What the
    trees alone make of the first records is told as soon as insertion is compiled.
    """
    from weald.stream.model.model import chosen_family

    family, params = chosen_family(settings.model, settings.schema, settings.features)
    if are_kept():
        yield lambda _: None
        return
    with compiling(family) as others:

        def wait(source: Source) -> None:
            with step("compiling the kernels (long only the first time)"):
                while others[0].poll() is None and not source.assignment():
                    source.poll(POLL_SECONDS)
                tell_first_clusters(settings.model, bundled, (family, params))
                for other in others:
                    other.wait()

        yield wait


def tell_first_clusters(
    model: ModelSettings, bundled: BundledStream, chosen: tuple[str, dict[str, object]]
) -> None:
    """Insert the first records by kernels that the other process has compiled, and say what came.

    A kernel that it is compiling just now is waited for.
    """
    import numpy as np

    from weald.mcmc.chain.chain import MixtureChain
    from weald.stream.model.model import prior_of
    from weald.treecore.family import FAMILIES

    names = [feature.name for feature in bundled.features]
    records = islice(bundled.records(), FIRST_RECORDS)
    values = np.array([[record[name] for name in names] for record in records])
    family = FAMILIES[chosen[0]].build(chosen[1], values)
    chain = MixtureChain.start(family, prior_of(model), seed=model.seed)
    chain.insert(values)
    sizes = np.sort(np.unique_counts(chain.labels).counts)[::-1]
    note(
        f"first clusters: {len(sizes)} of {len(values)} records, as the trees place them; the "
        f"largest have {', '.join(map(str, sizes[:3]))}. What refines them is being compiled"
    )
