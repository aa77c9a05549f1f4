"""`weald fit`: the design's flags on real files, and what it writes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tests.cli.conftest import Command
from weald.cli.errors import ExitCode, UsageError
from weald.cli.fit.columns import as_kinds_are_known
from weald.cli.fit.command import parse_parameters
from weald.cli.fit.fitted_rows import tell_placed
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import FitSettings
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings
from weald.treecore.family import FAMILIES
from weald.treecore.prior import PRIORS

pytestmark = pytest.mark.usefixtures("clean")

QUICK = ("--iterations", "10", "--kernel", "gibbs")
N = 90


@pytest.fixture
def points(clean: Path, rng: np.random.Generator) -> Path:
    """Three groups that nobody could confuse, with their labels."""
    y = np.arange(N) % 3
    values = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])[y] + rng.normal(size=(N, 2))
    np.savez(clean / "points.npz", X=values, y=y)
    return clean / "points.npz"


def test_runs_that_part_the_same_groups_otherwise_are_no_reason_to_doubt(
    clean: Path, weald: Command
) -> None:
    """No cluster is shaped like these groups: each is several, and other ones in each run."""
    draw, kind = np.random.default_rng(1), np.arange(600) % 3
    np.save(clean / "x.npy", draw.exponential(size=(600, 2)) + 15.0 * np.eye(3)[kind][:, :2])
    runs = ("--init", "ibhc", "--iterations", "60", "--chains", "2", "--trace", "t.npz")
    result = weald("fit", "x.npy", *runs, "--output", "json")
    assert result.code == 0, result.err
    with np.load(clean / "t.npz") as trace:
        one, other = trace["labels"][:, -1].astype(np.int64)
    assert adjusted_rand_index(one, other) < 0.5
    answer = json.loads(result.out)
    assert answer["settled"].startswith("yes: each of 2 runs alone puts 99 % of the rows or more")
    assert answer["verdict"] == {"status": "ok", "reasons": []}


def test_the_summary_tells_model_kernels_and_clusters(points: Path, weald: Command) -> None:
    result = weald("fit", str(points), *QUICK, "--output", "json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert (answer["n_observations"], answer["n_features"], answer["n_clusters"]) == (N, 2, 3)
    assert answer["adjusted_rand_index"] == 1.0
    assert answer["iterations"] == [10] * 4
    assert answer["chains_trusted"] == 4
    assert "predicts" in answer["chosen_because"]
    assert answer["kernels"][0]["claim"] == "exact"
    assert [row["size"] for row in answer["clusters"]] == [30, 30, 30]
    assert all(row["probability"] > 0.9 for row in answer["clusters"])
    assert set(answer["clusters"][0]["features"]) == {"x1", "x2"}


def test_the_table_reads_well(points: Path, weald: Command) -> None:
    out = weald("fit", str(points), *QUICK).out
    assert " ± " in out
    lines = out.splitlines()
    # What was found comes before how it was sampled.
    assert lines.index("groups") < lines.index("clusters") < lines.index("kernels")
    names = [line.partition("  ")[0].strip() for line in lines]
    assert names.index("verdict") < names.index("family")
    for word in ("nats", "log ratio"):
        assert word not in out


def test_out_has_a_line_for_each_row(points: Path, weald: Command) -> None:
    assert weald("fit", str(points), *QUICK, "--out", "o.csv").code == 0
    with Path("o.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "cluster", "group", "probability", "stability"]
    assert [int(row["row"]) for row in rows] == list(range(N))
    assert len({row["cluster"] for row in rows}) == 3
    assert all(0.0 <= float(row["stability"]) <= 1.0 for row in rows)


def test_groups_and_clusters_are_shown_with_what_supports_them(
    points: Path, weald: Command
) -> None:
    answer = json.loads(weald("fit", str(points), *QUICK, "--output", "json").out)
    assert answer["n_groups"] == 3
    assert answer["adjusted_rand_index_of_groups"] == 1.0
    assert [row["size"] for row in answer["groups"]] == [30, 30, 30]
    assert [row["n_clusters"] for row in answer["groups"]] == [1, 1, 1]
    assert sorted(row["group"] for row in answer["clusters"]) == [0, 1, 2]
    assert answer["supported_level"] == "groups"
    assert answer["verdict"] == {"status": "ok", "reasons": []}
    told = {
        level: weald("fit", str(points), *QUICK, "--level", level).out
        for level in ("clusters", "groups", "both")
    }
    assert "stability" not in told["groups"]
    assert "stability" in told["clusters"]
    assert told["both"].count(" ± ") == told["clusters"].count(" ± ") + told["groups"].count(" ± ")


def test_a_level_is_how_deep_valleys_are_between_groups(clean: Path, weald: Command) -> None:
    rng = np.random.default_rng(3)
    centre = np.array([0.0, 4.5, 60.0])[np.arange(900) % 3]
    np.savez(clean / "t.npz", X=rng.normal(size=(900, 1)) + centre[:, None])
    counts = []
    for level in ("0.1", "0.65"):
        answer = weald("fit", "t.npz", *QUICK, "--level", level, "--output", "json").out
        counts.append(json.loads(answer)["n_groups"])
    assert counts == [2, 3]
    for level in ("1.5", "deep"):
        refused = weald("fit", "t.npz", *QUICK, "--level", level)
        assert refused.code == ExitCode.USAGE
        assert "clusters, groups, both, or a number" in refused.err


def test_many_columns_are_seen_along_components(clean: Path, weald: Command) -> None:
    """Told, described in the file's own columns, and undone where they are asked not to be."""
    rng = np.random.default_rng(0)
    centre = 40.0 * rng.normal(size=(3, 30))
    values = centre[np.arange(300) % 3] + rng.normal(size=(300, 30))
    values[:, 4] = 7.0
    np.savez(clean / "t.npz", X=values[:200], y=np.arange(200) % 3)
    np.savez(clean / "other.npz", X=values[200:])
    args = ("--iterations", "30", "--test", "other.npz", "--trace", "trace.npz")
    result = weald("fit", "t.npz", *args, "--output", "json")
    assert "columns of one value, left out: x5" in result.err
    assert "seen by the family: 8 components of 29 columns" in result.err
    answer = json.loads(result.out)
    assert (answer["n_features"], answer["n_components"]) == (29, 8)
    assert answer["adjusted_rand_index"] == 1.0
    assert answer["held_out"]["n"] == 100
    found = {row["features"]["x1"]["centre"] for row in answer["clusters"]}
    assert sorted(found) == pytest.approx(sorted(centre[:, 0]), abs=0.6)
    page = clean / "r.html"
    assert weald("report", "t.npz", "--trace", "trace.npz", "--out", str(page)).code == 0
    assert "x30" in page.read_text()
    fewer = weald("fit", "t.npz", *QUICK, "--components", "3", "--output", "json")
    assert json.loads(fewer.out)["n_components"] == 3
    refused = weald("fit", "t.npz", *QUICK, "--components", "many")
    assert refused.code == ExitCode.USAGE
    assert "expected auto, all, or a number" in refused.err


def test_directions_and_standardised_columns(clean: Path, weald: Command) -> None:
    """Two kinds that only directions tell apart; and what is asked for is told, or refused."""
    rng = np.random.default_rng(0)
    kind = np.arange(200) % 2
    rows = np.array([[1.0, 0.1, 0.1], [0.1, 1.0, 0.1]])[kind] + 0.02 * rng.normal(size=(200, 3))
    rows *= np.exp(rng.normal(0.0, 1.0, 200))[:, None]
    np.savez(clean / "t.npz", X=rows, y=kind)
    args = ("--iterations", "30", "--unit-length", "--test", "t.npz", "--output", "json")
    result = weald("fit", "t.npz", *args)
    assert "seen by the family: rows of unit length" in result.err
    answer = json.loads(result.out)
    assert answer["adjusted_rand_index"] > 0.9
    assert answer["clusters"][0]["features"]["x1"]["centre"] == pytest.approx(
        rows[kind == int(answer["clusters"][0]["features"]["x2"]["centre"] > 1.0)][:, 0].mean(),
        rel=0.2,
    )
    result = weald("fit", "t.npz", *QUICK, "--standardise", "--trace", "trace.npz")
    assert "seen by the family: 3 columns standardised" in result.err
    assert weald("report", "t.npz", "--trace", "trace.npz", "--out", "r.html").code == 0
    refused = weald("fit", "t.npz", *QUICK, "--family", "poisson", "--standardise")
    assert refused.code == ExitCode.USAGE
    assert "--standardise: it is for families gaussian and diagonal, not poisson" in refused.err


def test_logarithms_of_columns(weald: Command) -> None:
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(0.0, 1.5, N))
    lines = [
        "amount,level",
        *(f"{a},{b}" for a, b in zip(amounts, rng.normal(size=N), strict=True)),
    ]
    Path("t.csv").write_text("\n".join(lines))
    plain = weald("fit", "t.csv", *QUICK, "--output", "json")
    assert "heavy tails: --log amount" in plain.err
    told = weald("fit", "t.csv", *QUICK, "--log", "amount", "--test", "t.csv", "--output", "json")
    assert "heavy tails" not in told.err
    assert set(json.loads(told.out)["clusters"][0]["features"]) == {"log amount", "level"}
    for name, reason in (("level", "only numbers above 0"), ("other", "no column of numbers")):
        refused = weald("fit", "t.csv", *QUICK, "--log", name)
        assert refused.code == ExitCode.USAGE
        assert reason in refused.err


def test_a_row_that_is_refused_has_its_number_in_the_file(weald: Command) -> None:
    """Rows before it that are no rows, and copies, have their numbers, too."""
    draw = np.random.default_rng(0)
    rows = [f"{a},{b},{a * b}" for a, b in draw.poisson((3.0, 20.0), (N, 2)) + 1]
    rows[2], rows[5], rows[9] = "oops,4,4", rows[4], "3,-5,2"
    Path("t.csv").write_text("\n".join(["a,b,c", *rows]))
    for how in (("--family", "poisson"), ("--log", "b", "--family", "gaussian")):
        refused = weald("fit", "t.csv", *QUICK, *how)
        assert refused.code == ExitCode.USAGE
        assert "row 9" in refused.err
        assert "-5" in refused.err
    Path("whole.csv").write_text("\n".join(["a,b,c", *rows[:2], *rows[10:]]))
    tested = weald("fit", "whole.csv", *QUICK, "--family", "poisson", "--test", "t.csv")
    assert tested.code == ExitCode.USAGE
    assert "t.csv: row 9: " in tested.err


def test_a_columnar_file_has_rows_and_no_lines(weald: Command) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    cells = [f"{number:.3f}" for number in np.random.default_rng(0).normal(size=N)]
    cells[7] = "oops"
    parquet.write_table(arrow.table({"a": cells, "b": cells[::-1]}), "t.parquet")
    result = weald("fit", "t.parquet", *QUICK, "--columns", "a")
    assert result.code == 0, result.err
    assert "row 7: column 'a' should be a number, is 'oops'" in result.err


def test_missing_values_of_files(weald: Command) -> None:
    """The diagonal integrates them out; the gaussian says who would."""
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f},{b:.3f},{c:.3f}"
        for a, b, c in rng.normal(size=(N, 3)) + np.arange(N)[:, None] % 2 * 9
    ]
    rows[4] = ",1.0,2.0"
    Path("t.csv").write_text("\n".join(["a,b,c", *rows]))
    refused = weald("fit", "t.csv", *QUICK, "--family", "gaussian")
    assert refused.code == ExitCode.USAGE
    assert "row 4, column a" in refused.err
    assert "--family diagonal" in refused.err
    # More rows than a few have gaps.
    rows[::10] = [f",{row.partition(',')[2]}" for row in rows[::10]]
    Path("t.csv").write_text("\n".join(["a,b,c", *rows]))
    answer = json.loads(weald("fit", "t.csv", *QUICK, "--output", "json").out)
    assert answer["family"] == "diagonal"
    assert "missing" in answer["chosen_because"]
    assert answer["n_observations"] == N
    assert answer["n_clusters"] == 2


def test_a_few_gaps_leave_the_others_their_covariance(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    """Two long kinds side by side, told apart by how their numbers hang together."""
    n = 300
    kind = rng.integers(0, 2, n)
    x = rng.normal(0.0, 30.0, n)
    y = x + 8.0 * kind + rng.normal(size=n)
    rows = [f"{a:.3f},{b:.3f}" for a, b in zip(x, y, strict=True)]
    whole = [*rows]
    gaps = [3, 50, 51]
    for at in gaps:
        rows[at] = f"{x[at]:.3f},"
    (clean / "long.csv").write_text("\n".join(["x,y", *rows]))
    (clean / "other.csv").write_text("\n".join(["x,y", *whole[:40], "1.0,"]))
    files = ("--out", "o.csv", "--trace", "t.npz", "--test", "other.csv")
    result = weald("fit", "long.csv", *QUICK, "--output", "json", *files)
    assert result.code == 0, result.err
    assert "3 rows with gaps in numbers: put where what they have fits best" in result.err
    assert "other.csv: 1 row with a gap in a number is not predicted" in result.err
    answer = json.loads(result.out)
    assert answer["family"] == "gaussian"
    assert answer["n_observations"] == n
    assert sum(row["size"] for row in answer["clusters"]) == n
    assert sum(row["size"] for row in answer["groups"]) == n
    assert answer["held_out"]["n"] == 40
    assigned = list(csv.DictReader((clean / "o.csv").read_text().splitlines()))
    assert [int(row["row"]) for row in assigned] == list(range(n))
    found = np.array([int(row["group"]) for row in assigned])
    known = np.delete(np.arange(n), gaps)
    assert adjusted_rand_index(found[known], kind[known]) > 0.95
    # What is known of them does not tell the two kinds apart.
    assert {float(assigned[at]["probability"]) < 0.9 for at in gaps} == {True}
    report = weald("report", "long.csv", "--trace", "t.npz")
    assert report.code == 0, report.err
    assert f"{n - len(gaps)} observations" in (clean / "weald-report.html").read_text()


def test_a_number_too_far_from_the_others_costs_its_row_only(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    """As in a stream, where it is a dead letter."""
    kind = rng.integers(0, 2, N)
    x = np.column_stack([rng.normal(20.0 * kind), rng.normal(size=N), rng.normal(size=N)])
    x[7, 2], x[9, 1] = 1e9, -3e8
    np.savetxt(clean / "far.csv", x, delimiter=",", header="x,y,z", comments="")
    files = ("--out", "o.csv", "--trace", "t.npz", "--output", "json")
    result = weald("fit", "far.csv", *QUICK, *files)
    assert result.code == 0, result.err
    assert f"2 of {N} rows are refused, the rest is fitted" in result.err
    assert "  row 7: z is 1e+09\n  row 9: y is -3e+08\n" in result.err
    assert json.loads(result.out)["n_observations"] == N - 2
    assigned = list(csv.DictReader((clean / "o.csv").read_text().splitlines()))
    assert [int(row["row"]) for row in assigned] == [at for at in range(N) if at not in (7, 9)]
    report = weald("report", "far.csv", "--trace", "t.npz")
    assert report.code == 0, report.err
    assert f"{N - 2} observations" in (clean / "weald-report.html").read_text()


def test_a_number_too_far_costs_its_row_only_in_a_test_as_well(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    x = rng.normal(20.0 * rng.integers(0, 2, (N, 1)), size=(N, 2))
    other = rng.normal(size=(30, 2))
    other[7, 1] = 1e9
    for name, rows in (("t.csv", x), ("other.csv", other), ("far.csv", other[7:8])):
        np.savetxt(clean / name, rows, delimiter=",", header="x,y", comments="")
    result = weald("fit", "t.csv", *QUICK, "--test", "other.csv", "--output", "json")
    assert result.code == 0, result.err
    assert "other.csv: 1 of 30 rows is refused, the rest is predicted" in result.err
    assert "  row 7: y is 1e+09\n" in result.err
    assert json.loads(result.out)["held_out"]["n"] == 29
    nothing = weald("fit", "t.csv", *QUICK, "--test", "far.csv")
    assert nothing.code == ExitCode.USAGE
    assert "far.csv: no row is left to predict" in nothing.err


@pytest.mark.parametrize(("asked", "chains"), [((), 8), (("--chains", "5"), 5)])
def test_chains_that_guide_one_another_are_as_many_as_asked_for(
    asked: tuple[str, ...], chains: int, points: Path, weald: Command
) -> None:
    guided = ("--iterations", "4", "--kernel", "gibbs,arm", "--output", "json")
    assert json.loads(weald("fit", str(points), *guided, *asked).out)["chains"] == chains


def test_one_chain_has_nobody_to_guide_it(points: Path, weald: Command) -> None:
    refused = weald("fit", str(points), "--kernel", "gibbs,arm", "--chains", "1")
    assert refused.code == ExitCode.USAGE
    assert "gibbs,arm takes guides from other chains: ask for 4 at least, not 1" in refused.err


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, ""),
        (1, "1 row with a gap in a number: put where what it has fits best"),
        (2, "2 rows with gaps in numbers: put where what they have fits best"),
    ],
)
def test_rows_with_gaps_are_told_as_one_would(
    n: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_placed(n)
    assert capsys.readouterr().err.strip() == said


def test_a_few_gaps_beside_other_kinds_of_fields(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    kind = rng.integers(0, KINDS, N)
    size, weight = (np.array([1.0, 6.0, 15.0])[kind] + rng.normal(0.0, 0.3, N) for _ in range(2))
    lines = [
        f"{size[i]:.3f},{'' if i in (3, 50) else f'{weight[i]:.3f}'},{COUNTRIES[kind[i]]}"
        for i in range(N)
    ]
    (clean / "t.csv").write_text("\n".join(["size,weight,country", *lines]) + "\n")
    result = weald("fit", "t.csv", *QUICK, "--chains", "1", "--out", "o.csv", "--output", "json")
    assert result.code == 0, result.err
    assert "2 rows with gaps in numbers: put where what they have fits best" in result.err
    answer = json.loads(result.out)
    assert (answer["family"], answer["n_observations"]) == ("mixed", N)
    assigned = list(csv.DictReader((clean / "o.csv").read_text().splitlines()))
    found = np.array([int(row["group"]) for row in assigned])
    assert adjusted_rand_index(found, kind) == 1.0


def test_copies_of_rows_are_seen_once_and_counted(clean: Path, weald: Command) -> None:
    """As if they were not there, but for the sizes: each pair of equal rows was a cluster."""
    wine = load_wine().data
    copied = np.arange(0, len(wine), 6)
    answers, told, found = [], "", []
    for values in (wine, np.vstack([wine, wine[copied]])):
        np.savetxt("wine.csv", values, "%.6g", ",", header=",".join("abcdefghijklm"), comments="")
        sweeps = ("--iterations", "20", "--chains", "1", "--family", "gaussian")
        files = ("--out", "o.csv", "--trace", "t.npz")
        result = weald("fit", "wine.csv", *sweeps, *files, "--output", "json")
        assert result.code == 0, result.err
        answers.append(json.loads(result.out))
        told = result.err
        assigned = list(csv.DictReader((clean / "o.csv").read_text().splitlines()))
        found.append([tuple(row.values())[1:] for row in assigned])
    assert f"{len(copied)} rows are exact copies of others: each is seen once" in told
    before, after = answers
    assert "n_copies" not in before
    assert (after["n_observations"], after["n_copies"]) == (len(found[1]), len(copied))
    assert found[1] == found[0] + [found[0][at] for at in copied.tolist()]
    assert sum(row["size"] for row in after["clusters"]) == len(found[1])
    for each in ("n_clusters", "verdict", "log_joint", "settled"):
        assert after[each] == before[each]
    report = weald("report", "wine.csv", "--trace", "t.npz")
    assert report.code == 0, report.err
    assert f"{len(wine)} observations" in (clean / "weald-report.html").read_text()
    given = weald("fit", "wine.csv", *QUICK, "--param", "kappa=0.1", "--output", "json")
    assert "n_copies" not in json.loads(given.out)


def test_semicolons_and_a_slip_in_a_column(weald: Command) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f};{b:.3f};{c:.3f}" for a, b, c in rng.normal(size=(N, 3))]
    rows[7] = "0.1;0.2;oops"
    Path("t.csv").write_text("\n".join(["a;b;c", *rows]))
    for chosen in ((), ("--columns", "a,b,c")):
        result = weald("fit", "t.csv", *QUICK, *chosen, "--out", "o.csv", "--output", "json")
        answer = json.loads(result.out)
        assert (answer["n_features"], answer["n_observations"]) == (3, N - 1)
        assert "t.csv: 1 of 90 rows was refused, the rest is fitted" in result.err
        assert "line 9: " in result.err
        assert "'c' should be a number, is 'oops'" in result.err
        assert rows_of(Path("o.csv")) == [*range(7), *range(8, N)]
    # A column that is not asked for refuses nobody.
    assert "refused" not in weald("fit", "t.csv", *QUICK, "--columns", "a,b").err


@pytest.mark.parametrize("word", ["NA", "n/a", "?", " - "])
def test_words_for_nothing_are_gaps(word: str, clean: Path, weald: Command) -> None:
    """A column in which a fifth of the cells say so is one of numbers all the same."""
    rng = np.random.default_rng(1)
    kind = np.arange(N) % 2
    size, weight = (np.array([1.0, 9.0])[kind] + rng.normal(0.0, 0.3, N) for _ in range(2))
    lines = [
        f"{a:.3f},{word if i % 5 == 0 else f'{b:.3f}'}"
        for i, (a, b) in enumerate(zip(size, weight, strict=True))
    ]
    (clean / "t.csv").write_text("\n".join(["size,weight", *lines]))
    for chosen in ((), ("--columns", "size,weight", "--family", "diagonal")):
        result = weald("fit", "t.csv", *QUICK, "--chains", "1", *chosen, "--output", "json")
        assert result.code == 0, result.err
        answer = json.loads(result.out)
        found = tuple(answer[name] for name in ("family", "n_features", "n_observations"))
        assert found == ("diagonal", 2, N)
        assert "refused" not in result.err


def test_a_table_of_words_without_a_header(clean: Path, weald: Command) -> None:
    rows = [("y,n,y" if i % 2 else "n,y,n") + f",{i // 2 % 3}" for i in range(N)]
    (clean / "t.csv").write_text("\n".join(rows))
    result = weald("fit", "t.csv", *QUICK, "--chains", "1", "--output", "json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert (answer["n_observations"], answer["n_features"]) == (N, 4)


def rows_of(path: Path) -> list[int]:
    """Rows that have a line in what ``--out`` wrote."""
    return [int(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]


# The parts of the orders, in order, which other tests compile as well.
COUNTRIES, KINDS = ("NO", "SE", "DK"), 3


def orders(path: Path, rng: np.random.Generator) -> Path:
    """Orders of three kinds with a key, gaps, a slip, and a row that has a cell too many."""
    kind = rng.integers(0, KINDS, N)
    size = np.array([1.0, 6.0, 15.0])[kind] + rng.normal(0.0, 0.3, N)
    lines = [
        f"o{i},{'' if i % 20 == 3 else size[i]},{COUNTRIES[kind[i]]},{'yes' if kind[i] else 'no'}"
        for i in range(N)
    ]
    lines[9] = "o9,oops,NO,no"
    lines[12] += ",more"
    path.write_text("\n".join(["id,size,country,express", *lines]) + "\n")
    return path


def test_a_table_is_taken_for_what_its_columns_are(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    path = orders(clean / "orders.csv", rng)
    files = ("--trace", "t.npz", "--out", "o.csv", "--test", "orders.csv")
    result = weald("fit", str(path), *QUICK, "--chains", "1", *files, "--output", "json")
    assert result.code == 0, result.err
    for told in (
        "id: key, by its name and values",
        "size: a number; no number in 1 of 84 records, as 'oops'; empty in 5 of 89 records",
        "country: a category: 3 values that repeat",
        "express: a flag: yes or no in every record",
        "2 of 90 rows were refused, the rest is fitted",
        "line 11: field 'size' should be a number, is 'oops'",
        "line 14: more cells than the header",
    ):
        assert told in result.err
    answer = json.loads(result.out)
    assert (answer["family"], answer["n_observations"]) == ("mixed", N - 2)
    features = [row["features"] for row in answer["clusters"]]
    assert {each["country"]["centre"] for each in features} <= set(COUNTRIES)
    assert rows_of(Path("o.csv")) == [*range(9), 10, 11, *range(13, N)]
    assert answer["held_out"]["n"] == N - 2
    assert weald("report", str(path), "--trace", "t.npz", "--out", "r.html").code == 0
    # A feature that is called "size" does not take the place of the clusters' sizes.
    table = weald("fit", str(path), *QUICK, "--chains", "1", "--wide").out
    assert "kind=" not in table
    numbers = weald("fit", str(path), *QUICK, "--family", "diagonal", "--output", "json")
    assert json.loads(numbers.out)["n_features"] == 1
    assert "country: left out: family diagonal takes numbers; it is a category" in numbers.err


def test_lines_that_are_no_records_and_commas_in_numbers(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    """As a stream would, a fit passes over broken lines; it also reads what no stream reads."""
    size = np.repeat([1.0, 9.0], N // 2) + rng.normal(0.0, 0.3, N)
    lines = [json.dumps({"size": each, "country": "NO" if each < 5 else "SE"}) for each in size]
    lines[4] = '{"size": 1.2, "coun'
    (clean / "t.jsonl").write_text("\n".join(lines))
    result = weald("fit", "t.jsonl", *QUICK, "--chains", "1", "--out", "o.csv", "--output", "json")
    assert result.code == 0, result.err
    assert "1 of 90 rows was refused" in result.err
    assert "line 5: is not JSON" in result.err
    assert rows_of(Path("o.csv")) == [*range(4), *range(5, N)]
    assert json.loads(result.out)["n_clusters"] == 2
    text = "size;country\n" + "".join(f"{each};{'NO' if each < 5 else 'SE'}\n" for each in size)
    (clean / "t.csv").write_text(text.replace(".", ","))
    result = weald("fit", "t.csv", *QUICK, "--chains", "1", "--output", "json")
    assert result.code == 0, result.err
    assert "t.csv: commas are decimal points in size" in result.err
    answer = json.loads(result.out)
    assert (answer["family"], answer["n_observations"]) == ("mixed", N)
    centres = sorted(row["features"]["size"]["centre"] for row in answer["clusters"])
    assert centres == pytest.approx([1.0, 9.0], abs=0.3)


def test_a_file_is_read_as_its_stream_would(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    (clean / "weald.toml").write_text(
        '[schema]\nfields = [{ name = "size" }, '
        '{ name = "n", path = "of.n", scale = "log", spread = 2.0 }]\n'
        'key = "id"\n[model]\nfamily = "diagonal"\nprior = "mfm"\nprior_params = { mean = 4.0 }\n'
    )
    records = [
        {"id": i, "size": float(size), "of": {"n": 10 * (i % 5)}, "other": "x"}
        for i, size in enumerate(rng.normal(size=40))
    ]
    records[3]["size"] = None
    del records[5]["id"]
    text = "\n".join(json.dumps(each) for each in records)
    (clean / "day.jsonl").write_text(text + "\n\n{oops\n")
    args = ("fit", "day.jsonl", *QUICK, "--config", "weald.toml", "--output", "json")
    result = weald(*args)
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert (answer["family"], answer["prior"], answer["n_observations"]) == ("diagonal", "mfm", 38)
    assert "3 of 41 rows were refused" in result.err
    for told in ("line 4: field 'size'", "line 6: field 'id' is missing", "line 42: "):
        assert told in result.err
    # In the file's own units, of which the fit saw logarithms.
    features = [row["features"]["n"]["centre"] for row in answer["clusters"]]
    assert all(0.0 <= centre <= 40.0 for centre in features)
    assert max(features) > 5.0
    assert json.loads(weald(*args, "--prior", "dp").out)["prior"] == "dp"
    (clean / "day.csv").write_text("id;size\n1;2.0\n")
    refused = weald("fit", "day.csv", "--config", "weald.toml")
    assert refused.code == ExitCode.USAGE
    assert "parted by semicolons" in refused.err
    assert "parted by semicolons" in weald("init", "new", "--from-sample", "day.csv").err


def test_a_prior_takes_its_parameters(points: Path, weald: Command) -> None:
    args = ("--prior", "mfm", "--prior-param", "gamma=2.0", "--prior-param", "mean=4", "--output")
    answer = json.loads(weald("fit", str(points), *QUICK, *args, "json").out)
    assert answer["prior"] == "mfm"
    assert answer["n_clusters"] == 3
    args = ("--prior", "emm", "--sigma", "0.5", "--prior-param", "kmax=20", "--prior-param")
    answer = json.loads(weald("fit", str(points), *QUICK, *args, "mu=1.5", "--output", "json").out)
    assert (answer["prior"], answer["n_clusters"]) == ("emm", 3)
    assert answer["hyper"]["sigma"] == 0.5
    # The three clusters are seen; how many entities nobody mentions is up to the prior.
    assert answer["n_entities"] >= 3.0
    assert answer["n_entities_sd"] >= 0.0
    told = " ".join(weald("fit", "--help").out.split())
    assert all(name in told for name in (*PRIORS, *FAMILIES))
    assert "gamma and mean of mfm, mu, sigma and kmax of emm" in told
    refused = weald("fit", str(points), *QUICK, "--prior", "mfm", "--prior-param", "gamma")
    assert "--prior-param gamma: expected NAME=VALUE" in refused.err


def test_entities_are_moved_under_their_prior(points: Path, weald: Command) -> None:
    args = ("fit", str(points), *QUICK, "--kernel", "sdds-entities,gibbs", "--output", "json")
    answer = json.loads(weald(*args, "--prior", "emm", "--prior-param", "kmax=20").out)
    assert answer["n_clusters"] == 3
    (moved,) = [row for row in answer["kernels"] if row["kernel"] == "sdds-entities"]
    assert moved["claim"] == "exact"
    assert moved["proposed"] > 0
    refused = weald(*args)
    assert refused.code == ExitCode.USAGE
    assert "sdds-entities moves entities that may be empty, which the prior emm has" in refused.err


def test_a_fit_without_clusters_is_doubted(clean: Path, weald: Command) -> None:
    """Parted at random by a chain that has not moved: the rows are of one kind."""
    np.savez(clean / "t.npz", X=np.random.default_rng(1).normal(size=(200, 2)))
    args = ["--init", "random:8", "--iterations", "1", "--kernel", "rsm", "--fixed-base"]
    args += ["--chains", "1"]
    result = weald("fit", "t.npz", *args, "--output", "json")
    verdict = json.loads(result.out)["verdict"]
    assert verdict["status"] == "warn"
    assert "no better than one cluster" in " ".join(verdict["reasons"])
    assert "reason 1" in weald("fit", "t.npz", *args).out


def test_groups_that_say_where_a_zero_stands_for_nothing_are_doubted(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    """Rows of one kind, in half of which a number was not taken and is 0."""
    values = np.column_stack([rng.normal(60.0, 9.0, 4 * N), rng.normal(size=4 * N)])
    values[::2, 0] = 0.0
    path = clean / "t.csv"
    path.write_text("weight,x\n" + "".join(f"{a},{b}\n" for a, b in values))
    args = ("fit", "t.csv", *QUICK, "--chains", "1", "--family", "diagonal", "--output", "json")
    reasons = json.loads(weald(*args).out)["verdict"]["reasons"]
    assert "one value that no other comes near, in weight: if it says" in " ".join(reasons)
    text = path.read_text().replace("\n0.0,", "\n,")
    path.write_text(text)
    assert "no other comes near" not in weald(*args).out


def test_trace_has_every_iteration_of_every_chain(points: Path, weald: Command) -> None:
    result = weald("fit", str(points), *QUICK, "--chains", "2", "--trace", "t.npz")
    assert result.code == 0, result.err
    with np.load("t.npz", allow_pickle=False) as trace:
        assert trace["labels"].shape == (2, 10, N)
        assert trace["labels"].dtype == np.int32
        for name in ("log_joint", "n_clusters", "seconds"):
            assert trace[name].shape == (2, 10)
        assert trace["hyper"].shape[:2] == (2, 10)
        n_moves = len(trace["moves"])
        for name in ("proposed", "accepted", "mean_log_ratio"):
            assert trace[name].shape == (2, 10, n_moves)
        assert trace["n_iterations"].tolist() == [10, 10]


def test_the_same_seed_gives_the_same_trace(points: Path, weald: Command) -> None:
    for name in ("a.npz", "b.npz"):
        weald("fit", str(points), *QUICK, "--chains", "2", "--seed", "5", "--trace", name)
    with np.load("a.npz") as a, np.load("b.npz") as b:
        np.testing.assert_array_equal(a["labels"], b["labels"])
        np.testing.assert_array_equal(a["log_joint"], b["log_joint"])


def test_every_start_and_consensus_and_time_instead_of_sweeps(points: Path, weald: Command) -> None:
    for extra in (
        ("--init", "one", "--consensus", "vi"),
        ("--init", "random:3", "--consensus", "binder"),
        ("--init", "singletons", "--fixed-hyper", "--alpha", "0.5"),
        ("--prior", "nggp", "--alpha", "1", "--sigma", "0.2"),
        ("--param", "kappa=0.05", "--param", "psi=1.5", "--param", "mean=[0, 0]"),
    ):
        result = weald("fit", str(points), *QUICK, *extra, "--output", "json")
        assert result.code == 0, result.err
    timed = weald("fit", str(points), "--seconds", "0.2", "--kernel", "gibbs", "--output", "json")
    assert json.loads(timed.out)["seconds"] >= 0.2


def test_columns_of_a_csv(clean: Path, weald: Command, rng: np.random.Generator) -> None:
    lines = [f"n{i},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(30, 2)).tolist())]
    (clean / "x.csv").write_text("\n".join(["name,a,b", *lines]) + "\n")
    result = weald("fit", "x.csv", *QUICK, "--output", "json")
    assert "left out: name" in result.err
    assert set(json.loads(result.out)["clusters"][0]["features"]) == {"a", "b"}
    one = weald("fit", "x.csv", *QUICK, "--columns", "b", "--output", "json")
    assert set(json.loads(one.out)["clusters"][0]["features"]) == {"b"}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("--kernel nonesuch", "no kernel 'nonesuch': choose among"),
        ("--family nonesuch", "no family 'nonesuch': choose among"),
        ("--family gausian", "no family 'gausian': did you mean gaussian?"),
        ("--config here --columns x1", "goes without --columns"),
        ("--prior nonesuch", "no prior 'nonesuch': choose among"),
        ("--init sideways", "sideways"),
        ("--param kappa", "expected NAME=VALUE"),
        ("--param kappa=much", "neither a number nor JSON"),
        ("--param kapa=1", "kapa"),
        ("--param kappa=-1", "kappa"),
        ("--iterations 5 --seconds 5", "not both"),
        ("--columns nonesuch", "there are x1, x2"),
    ],
)
def test_mistakes_are_usage_errors(extra: str, message: str, points: Path, weald: Command) -> None:
    result = weald("fit", str(points), *extra.split())
    assert result.code == ExitCode.USAGE, result.err
    assert message in result.err


def test_a_missing_file_is_not_found(weald: Command) -> None:
    assert weald("fit", "nowhere.npy").code == ExitCode.NOT_FOUND


def test_an_output_that_cannot_be_written_is_a_failure(points: Path, weald: Command) -> None:
    result = weald("fit", str(points), *QUICK, "--out", "no/such/folder.csv")
    assert result.code == ExitCode.FAILURE
    assert "cannot write no/such/folder.csv" in result.err


def test_parameters_are_numbers_or_json() -> None:
    assert parse_parameters(["kappa=0.1", "psi=[[1, 0], [0, 1]]", "mean=[1,2]"]) == {
        "kappa": 0.1,
        "psi": [[1, 0], [0, 1]],
        "mean": [1, 2],
    }
    with pytest.raises(UsageError):
        parse_parameters(["=1"])


def test_the_adjusted_rand_index() -> None:
    a = np.array([0, 0, 1, 1])
    assert adjusted_rand_index(a, np.array([5, 5, 2, 2])) == 1.0
    assert adjusted_rand_index(a, np.array([0, 1, 0, 1])) == pytest.approx(-0.5)
    assert adjusted_rand_index(np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)) == 1.0


def test_whole_numbers_by_their_logarithm_are_moved_beside_nothing_else_too() -> None:
    values = np.random.default_rng(0).poisson(3.0, size=(400, 2)).astype(np.float64)
    fields = (FieldSettings("n", scale="log"), FieldSettings("size"))
    schema = Schema.of(SchemaSettings(fields=fields))
    assert schema.scaling is not None
    read, every = schema.scaling(values), np.ones(400, dtype=np.bool_)
    for family in ("auto", "gaussian", "diagonal"):
        seen = as_kinds_are_known(schema, read, FitSettings(family=family), every)
        assert np.unique(seen[:, 0]).size == 400
        # By half a step, as wide as it is upwards; of 400 the error of that is .018.
        moves = (seen - read)[:, 0] / (2.0 * np.log1p(0.5 / (1.0 + values[:, 0])))
        assert moves.std() == pytest.approx(0.5, abs=0.07)
        assert (seen[:, 1] == read[:, 1]).all()
    plain = Schema.of(SchemaSettings(fields=(FieldSettings("n"), FieldSettings("size"))))
    assert as_kinds_are_known(plain, values, FitSettings(family="gaussian"), every) is values
    assert as_kinds_are_known(None, values, FitSettings(family="gaussian"), every) is values
