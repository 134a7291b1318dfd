"""cells.csv: one row for each run that was begun, columns as others parse them."""

from reports.cells_csv.columns import COLUMNS
from reports.cells_csv.csv_text import column_of, csv_text
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.runs.runs import codes


def render_csv(study: Study) -> str:
    """The whole file; empty where a column is unknown."""
    return csv_text(COLUMNS, ([value_in(study, run, column) for column in COLUMNS] for run in study.started))


def value_in(study: Study, run: Summary, column: str) -> object:
    """What a run has in one column; None where it is unknown."""
    if column == "study":
        return study.header["study"]
    if column == "limit":
        return run.limit.code if run.limit else None
    return codes(run, ";") if column == "caveats" else column_of(run, column)
