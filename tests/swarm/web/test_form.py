"""The form that starts a study: its parts, its plan, and what is refused before anything starts."""

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from swarm.errors import UsageError
from swarm.options.model import known_options
from swarm.options.parse import add_options, parsed_as, resolve
from swarm.plan.matrix import Size
from swarm.web.form import StartForm, written
from swarm.web.page import LivePage, open_page
from tests.swarm.web_stand import a_book, web_ui

SIZE = Size(batches=(1, 4, 8), levels=(1, 8), iterations=10, seconds=2.5)
TARGET = "pytorch-http at gpu:8002"


@pytest.fixture(autouse=True)
def no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locust's web UI reads those of its process for its options."""
    monkeypatch.setattr("sys.argv", ["locust"])


def planned(form: Mapping[str, str]) -> tuple[str, Size]:
    """A plan of the options that are there; those are read as a study reads them."""
    options = resolve(argparse.Namespace(**{**vars(parsed()), **form}))
    return f"{options.repeats or 1} runs", SIZE.given(levels=options.levels)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(words)


def a_form(*words: str) -> StartForm:
    return StartForm(lambda: parsed(*words), lambda: {"Targets": [TARGET]}, planned)


def opened(base: str = "", login: bool = False) -> tuple[LivePage, FlaskClient]:
    ui = web_ui(base, login, runner=True)
    page = open_page(ui)
    page.form = a_form()
    assert ui.app is not None
    return page, ui.app.test_client()


def test_the_form_says_which_other_tools_are_told() -> None:
    options = resolve(parsed("--results-dir", "r", "--otlp-url", "http://c:4318", "--traceparent", "0.1"))
    assert written(options) == ["results and report in r/", "--traceparent 0.1", "--otlp-url http://c:4318"]
    assert written(resolve(parsed())) == ["results and report in results/"]


def test_every_option_between_two_starts_stands_in_one_part() -> None:
    parts = a_form().parts()
    assert [part.title for part in parts] == ["Targets", "Load", "Duration", "Output"]
    names = [field.name for part in parts for field in (*part.shown, *part.folded)]
    asked = [parsed_as(name) for name, option in known_options().items() if option.in_form]
    assert sorted(names) == sorted(asked)
    shown = [["cells"], ["batches", "levels", "rates"], ["study", "seconds", "repeats"], []]
    assert [[field.name for field in part.shown] for part in parts] == shown
    assert parts[0].facts == [TARGET]
    load = {field.name for field in parts[1].folded}
    assert {"batch_mix", "load_profile", "replay", "replay_speed", "split", "think", "together"} < load


def test_a_field_shows_what_the_command_line_has_set() -> None:
    parts = a_form("--study", "full", "--seconds", "7").parts()
    fields = {field.name: field for part in parts for field in part.shown}
    assert (fields["study"].value, fields["study"].choices) == ("full", ("quick", "full"))
    assert (fields["seconds"].value, fields["repeats"].value) == ("7", "")


def test_a_filled_form_has_a_plan_and_its_empty_fields_their_amounts() -> None:
    given = {"repeats": "3", "levels": "1,64", "user_count": "1", "results_dir": "/elsewhere"}
    amounts = {"iterations": "10", "seconds": "2.5", "warm_up": "12", "repeats": "1", "batches": "1,4,8"}
    amounts |= {"levels": "1,64"}
    assert a_form().judge(given) == {"plan": "3 runs", "fault": "", "amounts": amounts}


def test_a_bad_option_is_one_sentence_and_no_plan() -> None:
    judged = a_form().judge({"levels": "0"})
    assert judged["fault"].startswith("--levels 0: give whole numbers of users from 1 to 100,000")
    assert (judged["plan"], judged["amounts"]) == ("", {})


@pytest.mark.parametrize("base", ["", "/load"])
def test_the_page_has_the_form_and_tells_its_plan(base: str) -> None:
    page, client = opened(base)
    text = client.get(page.place).text
    assert text.count("<fieldset>") == 4
    assert f"<li>{TARGET}</li>" in text
    assert 'name="levels" value=""' in text
    assert f'data-locust="{base}/"' in text
    assert page.url.endswith(f":0{base}/inferswarm")
    told = client.post(f"{page.place}/plan", data={"repeats": "3"}).get_json()
    assert (told["plan"], told["fault"]) == ("3 runs", "")


@pytest.mark.parametrize("base", ["", "/load"])
def test_a_bad_option_starts_nothing_from_either_page(base: str, caplog: pytest.LogCaptureFixture) -> None:
    _, client = opened(base)
    with caplog.at_level(logging.INFO, "inferswarm"):
        given = {"levels": "0", "user_count": "1", "spawn_rate": "1"}
        told = client.post(f"{base}/swarm", data=given).get_json()
    assert told["success"] is False
    assert told["message"].startswith("--levels 0: give whole numbers")
    assert "inferswarm: --levels 0: give" in caplog.text


def test_while_a_study_runs_no_other_is_begun(tmp_path: Path) -> None:
    page, client = opened()
    page.begun(tmp_path / "step7-1", a_book().header)
    told = client.post("/swarm", data={"repeats": "1"}).get_json()
    assert told == {"success": False, "message": "A study is running: stop it, or wait for its report."}
    page.ended("complete", "", 0)
    assert page.refusal({"repeats": "1"}) == ""


@pytest.mark.parametrize("path", ["/swarm", "/inferswarm/plan"])
def test_behind_a_login_nobody_else_plans_or_starts(path: str) -> None:
    _, client = opened(login=True)
    reply = client.post(path, data={"levels": "0"})
    assert (reply.status_code, "levels" in reply.text) == (302, False)


@pytest.mark.parametrize("base", ["", "/load"])
def test_locusts_page_leads_to_the_form(base: str) -> None:
    _, client = opened(base)
    text = client.get(f"{base}/").text
    assert text.index(f'href="{base}/inferswarm"') < text.index('id="root"')


def test_a_form_without_a_study_plans_nothing() -> None:
    ui = web_ui()
    page = open_page(ui)
    assert ui.app is not None
    assert ui.app.test_client().post("/inferswarm/plan").get_json() == {}
    assert page.refusal({}) == ""


def test_what_the_plan_refuses_is_the_refusal() -> None:
    def refuse(_: Mapping[str, str]) -> tuple[str, Size]:
        raise UsageError("--cells zzz: matches no cell")

    form = StartForm(parsed, dict, refuse)
    assert form.refusal({}) == form.judge({})["fault"] == "--cells zzz: matches no cell"


def test_a_field_that_is_left_as_it_is_asks_for_what_the_command_line_does() -> None:
    """A list of choices shows its first one as selected: one of these is then the default."""
    fields = [field for part in a_form().parts() for field in (*part.shown, *part.folded)]
    assert [field.name for field in fields if field.choices and field.value not in field.choices] == []
    left = {field.name: field.value for field in fields if isinstance(field.value, str)}
    assert resolve(argparse.Namespace(**{**vars(parsed()), **left})) == resolve(parsed())
