"""Endpoints of other names: a candidate's `emulated-http` is compared as the base's `onnx-http`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reports.cells_csv.rows import Row, SideError
from reports.cells_csv.sides import Side

OPTION = "--map"


class Rule(NamedTuple):
    """A name, or the start of names, of a candidate's endpoints, and what the base has in its place."""

    candidate: str
    base: str

    def __str__(self) -> str:
        return f"{self.candidate}={self.base}"

    def means(self, name: str) -> bool:
        """Whether it is of that endpoint: by the whole name, or by its start where a word ends there."""
        rest = name.removeprefix(self.candidate)
        return name == self.candidate or (len(rest) < len(name) and not rest[0].isalnum())


class Mapped(NamedTuple):
    """The sides with the candidates' endpoints renamed; `renamed` is by candidate, old name to new one."""

    sides: tuple[Side, ...]
    rules: tuple[Rule, ...]
    renamed: Mapping[str, Mapping[str, str]]


def rules_of(texts: Iterable[str]) -> tuple[Rule, ...]:
    """What the option says, `staging=prod,mine=theirs`, given once or several times. Raises SideError."""
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    rules = [Rule(*(name.strip() for name in part.partition("=")[::2])) for part in parts]
    for part, rule in zip(parts, rules, strict=True):
        if not rule.candidate or not rule.base:
            raise SideError(f"{OPTION} {part}: give CANDIDATE=BASE, e.g. staging=prod.")
    twice = [name for name, count in Counter(rule.candidate for rule in rules).items() if count > 1]
    if twice:
        raise SideError(f"{OPTION}: maps {twice[0]} twice: leave one out.")
    return tuple(rules)


def mapped(sides: Sequence[Side], rules: Sequence[Rule]) -> Mapped:
    """The sides with the rules applied to each candidate. Raises SideError where a rule maps nothing."""
    base, *candidates = sides
    renamed = {side.role: renames(side, rules) for side in candidates}
    for rule in rules:
        _check(rule, base, candidates, renamed)
    for side in candidates:
        _check_merged(side, renamed[side.role], rules)
    changed = [with_names(side, renamed[side.role]) for side in candidates]
    return Mapped((base, *changed), tuple(rules), renamed)


def endpoints_of(side: Side) -> list[str]:
    """The names of its endpoints, in order."""
    return list(dict.fromkeys(row.endpoint for row in side.rows))


def renames(side: Side, rules: Iterable[Rule]) -> dict[str, str]:
    """The new name of each endpoint that a rule is of; the longest rule that is of it holds."""
    found = {}
    for name in endpoints_of(side):
        if fit := [rule for rule in rules if rule.means(name)]:
            rule = max(fit, key=lambda it: len(it.candidate))
            found[name] = rule.base + name.removeprefix(rule.candidate)
    return found


def _check(
    rule: Rule, base: Side, candidates: Sequence[Side], renamed: Mapping[str, Mapping[str, str]]
) -> None:
    """Raises SideError where it matches no endpoint of a candidate, or makes none that the base has."""
    theirs = dict.fromkeys(name for side in candidates for name in endpoints_of(side))
    meant = [name for name in theirs if rule.means(name)]
    if not meant:
        who = f"{candidates[0].label}, which has" if len(candidates) == 1 else "the candidates, which have"
        raise SideError(
            f"{OPTION} {rule}: matches no endpoint of {who} {', '.join(theirs)}: name one of these."
        )
    made = sorted({names[name] for names in renamed.values() for name in meant if name in names})
    if not set(made) & set(endpoints_of(base)):
        raise SideError(
            f"{OPTION} {rule}: makes {' and '.join(made)}, which {base.label} does not have: "
            f"name one of its endpoints, {', '.join(endpoints_of(base))}."
        )


def _check_merged(side: Side, names: Mapping[str, str], rules: Sequence[Rule]) -> None:
    """Raises SideError where two endpoints of a candidate would have one name."""
    after = Counter(names.get(name, name) for name in endpoints_of(side))
    for merged in (name for name, count in after.items() if count > 1):
        those = [name for name in endpoints_of(side) if names.get(name, name) == merged]
        raise SideError(
            f"{OPTION} {','.join(map(str, rules))}: makes {' and '.join(those)} of {side.label} "
            f"one endpoint, {merged}: map each to a name of its own."
        )


def with_names(side: Side, names: Mapping[str, str]) -> Side:
    """The same with endpoints renamed, wherever a comparison looks one up by its name."""
    header = dict(side.header)
    if "endpoints" in header:
        header["endpoints"] = {names.get(name, name): about for name, about in header["endpoints"].items()}
    return replace(
        side,
        rows=tuple(_renamed(row, names) for row in side.rows),
        header=header,
        stand_ins={names.get(name, name): text for name, text in side.stand_ins.items()},
    )


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    new = names.get(row.endpoint)
    if new is None:
        return row
    own, rest = f"{row.endpoint}/", row.cell.partition("/")[2]
    return replace(row, endpoint=new, cell=f"{new}/{rest}" if row.cell.startswith(own) else row.cell)


def mapping_said(made: Mapped) -> Iterator[str]:
    """Which endpoint is compared with which of another name, a sentence for each candidate."""
    for side in made.sides[1:]:
        if names := made.renamed[side.role]:
            told = ", ".join(f"{old} with {new}" for old, new in names.items())
            yield f"Endpoints of other names are compared by {OPTION}: of the {side.role} {told} of the base."


def mapping_options(made: Mapped) -> list[str]:
    """The options that say it again on a command line."""
    return [word for rule in made.rules for word in (OPTION, str(rule))]
