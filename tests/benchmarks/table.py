"""What was found, as tables in Markdown."""

from collections.abc import Mapping, Sequence

from tests.benchmarks.bench import BRIDGE
from tests.benchmarks.figures import Aim, Outcome, Series


def aims_table(outcomes: Sequence[Outcome]) -> str:
    """Each aim, what was reached, and whether that is enough."""
    rows = [
        f"| {outcome.title} | {_aimed(aim)} | {number(aim.value)} | {_met(aim)} |"
        for outcome in outcomes
        for aim in outcome.aims
    ]
    head = ["| measure | aim | measured | met |", "|---|---|---:|---|"]
    return "\n".join([*head, *rows])


def figures_table(outcomes: Sequence[Outcome]) -> str:
    """Each series: its middle, its ends, and how it stands to the bridge's."""
    head = [
        "| measure | | contender | median | least to greatest | to the bridge's |",
        "|---|---|---|---:|---:|---:|",
    ]
    return "\n".join([*head, *(_row(o, each) for o in outcomes for each in o.series)])


def notes(outcomes: Sequence[Outcome]) -> str:
    return "\n".join(f"- `{each.name}`: {each.note}." for each in outcomes if each.note)


def machine_list(machine: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in machine.items())


def number(value: float) -> str:
    """A figure with as many digits as it is good for."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _met(aim: Aim) -> str:
    return "yes" if aim.met else "**no**"


def _aimed(aim: Aim) -> str:
    return (
        f"{aim.bound} {aim.limit:g} {aim.text if aim.unit == 'times' else f'{aim.unit} {aim.text}'}"
    )


def _row(outcome: Outcome, series: Series) -> str:
    ours = [its for its in outcome.series if (its.contender, its.what) == (BRIDGE, series.what)]
    ratio = ""
    if ours and ours[0] is not series and len(ours[0].values) == len(series.values):
        ratio = f"{number(series.over(ours[0]))} times"
    least, greatest = series.spread
    cells = (
        f"`{outcome.name}`",
        series.what,
        series.contender,
        f"{number(series.median)} {series.unit}",
        f"{number(least)} to {number(greatest)}",
        ratio,
    )
    return f"| {' | '.join(cells)} |"
