"""``weald look``: clusters and groups of a file or folder at once, without settings."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import share_text
from weald.cli.terminal.options import Output, Wide, example
from weald.cli.terminal.output import Column, Form, note, write_record

if TYPE_CHECKING:
    from weald.answers.diagnostics.trust import Trust
    from weald.mcmc.offline.fit import FitResult

    from .found import Found
    from .rows import FileRows
    from .seen import Seen

__all__ = ["add_to"]

SHOWN = 12
# Of the time: what comes after sampling, and the least that sampling gets, and that in seconds.
AFTERWARDS, LEAST_SAMPLING, LEAST_SECONDS = 0.3, 0.2, 0.5
# What comes after sampling takes up to so many times as long as loading does, which is always the
# same work: where that was slow, as many other processes run, so will be the rest. At most this
# share of the time is set aside, however long a cold disk took.
AFTER_LOADING, MOST_AFTERWARDS = 3.0, 0.5
# Share of the time for which each of two families is tried, and seconds that the program itself
# takes to start, at most.
TRIAL, START = 0.15, 0.5


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald look penguins.csv",
            "weald look orders.jsonl --seconds 60 --out orders.html",
            "weald look /var/log/nginx",
            "weald look embeddings.parquet",
            "zcat events.jsonl.gz | weald look - --no-page --output json",
        )
    )(look)


def look(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE|FOLDER|-",
            help=".csv .tsv .jsonl .parquet .arrow .log, also .gz; a folder of one kind of them; - "
            "reads standard input.",
        ),
    ],
    *,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=1.0, help="Time for the first answer; more is surer."),
    ] = 10.0,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.html", help="The page.")] = Path(
        "weald-look.html"
    ),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write a page, too.")] = True,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn at random.")] = 0,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """See what a file is made of: its groups, what sets each apart, and whether to believe it.

    The schema is inferred as `weald init` does, and said. Rows are clustered by numbers, counts,
    flags, categories and texts; times are told, not clustered by. A value that is missing or cannot
    be read is a gap, which says nothing; rows with a gap in a number may be put where what they
    have fits best, once the others are clustered. Rows that are exact copies of others, where that
    does not happen by chance, are seen once and counted in sizes. Of more than 10,000 rows as many
    are drawn at random.

    Rows are called by a column that says which record it is, as `order_id` does, where there is one
    that differs in every row; else by their number, from 0. The files of a folder are read in the
    order of their names as one, and such a row is called by its file and line. A column of lists of
    numbers, as embeddings are, is one vector; texts beside a long one are told, not clustered by,
    as it stands for them.

    A sentence such as `country Norway: 82 %, elsewhere 9 %` is true of the rows as it is printed:
    of those inside, 82 % are from Norway, of all others 9 %. `how sure` is the mean probability of
    a row's cluster. The `verdict` warns where clusters should not be believed, and says why;
    what has not settled is to be believed for now. `settled` says whether more time would say the
    same: whether each of the runs alone comes to the same groups.

    The answer depends on how far sampling came in its time: `weald fit` counts
    sweeps instead.
    The first look after an installation compiles its kernels, which takes a minute or two.
    """
    # What is loaded on the way counts, too, and the program's own start: people wait for it.
    loading = time.monotonic()
    began = loading - min(time.process_time(), START)
    from weald.answers.diagnostics.fit_diagnostics import diagnostics
    from weald.answers.diagnostics.trust import Trust
    from weald.cli.fit.outputs import judged
    from weald.cli.fit.sampling import processors
    from weald.cli.terminal.progress import step
    from weald.mcmc.offline.fit_groups import groups_of_fit

    from .found import found_in
    from .rows import read_rows

    afterwards = afterwards_of(seconds, time.monotonic() - loading)
    with step("reading, and inferring the schema"):
        rows = read_rows(data, seed)
    seen, result = _fitted(rows, began, (seconds, afterwards), seed)
    with step("telling groups apart"):
        groups = groups_of_fit(result, seen.fitted, n_threads=processors())
        found = found_in(rows, seen, result, groups.group)
        table = rows.values[seen.chosen], rows.schema.features
        told = judged(seen.fitted, result, groups, table)
    trust = Trust(told["verdict"]["reasons"], told["settled"])
    _tell(rows, found, ({**told, "diagnostics": diagnostics(result)}, trust), output)
    if page:
        _write_page(rows, seen, (result, found), trust, out)
    note(f"{time.monotonic() - began:.0f} s in all")


def afterwards_of(seconds: float, loading: float) -> float:
    """Seconds, of so many, that are set aside for what comes after sampling.

    ``loading`` is how long it took to load what a look needs.
    """
    share = min(AFTER_LOADING * loading / seconds, MOST_AFTERWARDS)
    return seconds * max(share, AFTERWARDS)


def _fitted(
    rows: FileRows, began: float, time_for: tuple[float, float], seed: int
) -> tuple[Seen, FitResult]:
    """What the family sees of the rows, and a fit of it in what is left of the time.

    ``time_for`` is that of the answer, and of it what is set aside for what comes after sampling.
    """
    from dataclasses import replace

    from weald.cli.fit.fitted_rows import tell_copies, tell_placed
    from weald.cli.fit.sampling import processors, sample, settled
    from weald.mcmc.offline.chains import chains_for

    from .seen import seen_of

    seen = seen_of(rows, seed)
    tell_copies(seen.original)
    fitted = seen.fitted
    # Two at least, whose answers can be compared; more where there are processors for them.
    chains = min(chains_for(*fitted.shape), max(processors(), 2))
    seconds, afterwards = time_for
    settings = replace(seen.settings, chains=chains)
    settings, _ = settled(fitted, settings, chains, seconds=TRIAL * seconds)
    if settings.family == "diagonal":
        # Which takes gaps as they are.
        seen = seen.with_gaps()
        fitted = seen.fitted
    tell_placed(int((~seen.chosen[seen.original]).sum()), "  ")
    least = max(seconds * LEAST_SAMPLING, LEAST_SECONDS)

    def left() -> float:
        return max(seconds - afterwards - (time.monotonic() - began), least)

    return seen, sample(fitted, settings, left)


def _tell(rows: FileRows, found: Found, judged: tuple[dict[str, Any], Trust], form: Form) -> None:
    told, trust = judged
    summary: dict[str, Any] = {
        "rows": rows.n_read,
        "rows_looked_at": len(rows.keys),
        "n_groups": len(found.groups),
        "n_clusters": len(found.clusters),
        "verdict": told["verdict"],
        "settled": trust.settled,
        "groups": found.groups,
        "clusters": found.clusters,
    }
    if form is not Form.table:
        write_record({**summary, "diagnostics": told["diagnostics"]}, form)
        return
    facts = {**summary, "verdict": trust.verdict}
    for at, reason in enumerate(trust.reasons):
        facts[f"reason {at + 1}"] = reason
    if facts["rows_looked_at"] == facts["rows"]:
        del facts["rows_looked_at"]
    groups, clusters = (facts.pop(name) for name in ("groups", "clusters"))
    # One group says nothing that its clusters don't.
    if len(groups) > 1 or len(clusters) == 1:
        facts["groups"] = groups[:SHOWN]
    if len(clusters) > len(groups):
        facts["clusters"] = clusters[:SHOWN]
    columns = [
        Column("size", "size", "right"),
        Column("share", "share", "right", lambda share: f"{share:.1%}", gives_way=2),
        Column("probability", "how sure", "right", share_text, gives_way=1),
        Column("description", "what sets it apart"),
    ]
    group = Column("group", "group", "right")
    tables = {
        "groups": [group, *columns],
        "clusters": [Column("cluster", "cluster", "right"), group, *columns],
    }
    write_record(facts, form, tables=tables)
    if len(clusters) > SHOWN or len(groups) > SHOWN:
        note(f"the {SHOWN} largest; --output json has all")


def _write_page(
    rows: FileRows, seen: Seen, fitted: tuple[FitResult, Found], trust: Trust, out: Path
) -> None:
    from weald.cli.report.command import write_explorer
    from weald.cli.terminal.progress import step

    from .found import exploration_of, sampled_of

    with step("drawing"):
        subject = sampled_of(rows, *fitted)
        write_explorer(subject, exploration_of(rows, seen, *fitted), trust, out)
    note(f"page: {out}")
