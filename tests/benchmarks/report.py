"""Where the figures are kept: results.json, from which README.md is written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import table
from tests.benchmarks.figures import Aim, Outcome, Series

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
README = FOLDER / "README.md"
BEGIN, END = "<!-- figures: written by `run --write` -->", "<!-- end of the figures -->"


@dataclass(frozen=True)
class Report:
    machine: Mapping[str, str]
    outcomes: Sequence[Outcome]

    def as_json(self) -> str:
        return json.dumps(
            {"machine": dict(self.machine), "outcomes": [asdict(each) for each in self.outcomes]},
            ensure_ascii=False,
            indent=1,
        )

    def as_text(self) -> str:
        return "\n\n".join(
            (
                table.machine_list(self.machine),
                table.aims_table(self.outcomes),
                table.figures_table(self.outcomes),
                table.notes(self.outcomes),
            )
        )


def written(report: Report, order: Sequence[str]) -> None:
    """Keep what was found, in `order`, beside what was found before by other measures."""
    outcomes = {each.name: each for each in report.outcomes}
    if RESULTS.exists():
        earlier = json.loads(RESULTS.read_text(encoding="utf-8"))["outcomes"]
        outcomes = {each["name"]: outcome_of(each) for each in earlier} | outcomes
    whole = Report(report.machine, [outcomes[name] for name in order if name in outcomes])
    RESULTS.write_text(whole.as_json() + "\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(f"{before}{BEGIN}\n\n{whole.as_text()}\n\n{END}{after}", encoding="utf-8")


def outcome_of(plain: Mapping[str, Any]) -> Outcome:
    """Return what results.json has of one measure."""
    return Outcome(
        plain["name"],
        plain["title"],
        tuple(
            Series(each["contender"], each["what"], each["unit"], tuple(each["values"]))
            for each in plain["series"]
        ),
        tuple(
            Aim(each["text"], each["value"], each["bound"], each["limit"], each["unit"])
            for each in plain["aims"]
        ),
        plain["note"],
    )
