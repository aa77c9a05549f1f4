"""Which tests are near a change."""

from tests.near import imported_modules, module_of, near


def test_a_change_is_near_the_tests_that_import_it() -> None:
    groups, verdict = (f"tests/mcmc/estimate/test_{name}.py" for name in ("groups", "verdict"))
    tests = [groups, verdict, "tests/test_near.py"]
    assert near(["mcmc/estimate/verdict.py"], tests) == [verdict]
    assert near(["tests/near.py", "cli/main.py"], tests) == ["tests/test_near.py"]
    assert near([groups, "mcmc/estimate/verdict.py"], tests)[0] == groups


def test_names_of_modules() -> None:
    assert module_of("mcmc/chain/__init__.py") == "weald.mcmc.chain"
    assert module_of("tests/near.py") == "tests.near"
    source = "import numpy\nfrom weald.mcmc import contract\nfrom .near import x\n"
    assert list(imported_modules(source)) == ["numpy", "weald.mcmc", "weald.mcmc.contract"]
