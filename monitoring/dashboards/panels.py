"""The parts of a Grafana dashboard, and their classic JSON.

Small on purpose: the few kinds of panel that Weald's dashboards use, laid out in rows from left to
right. What Grafana shows as the default is left out, so that a diff of the JSON reads well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["Annotation", "Dashboard", "Panel", "Query", "Row"]

Json = dict[str, Any]

COLUMNS: Final = 24
SCHEMA_VERSION: Final = 41
SOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Query:
    """One PromQL query and the legend of its series (a Grafana legend template)."""

    expr: str
    legend: str


@dataclass(frozen=True)
class Annotation:
    """Marks on every panel, at the times at which a PromQL query has a value.

    Parameters
    ----------
    name, expr : str
    text : str
        What a mark says (a Grafana legend template).
    color : str
        Grafana's name of a colour.
    """

    name: str
    expr: str
    text: str
    color: str

    def json(self) -> Json:
        """Return the annotation's JSON."""
        return {
            "name": self.name,
            "datasource": SOURCE,
            "enable": True,
            "iconColor": self.color,
            "target": {"refId": "Anno", "expr": self.expr, "interval": "60s"},
            "titleFormat": self.name,
            "textFormat": self.text,
        }


@dataclass(frozen=True)
class Panel:
    """One panel.

    Parameters
    ----------
    title, description : str
        The description says how to read the panel, and what is out of order.
    unit : str
        Grafana's name of the unit: ``short``, ``s``, ``cps``, ``percentunit``, ``bytes``, ``none``.
    queries : sequence of Query
        A panel of kind ``table`` shows the labels of its only query.
    kind : {"timeseries", "stat", "table", "state-timeline"}
        In a ``state-timeline`` 1 is well and 0 is not.
    width : int
        In 24ths of the page.
    warn_above : float, optional
        A stat turns amber above this value.
    stacked : bool
        Whether a time series stacks.
    live : bool
        Whether the panel links to the stream's live page.
    """

    title: str
    description: str
    unit: str
    queries: Sequence[Query]
    kind: Literal["timeseries", "stat", "table", "state-timeline"] = "timeseries"
    width: int = 8
    warn_above: float | None = None
    stacked: bool = False
    live: bool = False

    @property
    def height(self) -> int:
        """In rows of Grafana's grid."""
        return 4 if self.kind == "stat" else 8

    def json(self, number: int, x: int, y: int) -> Json:
        """Return the panel's JSON at a place of the grid."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
            "targets": [
                self._target(query, ref)
                for query, ref in zip(self.queries, _letters(), strict=False)
            ],
            **({"transformations": _LABELS_ONLY} if self.kind == "table" else {}),
            **({"links": [_LIVE_PAGE]} if self.live else {}),
        }

    def _target(self, query: Query, ref: str) -> Json:
        shape: Json = {"instant": True, "range": False, "format": "table"}
        return {
            "refId": ref,
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": query.expr,
            "legendFormat": query.legend,
            **(shape if self.kind == "table" else {"range": True}),
        }

    def _defaults(self) -> Json:
        steps: list[Json] = [{"color": "green", "value": None}]
        if self.warn_above is not None:
            steps.append({"color": "orange", "value": self.warn_above})
        defaults: Json = {
            "unit": self.unit,
            "thresholds": {"mode": "absolute", "steps": steps},
        }
        if self.kind == "timeseries":
            defaults["custom"] = {
                "lineWidth": 1,
                "fillOpacity": 30 if self.stacked else 5,
                "showPoints": "never",
                # A scrape missed now and then is no gap in the stream.
                "spanNulls": 120_000,
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            }
        if self.kind == "state-timeline":
            defaults["mappings"] = [_WELL_OR_NOT]
            defaults["custom"] = {"lineWidth": 0, "fillOpacity": 70}
        return defaults

    def _options(self) -> Json:
        if self.kind == "stat":
            return {
                "colorMode": "value",
                "graphMode": "area",
                "textMode": "auto",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            }
        if self.kind == "table":
            return {"showHeader": True}
        if self.kind == "state-timeline":
            return {"mergeValues": True, "showValue": "never", "rowHeight": 0.9}
        return {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }


_WELL_OR_NOT: Final[Json] = {
    "type": "value",
    "options": {
        "0": {"text": "look here", "color": "orange", "index": 0},
        "1": {"text": "well", "color": "green", "index": 1},
    },
}
_LIVE_PAGE: Final[Json] = {
    "type": "link",
    "title": "Live page",
    "url": "${live}",
    "tags": [],
    "asDropdown": False,
    "includeVars": False,
    "keepTime": False,
    "targetBlank": True,
    "icon": "external link",
    "tooltip": "",
}
_LABELS_ONLY: Final = [
    {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True, "Value": True, "__name__": True},
            "includeByName": {},
            "indexByName": {},
            "renameByName": {},
        },
    }
]


@dataclass(frozen=True)
class Row:
    """A titled row of panels; they wrap when they are wider than the page."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Dashboard:
    """One dashboard: ``uid`` is also the name of its file and part of its address."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    annotations: Sequence[Annotation] = ()

    def json(self) -> Json:
        """Return the dashboard in Grafana's classic JSON."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["weald"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "browser",
            "links": [_link_to_siblings()],
            "templating": {"list": _variables()},
            "annotations": {"list": [each.json() for each in self.annotations]},
            "panels": list(self._placed()),
        }

    def _placed(self) -> Iterator[Json]:
        number, y = 1, 0
        for row in self.rows:
            yield _heading(row.title, number, y)
            number, y, x, deepest = number + 1, y + 1, 0, 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, deepest = 0, y + deepest, 0
                yield panel.json(number, x, y)
                number, x, deepest = number + 1, x + panel.width, max(deepest, panel.height)
            y += deepest


def _letters() -> Sequence[str]:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _heading(title: str, number: int, y: int) -> Json:
    place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": place,
        "panels": [],
    }


def _link_to_siblings() -> Json:
    return {
        "type": "dashboards",
        "title": "Weald",
        "tags": ["weald"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _variables() -> list[Json]:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
    }
    chosen = {
        "job": "weald_build_info",
        "instance": 'weald_build_info{job=~"$job"}',
        "stream": 'weald_build_info{job=~"$job", instance=~"$instance"}',
    }
    live = {
        "name": "live",
        "label": "Live page",
        "type": "textbox",
        "query": "http://127.0.0.1:8080/",
        "hide": 0,
    }
    return [source, *(_variable(name, series) for name, series in chosen.items()), live]


def _variable(name: str, series: str) -> Json:
    query = f"label_values({series}, {name})"
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": f"{name}-values"},
        # 2 is "when the time range changes": instances come and go.
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }
