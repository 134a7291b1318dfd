"""Figures beside their bounds, printed as they come; a benchmark exits 0 only where all of them hold."""

from __future__ import annotations

from collections.abc import Callable

from reports.format import digits

WIDTHS = (46, 14, 14)


class Bounds:
    """The figures of one benchmark."""

    def __init__(self, title: str) -> None:
        self._broken: list[str] = []
        self._untold: list[str] = []
        print(f"{title}\n\n{_row('', 'figure', 'bound')}")

    def at_most(self, name: str, figure: float, bound: float, unit: str = "") -> None:
        """A figure that must not exceed its bound."""
        self._judge(name, figure, f"≤ {digits(bound)}", unit, figure <= bound)

    def at_least(self, name: str, figure: float, bound: float, unit: str = "") -> None:
        """A figure that must not fall short of its bound."""
        self._judge(name, figure, f"≥ {digits(bound)}", unit, figure >= bound)

    def ranged(self, text: str) -> None:
        """The range of the figure above."""
        print(_row("  over the repeats", text, ""), flush=True)

    def exactly(self, name: str, figure: float, bound: float, unit: str = "") -> None:
        """A figure that must equal its bound."""
        self._judge(name, figure, f"= {digits(bound)}", unit, figure == bound, lambda value: f"{value:,}")

    def beside(self, name: str, figure: float, unit: str = "") -> None:
        """A figure for comparison, without a bound."""
        print(_row(name, f"{digits(figure)} {unit}", ""), flush=True)

    def unread(self, name: str) -> None:
        """A figure that could not be read, which breaks its bound whatever that is."""
        self._broken.append(name)
        print(_row(name, "not read", "") + "   BROKEN", flush=True)

    def verdict(self, name: str, figure: str, bound: str, verdict: str) -> None:
        """A figure that was judged elsewhere: `holds`, `BROKEN`, or another word where it cannot be told."""
        if verdict == "BROKEN":
            self._broken.append(name)
        elif verdict != "holds":
            self._untold.append(name)
        print(_row(name, figure, bound) + ("" if verdict == "holds" else f"   {verdict}"), flush=True)

    def _judge(
        self,
        name: str,
        figure: float,
        bound: str,
        unit: str,
        holds: bool,
        shown: Callable[[float], str] = digits,
    ) -> None:
        if not holds:
            self._broken.append(name)
        print(_row(name, f"{shown(figure)} {unit}", bound) + ("" if holds else "   BROKEN"), flush=True)

    def exit_code(self) -> int:
        """0 where every bound holds, 1 with what is broken, 3 where nothing is and some cannot be told."""
        untold = f"cannot be told: {'; '.join(self._untold)}" if self._untold else "every bound holds"
        print(f"\n{'broken: ' + '; '.join(self._broken) if self._broken else untold}")
        return 1 if self._broken else 3 if self._untold else 0


def _row(*texts: str) -> str:
    name, *others = (text.strip() for text in texts)
    return f"{name:<{WIDTHS[0]}}" + "".join(
        f"{text:>{w}}" for text, w in zip(others, WIDTHS[1:], strict=False)
    )
