"""The right form of the protocol keeps every promise, and each wrong form is found."""

from pathlib import Path

import pytest

from tests.protocol.spin import FORMS, SHORT, Form, Model, numbers
from tests.servers.fixtures import TOOK_PART, taking_part

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The program that Spin makes of the model."""
    with taking_part(request.config, "Spin"):
        built = Model(tmp_path_factory.mktemp("spin"))
        request.config.stash[TOOK_PART]["Spin"] = built.version
        return built


@pytest.mark.parametrize("scene", SHORT)
def test_the_protocol_keeps_its_promises(model: Model, scene: str) -> None:
    verdict = model.search(SHORT[scene])
    assert not verdict.broken, "\n".join([verdict.broken, *verdict.steps])
    # Bounds under which little can happen would show nothing.
    assert verdict.states > 10_000


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_wrong_form_is_found(model: Model, form: Form) -> None:
    verdict = model.search(form.bounds, form.name)
    assert verdict.broken == form.promise
    assert verdict.steps


def test_every_form_and_promise_is_listed() -> None:
    assert sorted(numbers()) == sorted(form.name for form in FORMS)
    document = (ROOT / "docs" / "guarantees.md").read_text()
    assert all(f"`{form.promise}`" in document for form in FORMS)
