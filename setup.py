"""Map the top-level rooms, and every folder below them, onto the ``weald`` namespace.

Everything else is declared in ``pyproject.toml``; the mapping is here because setuptools' own
package discovery cannot put a prefix before the folders that it finds.
"""

from setuptools import find_namespace_packages, setup

ROOMS = ("cli", "mcmc", "monitoring", "storage", "stream", "treecore")


def packages_of(room: str) -> list[str]:
    """Names of the room's package and of the packages inside it, as they are installed."""
    inner = find_namespace_packages(room, exclude=["*__pycache__*"])
    return [f"weald.{room}", *(f"weald.{room}.{name}" for name in inner)]


setup(
    packages=[package for room in ROOMS for package in packages_of(room)],
    package_dir={f"weald.{room}": room for room in ROOMS},
)
