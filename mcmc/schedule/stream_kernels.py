"""Which kernels refine a stream, by the writer or by workers: resolved, and refused in a sentence.

A stream shows what one chain draws, for ever: its kernels are exact, need no other chain, and reach
every partition. A sweep of Gibbs sampling is bounded, so that a round does not grow with the
stream.
"""

from collections.abc import Mapping

from weald.treecore.errors import ParameterError
from weald.treecore.prior import PartitionPrior

from .kernels import KERNELS, Kernel, gibbs_on, kernels_named

__all__ = ["require_runnable", "stream_kernels"]

# No mixture of kernels that was tried does better on real tables for the same time.
_AUTO = ("tgmcmc", "gibbs")
_GIBBS_ATOMS = 1000
# Kernels whose law is a product over blocks.
_PRODUCT = ("slice", "gibbs-supc")


def stream_kernels(
    names: str,
    kernels: Mapping[str, Kernel] | None = None,
    auto: tuple[str, ...] = _AUTO,
) -> tuple[Kernel, ...]:
    """Kernels of a comma-joined list of names, in order; those of mixtures unless others are given.

    Raises ParameterError for an unknown one, and for one that no stream can have.
    """
    mixture = kernels is None
    found = kernels_named(names, KERNELS if kernels is None else kernels, {"auto": auto})
    for kernel in found:
        if kernel.guided:
            raise ParameterError(
                f"{kernel.name} takes its guides from other chains, and a stream has one: "
                "choose other kernels (refinement.kernels)"
            )
        if kernel.flag != "exact":
            raise ParameterError(
                f"{kernel.name} is {kernel.flag}: what a stream shows rests on exact kernels only "
                "(refinement.kernels)"
            )
    bounded = gibbs_on(_GIBBS_ATOMS)
    return tuple(bounded if mixture and each.name == bounded.name else each for each in found)


def require_runnable(names: str, prior: PartitionPrior) -> None:
    """Raise ParameterError where these kernels of mixtures cannot run with the prior."""
    refused = [each.name for each in stream_kernels(names) if each.name in _PRODUCT]
    if refused and not prior.seating(2, 2).is_product:
        raise ParameterError(
            f"{refused[0]} needs a prior of product form (dp, pitman-yor, nggp), not {prior.name}: "
            "choose other kernels (refinement.kernels)"
        )
