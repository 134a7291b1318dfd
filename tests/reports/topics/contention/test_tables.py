"""HTTP against gRPC as a reader sees it: tables, section, sentence, and the record in study.json."""

import json
from pathlib import Path

from reports.__main__ import main
from reports.published_figures.figures import published_figures
from reports.study.study import load_study
from reports.topics.contention.arms import cases
from reports.topics.contention.conclusion import arms_table, evidence_table, record, verdict_said, verdicts
from reports.topics.report import build_page
from tests.reports.answers import told
from tests.reports.builder import Book
from tests.reports.contention_book import BY_CONNECTIONS, a_study, arms, studied
from tests.reports.open_load import notes_at, texts
from tests.reports.strangers import GRPC, a_book, run, stranger


def test_the_arms_table_has_the_kernels_count_and_what_was_published(tmp_path: Path) -> None:
    study = studied(arms(a_study(), BY_CONNECTIONS), tmp_path)
    (verdict,) = verdicts(study)
    table = arms_table(study, verdict, published_figures(study))
    rows = texts(table)
    assert rows[0] == [
        *("emulated-http, own connections", "42.0 (40.7–43.3)", "43.6", "1.00×"),
        *("16", "per-user", "1", "link"),
    ]
    assert rows[2][1:] == ["7.40 (7.18–7.62)", "7.5", "0.18×", "1", "shared", "1", "connections"]
    assert rows[4][2] == "–"
    assert notes_at(table, 0, 2) == ["published: Step 7 results on an A100, 2026-02-20: 60 requests, one run"]
    assert notes_at(table, 0, 0) == []
    assert evidence_table(verdict).caption.startswith("Verdict: connections. Give gRPC a connection")


def test_the_verdict_comes_first_and_has_its_section_and_its_record(tmp_path: Path) -> None:
    study = studied(arms(a_study(), BY_CONNECTIONS), tmp_path)
    (verdict,) = verdicts(study)
    assert told(study)[0] == f"What slows gRPC: Too few TCP connections. {verdict_said(verdict)}"
    page = build_page(study, "results/contention")
    (section,) = [it for it in page.sections if it.heading == "HTTP against gRPC"]
    assert (section.brief, len(section.tables)) == (True, 3)
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    (kept,) = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))["contention"]
    assert kept == json.loads(json.dumps(record(verdict)))
    assert (kept["cause"], kept["case"]["users"], kept["arms"][2]["tcp_connections"]) == (
        "connections",
        16,
        1,
    )
    assert kept["evidence"][0]["says"] == {"connections": "for", "client-cpu": "against"}
    for name in ("summary.md", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "Too few TCP connections." in text
        assert "gRPC gets 7.40 (7.18–7.62) images/s on one connection" in text


def many(**endpoints: dict[str, str]) -> Book:
    """Endpoints of a user's own with 16 users, by one connection for all and by one for each."""
    book = a_book()
    for name, planned in endpoints.items():
        told = stranger(book, name, **planned)
        for channels in ("shared", "per-user"):
            run(book, name, told | {"channels": channels, "variant": channels}, level=16)
    return book


def test_a_case_is_of_one_model_of_one_server(tmp_path: Path) -> None:
    old, new = {"server": "old"}, {"server": "new"}
    study = load_study(
        many(oh=old, og=old | GRPC, nh=new, ng=new | GRPC, lone=GRPC | {"model": "other"}).write(tmp_path)
    )
    assert [str(case) for case, _ in cases(study)] == [
        "ng / nh fp16, batch 1, 16 users",
        "og / oh fp16, batch 1, 16 users",
    ]
    assert [{run.endpoint for arm in arms.values() for run in arm.planned} for _, arms in cases(study)] == [
        {"nh", "ng"},
        {"oh", "og"},
    ]


def test_of_two_endpoints_by_one_protocol_none_is_an_arm(tmp_path: Path) -> None:
    assert list(cases(load_study(many(a={}, b={"codec": "v2-json"}, c=GRPC).write(tmp_path)))) == []
