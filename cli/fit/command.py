"""``weald fit``: the engine's model and kernels on a file, offline."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import json
from dataclasses import replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.cli.errors import UsageError, writing
from weald.cli.terminal.options import Output, Wide, example
from weald.cli.terminal.output import Form
from weald.mcmc.schedule.registry import kernel_names

from .engines import EngineName

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings
    from weald.mcmc.offline.fit import FitResult, FitSettings
    from weald.mcmc.offline.transformation import Transformation
    from weald.mcmc.settings import FeatureSettings

    from .columns import Columns
    from .reading import Reading

__all__ = ["add_to", "parse_parameters"]


NETWORK_FAMILY = "irm"


class Consensus(StrEnum):
    """How one partition is told from many draws."""

    vi = "vi"
    binder = "binder"
    map = "map"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald fit points.npz --iterations 200",
            "weald fit iris.csv --columns sepal_length,petal_length --seconds 5 --out labels.csv",
            "weald fit points.npy --param kappa=0.01 --param psi=0.5 --prior nggp --sigma 0.3",
            "weald fit points.npz --kernel gibbs,tgmcmc --chains 4 --trace trace.npz --output json",
            "weald fit train.csv --chains 4 --test test.csv",
            "weald fit yesterday.jsonl --config weald.toml",
            "weald fit friends.csv --family irm --picture blocks.png --hide 0.1 --out blocks.csv",
            "weald fit flights.graphml --family irm --param directed=true --links links.csv",
            "weald fit days/ --engine local --shards 4 --out clusters.csv",
        )
    )(fit)


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help=".npy .npz .csv[.gz] .jsonl[.gz] .parquet; a network: .npz with A, edges in .csv "
            ".tsv .txt .jsonl, .mtx, .graphml",
        ),
    ],
    *,
    family: Annotated[
        str,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Likelihood of a cluster: gaussian, diagonal, gamma, bernoulli, categorical, "
            "poisson, negative-binomial, multinomial, mixed; irm for networks; auto goes by the "
            "kinds of columns, and for numbers takes gaussian or diagonal, whichever predicts "
            "held-out rows better. All but gaussian and multinomial take missing values.",
        ),
    ] = "auto",
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="K=V",
            help="A hyperparameter of the family; repeat for more. A number, or JSON for a vector "
            "or a matrix. What is not given comes from the data.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            metavar="NAME",
            help="Prior of the partition: dp (the default), pitman-yor, nggp, mfm, emm (entities, "
            "which kernels that end in -entities move, empty ones too).",
            show_default=False,
        ),
    ] = None,
    prior_param: Annotated[
        list[str] | None,
        typer.Option(
            "--prior-param",
            metavar="K=V",
            help="A parameter of the prior: gamma and mean of mfm, mu, sigma and kmax of emm; "
            "repeat for more.",
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="Concentration, at the start if it is learned.")
    ] = None,
    sigma: Annotated[
        float | None, typer.Option("--sigma", help="Index of nggp, spread of log K of emm.")
    ] = None,
    discount: Annotated[
        float | None, typer.Option("--discount", help="Discount of pitman-yor.")
    ] = None,
    learn_hyper: Annotated[
        bool,
        typer.Option("--learn-hyper/--fixed-hyper", help="Learn the prior's hyperparameters."),
    ] = True,
    learn_base: Annotated[
        bool | None,
        typer.Option(
            "--learn-base/--fixed-base",
            help="Learn the base measure too: mean, kappa, nu and psi of gaussian, kappa, shape, "
            "rate of diagonal (learned unless --param says something), a factor of the scale of "
            "other families.",
            show_default=False,
        ),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="NAME[,NAME...]",
            help=f"Kernels of a sweep, in order: {', '.join(kernel_names())}.",
        ),
    ] = "auto",
    init: Annotated[
        str,
        typer.Option(
            "--init",
            metavar="HOW",
            help="Start of each chain: auto, of numbers ibhc and clusters of k-means in turn, else "
            "ibhc; or ibhc, one, singletons or random:K.",
        ),
    ] = "auto",
    iterations: Annotated[
        int | None, typer.Option("--iterations", min=1, help="Sweeps of each chain.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.0, help="Time in place of sweeps.")
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option(
            "--chains",
            min=1,
            help="Independent chains; by default four for small tables, two, or one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same result.")] = 0,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Read the file as the stream of this weald.toml would, with its [schema], family "
            "and prior.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="NAME[,NAME...]", help="Columns of numbers to use, as they stand."
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="NAME[,NAME...]", help="Columns whose logarithms are clustered."
        ),
    ] = None,
    unit_length: Annotated[
        bool,
        typer.Option("--unit-length", help="Divide rows by their lengths: directions alone tell."),
    ] = False,
    standardise: Annotated[
        bool | None,
        typer.Option(
            "--standardise/--no-standardise",
            help="Divide columns by their spreads; by default along components, where these are "
            "not alike.",
        ),
    ] = None,
    components: Annotated[
        str,
        typer.Option(
            "--components",
            metavar="HOW",
            help="See rows along principal components: auto (above 16 columns of a gaussian), all "
            "(columns as they are), or how many.",
        ),
    ] = "auto",
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="OUT.npz", help="Write every iteration.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="OUT.csv", help="Write row,cluster,group,probability,stability."
        ),
    ] = None,
    consensus: Annotated[
        Consensus,
        typer.Option(
            "--consensus",
            help="Which partition to report: of least expected loss over the draws (vi, binder), "
            "or of highest log joint (map: too few clusters where they overlap).",
        ),
    ] = Consensus.vi,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test", metavar="FILE", help="Rows to predict: their mean log density is reported."
        ),
    ] = None,
    hide: Annotated[
        float,
        typer.Option(
            "--hide",
            metavar="SHARE",
            min=0.0,
            max=0.9,
            help="Networks: hide this share of the pairs and report how well they are predicted.",
        ),
    ] = 0.0,
    links: Annotated[
        Path | None,
        typer.Option(
            "--links",
            metavar="OUT.csv",
            help="Networks: write source,target,expected of pairs without an edge.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="OUT.png", help="Networks: draw the blocks."),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            metavar="LEVEL",
            help="What tables show: clusters, groups, both, or both with two groups parted by "
            "valleys of density below a number from 0 to 1, and each of more by deeper ones.",
        ),
    ] = "both",
    engine: Annotated[
        EngineName | None,
        typer.Option(
            "--engine",
            help="Fit in shards, none of which has all rows: a Parquet file, a folder of them, or "
            ".npy.",
        ),
    ] = None,
    shards: Annotated[
        int, typer.Option("--shards", min=1, help="With --engine: into how many parts.")
    ] = 2,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            metavar="FOLDER",
            help="With --engine: where shards keep rows and labels; by default a temporary folder.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="With --work: go on from the last finished sweep of the fit that was ended there.",
        ),
    ] = False,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Cluster a file: no stream, no database.

    The start is one pass of incremental insertion; the kernels then sample the posterior. The
    partition reported is the consensus of the draws, `probability` says how sure each row's
    cluster is, and `stability` how firmly its cluster held together.

    One kind is often several clusters, as its shape is not the family's. Groups join clusters that
    have no deep valley of density between them (two are parted where it falls below .575 of its
    lower side, each of more where it falls deeper), and small clusters to the nearest large one;
    `supported level` says which of the two predicts rows better. The `verdict` warns where clusters
    should not be believed, and says why; what has not settled is to be believed for now.

    The diagnostics tell whether the chains agree: R-hat should be below 1.01, the effective sample
    sizes some hundreds. A chain that predicts rows clearly worse than the best has no say.

    The columns of a table are taken for what `weald init` would take them for, and it is said:
    numbers as they stand where there is nothing else, else numbers, counts, flags, categories,
    times and texts together. Identifiers are left out, empty cells are gaps: where at most a
    twentieth of the rows have one in a number, these are put where what they have fits best, once
    the others are clustered. Rows that are exact copies of others, where that does not happen by
    chance, are seen once and counted in sizes, unless --param or --fixed-base says what clusters
    are like. With --config the file is read as that stream would read it. A row with a value that
    cannot be read is refused and told, with its line; the rest is fitted.

    Without --iterations or --seconds each chain runs for 100 sweeps. Rows count from 0.

    With --engine no process has all rows: DATA is Parquet, a folder of it or .npy, columns are
    taken as they stand, clusters are gaussian unless --family says otherwise, and one chain of the
    sub-cluster sampler runs over the shards. The number of shards does not change the result.

    With --family irm the file is a network and its vertices are clustered (infinite relational
    model): --param a and b for edges that are there or not, shape and rate with counts=true,
    directed=true where edges have a direction and the file does not say so, learn=true to learn
    these. Kernels that take guides from other chains (the default, accord, arm, sarm, bsm) run 8 of
    them unless --chains asks for another number, 4 at least.
    """
    if iterations is not None and seconds is not None:
        raise UsageError("give --iterations or --seconds, not both")
    from weald.mcmc.offline.fit import FitSettings

    _refuse_unknown_family(family)
    configured = _configured(config, columns or log or family == NETWORK_FAMILY)
    given = {"alpha": alpha, "sigma": sigma, "discount": discount}
    prior_params = {
        **{name: value for name, value in given.items() if value is not None},
        **parse_parameters(prior_param or [], "--prior-param"),
    }
    if prior is None and configured is not None:
        prior_params = {**configured.model.prior_params, **prior_params}
        prior = configured.model.prior
    settings = FitSettings(
        family=family,
        params=parse_parameters(param or []),
        prior=prior or "dp",
        prior_params=prior_params,
        learn_hyper=learn_hyper,
        learn_base=learn_base,
        kernels=tuple(name.strip() for name in kernel.split(",")),
        init=init,
        iterations=iterations,
        seconds=seconds,
        chains=chains or 1,
        seed=seed,
        consensus=str(consensus),
        keep_labels=trace is not None,
    )
    if engine is not None:
        _refuse_in_shards(
            {
                "--config": config,
                "--log": log,
                "--unit-length": unit_length,
                "--standardise": standardise,
                "--components": None if components == "auto" else components,
                "--trace": trace,
                "--test": test,
                "--kernel": None if kernel == "auto" else kernel,
                "--chains": None if chains == 1 else chains,
                "--hide": hide,
                "--links": links,
                "--picture": picture,
                "--family irm": family == NETWORK_FAMILY,
                "--init": init not in ("auto", "ibhc", "one"),
            }
        )
        from .sharded import fit_table_in_shards

        shown, valley = _level(level)
        names = columns.split(",") if columns else None
        told = (names, valley, out, shown)
        fit_table_in_shards(data, settings, (engine, shards), (work, resume), told, output)
        return
    if work is not None or resume:
        raise UsageError("--work and --resume are for fits in shards: --engine")
    if family == NETWORK_FAMILY:
        if test is not None:
            raise UsageError("--test is for rows; --hide predicts pairs of a network")
        if learn_base:
            raise UsageError("--learn-base is for rows; --param learn=true learns that of edges")
        with writing(out, trace, links, picture):
            _fit_network(data, settings, (out, trace), (hide, links, picture), chains, output)
        return
    if hide or links is not None or picture is not None:
        raise UsageError("--hide, --links and --picture are for networks: --family irm")
    from weald.mcmc.settings import FeatureSettings

    from .columns import Columns, components_asked

    asked = FeatureSettings(
        unit_length=unit_length,
        standardise="auto" if standardise is None else standardise,
        components=components_asked(components),
    )
    chosen = Columns(*(text.split(",") if text else [] for text in (columns, log)))
    files = (out, trace, test)
    _fit_rows(data, settings, (chosen, asked, configured), files, chains, level, output)


def _refuse_in_shards(given: dict[str, object]) -> None:
    """Raise UsageError for what a fit in shards does not do."""
    asked = [name for name, value in given.items() if value]
    if asked:
        raise UsageError(f"{', '.join(asked)}: not with --engine, which fits columns as they stand")


def _fit_rows(
    data: Path,
    settings: FitSettings,
    seeing: tuple[Columns, FeatureSettings, Settings | None],
    files: tuple[Path | None, Path | None, Path | None],
    chains: int | None,
    level: str,
    form: Form,
) -> None:
    import numpy as np

    from weald.mcmc.offline.copies import are_originals, originals_seen
    from weald.mcmc.offline.family_choice import INDEPENDENT
    from weald.mcmc.offline.fit_groups import groups_of_fit
    from weald.mcmc.offline.transformation import wants_components
    from weald.mcmc.settings import FeatureSettings

    from .columns import as_kinds_are_known, transformation_of
    from .fitted_rows import (
        of_all_rows,
        refused_by_place,
        takes_any_number,
        tell_copies,
        tell_placed,
    )
    from .outputs import Fitted, tell, write_assignments, write_trace
    from .reading import read
    from .sampling import processors, sample, settled

    shown, valley = _level(level)
    (columns, asked, configured), (out, trace, test) = seeing, files
    if configured is not None and asked == FeatureSettings():
        asked = configured.features
    reading = read(data, settings, columns, configured)
    table, takes_far = reading.table, takes_any_number(settings)
    original = originals_seen(table.values, settings.family, settings.params, settings.learn_base)
    tell_copies(original)
    once = are_originals(original)
    fitted = once & reading.whole
    settings = replace(
        settings, family=reading.family, params={**reading.params, **settings.params}
    )
    if wants_components(asked, settings.family, len(table.names)):
        # A row without one number has no place along any of the axes.
        fitted = once
    learned = transformation_of(table.of_rows(fitted), settings.family, asked)
    values = as_kinds_are_known(reading.schema, table.values, settings, fitted)
    values = values if learned is None else learned.seen(values)
    settings, choice = settled(values if fitted.all() else values[fitted], settings, chains)
    if settings.family == INDEPENDENT:
        # Which takes gaps as they are.
        fitted = once
    n_partly = int((~fitted[original]).sum())
    tell_placed(n_partly)
    seen = values if fitted.all() else values[fitted]
    with refused_by_place(data, table, np.flatnonzero(fitted)):
        result = sample(seen, settings)
    groups = groups_of_fit(result, seen, valley, processors())
    everyone = of_all_rows(result, values, fitted, original)
    with writing(out, trace):
        if out is not None:
            write_assignments(out, everyone, groups.group, table.rows)
        if trace is not None:
            write_trace(trace, result, settings, _about(reading, result), learned, fitted)
    held_out = None
    if test is not None:
        held_out = _held_out(
            test, reading, learned, (seen, result), takes_far=takes_far, partly=n_partly > 0
        )
    found = Fitted(
        table, seen, learned, settings, result, groups, fitted, everyone, original, choice,
        reading.schema,
    )  # fmt: skip
    tell(found, shown, form, held_out)


def _about(reading: Reading, result: FitResult) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """What a trace tells of the features, the family's parameters, and how to read the file."""
    from weald.treecore.family import spec_of

    names, logs = reading.columns
    more = {"logs": logs, "manner": reading.manner and reading.manner._asdict()}
    return names, spec_of(result.family).parameters(result.family), more


def _held_out(
    test: Path,
    reading: Reading,
    learned: Transformation | None,
    fitted: tuple[Any, FitResult],
    *,
    takes_far: bool,
    partly: bool,
) -> dict[str, float]:
    """How well the rows of another file are predicted; of such as the fit had put aside, none."""
    import numpy as np

    from weald.answers.diagnostics.fit_diagnostics import held_out_density
    from weald.cli.terminal.output import note
    from weald.mcmc.offline.family_choice import FULL
    from weald.mcmc.offline.fit import SPARSE_FAMILY
    from weald.treecore.family import spec_of

    from .fitted_rows import correlated_columns, refused_by_place, without_far
    from .reading import read_again

    seen, result = fitted
    missing = partly or spec_of(result.family).name not in (SPARSE_FAMILY, FULL)
    table = read_again(test, reading.manner, reading.columns, missing=missing)
    if not takes_far:
        table = without_far(test, table, reading.table)
    others, rows = table.values, np.arange(table.values.shape[0])
    if partly:
        d = others.shape[1]
        needed = range(d) if reading.schema is None else correlated_columns(reading.schema)
        gaps = np.isnan(others[:, needed]).any(axis=1)
        if gaps.any():
            n_gaps = int(gaps.sum())
            many = f"{n_gaps} rows with gaps in numbers are"
            told = "1 row with a gap in a number is" if n_gaps == 1 else many
            note(f"{test}: {told} not predicted")
        others, rows = others[~gaps], rows[~gaps]
    if not others.shape[0]:
        raise UsageError(f"{test}: no row is left to predict")
    with refused_by_place(test, table, rows):
        return held_out_density(seen, others if learned is None else learned.seen(others), result)


def _refuse_unknown_family(name: str) -> None:
    from weald.treecore.family import FAMILIES

    known = ["auto", *FAMILIES, NETWORK_FAMILY]
    if name not in known:
        near = get_close_matches(name.lower(), known, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no family {name!r}: {meant}choose among {', '.join(known)}")


def _configured(config: Path | None, otherwise: object) -> Settings | None:
    """The settings of a stream, unless the command line says ``otherwise`` what columns are."""
    if config is None:
        return None
    if otherwise:
        raise UsageError("--config says what columns are: it goes without --columns, --log and irm")
    from weald.cli.config.settings import load

    return load(config).settings


def _fit_network(
    data: Path,
    settings: FitSettings,
    files: tuple[Path | None, Path | None],
    asked: tuple[float, Path | None, Path | None],
    chains: int | None,
    form: Form,
) -> None:
    from weald.treecore.relational.edges import edge_numbers

    from .network import NetworkRequest, fit_file, tell_network, write_vertices
    from .outputs import write_trace

    result, names, posed, summary = fit_file(data, settings, NetworkRequest(*asked), chains)
    out, trace = files
    if out is not None:
        write_vertices(out, result, names)
    if trace is not None:
        write_trace(trace, result, settings, (names, edge_numbers(result.family), posed))
    # Files first: nobody may be reading any more what is told.
    tell_network(summary, form)


def _level(text: str) -> tuple[str, float]:
    """What ``--level`` says: clusters, groups or both, and the valley that parts groups."""
    from weald.mcmc.estimate.groups import CUT

    if text in ("clusters", "groups", "both"):
        return text, CUT
    try:
        valley = float(text)
    except ValueError:
        valley = -1.0
    if not 0.0 < valley < 1.0:
        raise UsageError(
            f"--level {text}: expected clusters, groups, both, or a number between 0 and 1"
        )
    return "both", valley


def parse_parameters(texts: list[str], option: str = "--param") -> dict[str, Any]:
    """Return ``k=v`` texts, as ``--param`` takes them, by name.

    Raises
    ------
    UsageError
        If one has no ``=``, or its value is neither a number nor JSON.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {text}: expected NAME=VALUE, as in {option} kappa=0.1")
        try:
            found[name.strip()] = json.loads(value)
        except json.JSONDecodeError as error:
            raise UsageError(
                f"{option} {text}: {value!r} is neither a number nor JSON ({error})"
            ) from error
    return found
