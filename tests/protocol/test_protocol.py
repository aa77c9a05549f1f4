"""The right form of the protocol keeps every promise, and each wrong form is found."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.protocol.scenes import MODELS, Form, Scenes
from tests.protocol.spin import Model
from tests.servers.fixtures import TOOK_PART, taking_part

ROOT = Path(__file__).parents[2]
SCENES = [(scenes, name) for scenes in MODELS for name in scenes.short]
FORMS = [(scenes, form) for scenes in MODELS for form in scenes.forms]


@pytest.fixture(scope="module")
def model_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Model]:
    """The program that Spin makes of the model in a file."""

    @cache
    def built_of(file: str) -> Model:
        (scenes,) = [each for each in MODELS if each.file == file]
        with taking_part(request.config, "Spin"):
            built = Model(scenes, tmp_path_factory.mktemp("spin"))
            request.config.stash[TOOK_PART]["Spin"] = built.version
            return built

    return built_of


@pytest.mark.parametrize(("scenes", "scene"), SCENES, ids=[name for _, name in SCENES])
def test_the_protocol_keeps_its_promises(
    model_of: Callable[[str], Model], scenes: Scenes, scene: str
) -> None:
    verdict = model_of(scenes.file).search(scenes.short[scene])
    assert not verdict.broken, "\n".join([verdict.broken, *verdict.steps])
    # Bounds under which little can happen would show nothing.
    assert verdict.states > 10_000


@pytest.mark.parametrize(("scenes", "form"), FORMS, ids=[form.name for _, form in FORMS])
def test_each_wrong_form_is_found(
    model_of: Callable[[str], Model], scenes: Scenes, form: Form
) -> None:
    verdict = model_of(scenes.file).search(form.bounds, form.name)
    assert verdict.broken == form.promise
    assert verdict.steps


@pytest.mark.parametrize("scenes", MODELS, ids=lambda scenes: scenes.file)
def test_every_form_and_promise_is_listed(scenes: Scenes) -> None:
    assert sorted(scenes.numbers()) == sorted(form.name for form in scenes.forms)
    document = (ROOT / "docs" / "guarantees.md").read_text()
    assert all(f"`{form.promise}`" in document for form in scenes.forms)
