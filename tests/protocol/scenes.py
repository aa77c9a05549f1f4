"""Within which bounds the models of the protocol are searched, and their wrong forms.

A scene is what a search begins with, where it differs from the least of its model.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["MODELS", "Bounds", "Form", "Scenes"]

Bounds = dict[str, int]

# Kinds of commands, as the model numbers them.
CREATE, DROP, KEEP = 1, 2, 4


@dataclass(frozen=True)
class Form:
    """A wrong form of the protocol.

    Parameters
    ----------
    name : str
        As in the model.
    promise : str
        What it breaks first.
    bounds : dict
        Within which it does.
    """

    name: str
    promise: str
    bounds: Bounds


@dataclass(frozen=True)
class Scenes:
    """A model, and what it is searched for.

    Parameters
    ----------
    file : str
        The model, in this folder.
    least : dict
        What a search begins with.
    short, long : dict of str to dict
        Scenes of the suite, and those with wider bounds.
    forms : list of Form
    options : tuple of str
        Of the program that searches it.
    """

    file: str
    least: Bounds
    short: dict[str, Bounds]
    long: dict[str, Bounds]
    forms: list[Form] = field(default_factory=list)
    options: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The model."""
        return Path(__file__).with_name(self.file)

    def numbers(self) -> dict[str, int]:
        """Wrong forms, as the model numbers them."""
        _, after = self.path.read_text().split("/* Wrong forms. */")
        told = after[: after.index("\n\n")]
        return {name: int(number) for name, number in re.findall(r"#define (\w+) (\d+)", told)}


_LEAST = {"RECORDS": 2, "LEASES": 1, "KEPT": 2}
_SHORT: dict[str, Bounds] = {
    "writers": {"ROUNDS": 1, "SAVES": 1, "CRASHES": 1, "REBALANCES": 1, "LOST": 1},
    "group": {"SAVES": 1, "CRASHES": 1, "REBALANCES": 1, "RESETS": 1, "LOST": 1},
    "workers": {"RECORDS": 1, "LEASES": 2, "ROUNDS": 2, "FLUSHES": 1, "LONELY": 1},
    "replay": {"ROUNDS": 2, "PUBLICATIONS": 1, "SAVES": 2},
    "upgrade": {"ROUNDS": 1, "PUBLICATIONS": 1, "SAVES": 1, "CRASHES": 1, "DIVERGING": 1},
    "create": {"ROUNDS": 1, "SAVES": 2, "COMMANDS": 1, "KINDS": CREATE},
    "drop": {"ROUNDS": 1, "SAVES": 1, "REBALANCES": 1, "COMMANDS": 1, "KINDS": DROP},
    "keep": {"ROUNDS": 1, "SAVES": 1, "REBALANCES": 1, "COMMANDS": 1, "KINDS": KEEP},
    "two people": {"SAVES": 2, "COMMANDS": 2, "KINDS": CREATE | DROP | KEEP, "RETENTION": 1},
    "two snapshots": {"ROUNDS": 1, "SAVES": 1, "COMMANDS": 2, "KINDS": CREATE | DROP},
}
_LONG: dict[str, Bounds] = {
    "writers": {"ROUNDS": 1, "SAVES": 1, "CRASHES": 2, "REBALANCES": 1, "LOST": 1},
    "group": {"SAVES": 2, "CRASHES": 1, "REBALANCES": 2, "RESETS": 1, "LOST": 1},
    "workers": {
        "RECORDS": 1,
        "LEASES": 2,
        "ROUNDS": 2,
        "PUBLICATIONS": 1,
        "SAVES": 1,
        "CRASHES": 1,
        "FLUSHES": 1,
        "LONELY": 1,
    },
    "replay": {"ROUNDS": 2, "PUBLICATIONS": 1, "SAVES": 2, "CRASHES": 1, "DIVERGING": 1},
    "create": {"ROUNDS": 1, "SAVES": 2, "REBALANCES": 1, "COMMANDS": 1, "KINDS": CREATE},
    "drop": {"ROUNDS": 2, "SAVES": 2, "COMMANDS": 1, "KINDS": DROP, "CRASHES": 1},
    "keep": {"ROUNDS": 2, "SAVES": 2, "COMMANDS": 1, "KINDS": KEEP, "CRASHES": 1},
    "two people": {"ROUNDS": 1, "SAVES": 2, "COMMANDS": 2, "KINDS": DROP | KEEP},
    "two snapshots": {
        "ROUNDS": 1,
        "SAVES": 1,
        "COMMANDS": 2,
        "KINDS": CREATE | DROP,
        "RETENTION": 1,
    },
}

_FORMS = [
    Form("FENCE_OFF", "one_writer", _SHORT["writers"]),
    Form("OWNER_OFF", "one_writer", _SHORT["group"]),
    Form("EPOCH_OFF", "one_writer", _SHORT["writers"]),
    Form("GENERATION_OFF", "one_writer", _SHORT["writers"]),
    Form("LOCK_OFF", "one_writer", _SHORT["writers"]),
    Form("ANSWER_OF_ANOTHER", "one_writer", _SHORT["writers"]),
    Form("OFFSETS_OUTSIDE", "each_record_once", _SHORT["writers"]),
    Form("TOKEN_OFF", "adopted_under_its_token", {**_SHORT["workers"], "CRASHES": 1}),
    Form("ADOPTED_TWICE", "adopted_under_its_token", _SHORT["workers"]),
    Form("LEASES_LEFT_OPEN", "rounds_go_on", {**_SHORT["workers"], "CRASHES": 1}),
    Form("LOST_LEASES_LEFT", "rounds_go_on", _SHORT["workers"]),
    Form("PLACE_OF_THE_BEGINNING_WRONG", "continues_bit_for_bit", _SHORT["replay"]),
    Form("PLACE_WITHOUT_PUBLICATION", "continues_bit_for_bit", _SHORT["replay"]),
    Form("REPLAY_ADOPTS_AGAIN", "continues_bit_for_bit", _SHORT["replay"]),
    Form("REPLAY_TRUSTS_ITSELF", "continues_bit_for_bit", _SHORT["upgrade"]),
    Form("SNAPSHOT_WITHOUT_THE_PLACE", "continues_bit_for_bit", _SHORT["replay"]),
    Form("CREATED_WITHOUT_THE_PLACE", "continues_bit_for_bit", _SHORT["create"]),
    Form("REPLAYED_WHAT_WAS_PRUNED", "one_can_go_back", _SHORT["create"]),
    Form("PRUNED_AT_THE_SNAPSHOTS_PLACE", "continues_bit_for_bit", _SHORT["replay"]),
    Form("ROUNDS_DROPPED_BY_PLACE", "continues_bit_for_bit", _SHORT["drop"]),
    Form("NEVER_ASKS_IN_A_SILENCE", "rounds_go_on", _SHORT["drop"]),
    Form("KEPT_OF_ANOTHER_MOMENT", "one_can_go_back", _SHORT["keep"]),
    Form("KEPT_WITH_FORGOTTEN_ROUNDS", "continues_bit_for_bit", _SHORT["keep"]),
    Form("SAVED_UNASKED", "continues_bit_for_bit", _SHORT["two people"]),
    Form("GONE_SNAPSHOT_TAKEN", "each_record_once", _SHORT["two people"]),
    Form("SNAPSHOTS_DROPPED_BY_NUMBER", "continues_bit_for_bit", _SHORT["two snapshots"]),
]

_WEALD = Scenes("weald.pml", _LEAST, _SHORT, _LONG, _FORMS)

_ONE = {"DEATHS": 1, "SHOWN": 1}
_ROUNDS_SHORT: dict[str, Bounds] = {
    "deaths": {"DEATHS": 2, "SHOWN": 1},
    "snapshots": {**_ONE, "SAVES": 1},
    "two owners": {"TAKEOVERS": 1, "SHOWN": 1},
    "removals": {"RECORDS": 2, "DEATHS": 1},
    "publications": {"SHOWN": 2, "DEATHS": 2, "AWAY": 1},
    "three shards": {**_ONE, "SHARDS": 3, "ROUNDS": 1},
}
_ROUNDS_LONG: dict[str, Bounds] = {
    "deaths": {"DEATHS": 3, "SHOWN": 1},
    "snapshots": {**_ONE, "SAVES": 2},
    "two owners": {**_ONE, "TAKEOVERS": 1},
    "removals": {"RECORDS": 3, "DEATHS": 1},
    "publications": {"SHOWN": 2, "DEATHS": 3, "AWAY": 1},
    "three shards": {**_ONE, "SHARDS": 3},
}
_ROUNDS = Scenes(
    "rounds.pml",
    {"SHARDS": 2, "RECORDS": 1, "ROUNDS": 2},
    _ROUNDS_SHORT,
    _ROUNDS_LONG,
    [
        Form("ANSWERS_OF_ANY_ROUND", "answers_of_this_round", _ONE),
        Form("OPENED_BEFORE_ALL_REPORTED", "answers_of_this_round", _ONE),
        Form("HEARS_WHAT_IS_THERE", "answers_of_this_round", _ROUNDS_SHORT["two owners"]),
        Form("NO_FENCE_IN_ASKING", "asked_by_one", _ROUNDS_SHORT["two owners"]),
        Form("NO_FENCE_IN_ANSWERING", "answered_alike", _ROUNDS_SHORT["two owners"]),
        Form("ASKED_OUTSIDE", "rounds_end", _ONE),
        Form("DECIDED_AGAIN", "asked_by_one", _ONE),
        Form("GONE_AT_THE_TURN", "needed_messages_stay", _ONE),
        Form("ANSWERS_FROM_THE_PRESENT", "answered_alike", _ONE),
        Form("NOT_ANSWERED_AGAIN", "answered_alike", _ONE),
        Form("WRITTEN_AGAIN", "answered_alike", _ONE),
        Form("ROUND_GIVEN_UP", "answered_alike", _ONE),
        Form("SAVED_WITHOUT_THE_DRAWN", "answered_alike", _ROUNDS_SHORT["snapshots"]),
        Form("LEAVES_IN_A_ROUND", "none_leaves_in_a_round", _ROUNDS_SHORT["removals"]),
        Form("JOURNAL_OUTSIDE", "each_turn_once", _ONE),
        Form("PLACE_OF_THE_REPORT_WRONG", "replayed_bit_for_bit", _ONE),
        Form("REPLAY_SHOWS_NOTHING", "replayed_bit_for_bit", _ONE),
        Form("NAMED_BY_EACH", "shards_agree", _ONE),
        Form("IDS_AT_RANDOM", "ids_are_new", _ROUNDS_SHORT["two owners"]),
        Form("IDS_OF_ONE_COUNT", "ids_are_new", _ONE),
        Form("PUBLISHED_OUTSIDE", "ids_are_new", _ONE),
        Form("SUMMED_BEFORE_THE_READING", "sums_are_told", _ROUNDS_SHORT["publications"]),
    ],
    # Its states are large.
    ("-DCOLLAPSE",),
)

MODELS = [_WEALD, _ROUNDS]
