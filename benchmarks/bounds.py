"""Figures beside their bounds, printed as they come; a benchmark exits 0 only where all of them hold."""

from __future__ import annotations

import operator

from reports.format import digits

WIDTHS = (62, 14, 14)
HOLDS = {"≤": operator.le, "≥": operator.ge, "=": operator.eq}


class Bounds:
    """The figures of one benchmark. A name that begins with a space belongs to the one above without."""

    def __init__(self, title: str) -> None:
        self._above = ""
        self._broken: list[str] = []
        self._untold: list[str] = []
        print(f"{title}\n\n{_row('', 'figure', 'bound')}")

    def at_most(self, name: str, figure: float | None, bound: float | None, unit: str = "") -> None:
        """A figure that must not exceed its bound, if it has one; one that was not read breaks it."""
        self._judge(name, figure, bound, unit, "≤")

    def at_least(self, name: str, figure: float | None, bound: float | None, unit: str = "") -> None:
        """A figure that must not fall short of its bound."""
        self._judge(name, figure, bound, unit, "≥")

    def exactly(self, name: str, figure: float | None, bound: float | None, unit: str = "") -> None:
        """A figure that must equal its bound."""
        self._judge(name, figure, bound, unit, "=")

    def between(self, name: str, figure: float, low: float, high: float, unit: str = "") -> None:
        """A figure that must lie between two bounds."""
        verdict = "holds" if low <= figure <= high else "BROKEN"
        self.verdict(name, f"{digits(figure)} {unit}", f"{digits(low)}–{digits(high)}", verdict)

    def ranged(self, text: str) -> None:
        """The range of the figure above."""
        print(_row("  over the repeats", text, ""), flush=True)

    def beside(self, name: str, figure: float | None, unit: str = "") -> None:
        """A figure for comparison, without a bound; one that was not read is left out."""
        if figure is not None:
            self._full(name)
            print(_row(name, f"{digits(figure)} {unit}", ""), flush=True)

    def unread(self, name: str) -> None:
        """A figure that could not be read, which breaks its bound whatever that is."""
        self._broken.append(self._full(name))
        print(_row(name, "not read", "") + "   BROKEN", flush=True)

    def verdict(self, name: str, figure: str, bound: str, verdict: str) -> None:
        """A figure that was judged elsewhere: `holds`, `BROKEN`, or another word where it cannot be told."""
        full = self._full(name)
        if verdict == "BROKEN":
            self._broken.append(full)
        elif verdict != "holds":
            self._untold.append(full)
        print(_row(name, figure, bound) + ("" if verdict == "holds" else f"   {verdict}"), flush=True)

    def _judge(self, name: str, figure: float | None, bound: float | None, unit: str, sign: str) -> None:
        if bound is None:
            self.beside(name, figure, unit)
        elif figure is None:
            self.unread(name)
        else:
            shown = f"{figure:,}" if sign == "=" else digits(figure)
            holds = HOLDS[sign](figure, bound)
            self.verdict(name, f"{shown} {unit}", f"{sign} {digits(bound)}", "holds" if holds else "BROKEN")

    def _full(self, name: str) -> str:
        """The name with that which it belongs to, as it is told away from its place."""
        if name.startswith(" "):
            return f"{self._above}: {name.strip()}"
        self._above = name
        return name

    def exit_code(self) -> int:
        """0 where every bound holds, 1 with what is broken, 3 where nothing is and some cannot be told."""
        untold = f"cannot be told: {'; '.join(self._untold)}" if self._untold else "every bound holds"
        print(f"\n{'broken: ' + '; '.join(self._broken) if self._broken else untold}")
        return 1 if self._broken else 3 if self._untold else 0


def _row(*texts: str) -> str:
    name, *others = texts
    return f"{name.rstrip():<{WIDTHS[0]}}" + "".join(
        f"{text.strip():>{w}}" for text, w in zip(others, WIDTHS[1:], strict=False)
    )
