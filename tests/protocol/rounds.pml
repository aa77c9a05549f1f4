/*
 * How the shards of one stream make a round together, as a model: reports, questions and answers in
 * SQL, turns and the journal, publications and ids, while owners die and others live on unawares.
 *
 * Each shard has two processes that may write it. What they do at once is a step, which names the
 * function that it stands for; functions without a file are those of stream/engine/shard_rounds.py.
 * Whoever has something to write has it in hand first, and writes it with its next step: in between
 * it may die or be fenced. What must hold are the variables under "Promises", named as in
 * docs/guarantees.md. Which wrong form is played, if any, and the bounds come from the environment
 * (spin.py).
 *
 * What arrays say stands for is a number into which all goes that they follow from. Two states of a
 * shard are the same, bit for bit, when these numbers are.
 */

/* Room: bounds may be lower. */
#define MOST_SHARDS 3
#define MOST_ROUNDS 2
#define OWNERS 6

c_decl {
\#include "told.h"
    static int wrong, shards, records, rounds, shown, n_saves, n_deaths, n_takeovers, n_away;

    static void read_bounds(void)
    {
        wrong = told("WRONG"); shards = told("SHARDS"); records = told("RECORDS");
        rounds = told("ROUNDS"); shown = told("SHOWN"); n_saves = told("SAVES");
        n_deaths = told("DEATHS"); n_takeovers = told("TAKEOVERS"); n_away = told("AWAY");
    }
}

#define SHARDS c_expr { shards }
#define RECORDS c_expr { records }        /* of each shard */
#define ROUNDS c_expr { rounds }
#define PUBLISHED c_expr { shown }        /* rounds that may be published */
#define SAVES c_expr { n_saves }          /* snapshots */
#define DEATHS c_expr { n_deaths }
#define TAKEOVERS c_expr { n_takeovers }  /* from an owner that lives on */
#define UNANSWERED c_expr { n_away }      /* questions that SQL does not answer */
#define is(form) c_expr { wrong == form }

/* Wrong forms. */
#define ANSWERS_OF_ANY_ROUND 1
#define OPENED_BEFORE_ALL_REPORTED 2
#define HEARS_WHAT_IS_THERE 3
#define NO_FENCE_IN_ASKING 4
#define ASKED_OUTSIDE 5
#define DECIDED_AGAIN 6
#define GONE_AT_THE_TURN 7
#define ANSWERS_FROM_THE_PRESENT 8
#define NOT_ANSWERED_AGAIN 9
#define WRITTEN_AGAIN 10
#define ROUND_GIVEN_UP 11
#define SAVED_WITHOUT_THE_DRAWN 12
#define LEAVES_IN_A_ROUND 13
#define JOURNAL_OUTSIDE 14
#define PLACE_OF_THE_REPORT_WRONG 15
#define REPLAY_SHOWS_NOTHING 16
#define NAMED_BY_EACH 17
#define IDS_AT_RANDOM 18
#define IDS_OF_ONE_COUNT 19
#define PUBLISHED_OUTSIDE 20
#define SUMMED_BEFORE_THE_READING 21
#define NO_FENCE_IN_ANSWERING 22

/* Steps of a round (mcmc/sharded/round_steps.py); sides go round in one step here. */
#define REPORT 0
#define ITEMS 1
#define REDRAW 2
#define SIDES 3
#define TURN 4
#define SHOW 5       /* beside the turn: what is published, and what a shard then has of it */
#define STEPS 6

/* Where a process is. */
#define GONE 0       /* dead, or a member that has nothing */
#define CLAIMED 1    /* Writer._take is done */
#define RUNS 2
#define LOOKED 3     /* _Keeper._all_said was true */
#define HAS 4        /* a batch to commit */
#define HALF 5       /* wrong forms: one of two transactions is done */

typedef Model {
    byte seq;        /* observations */
    byte due;        /* of these are to leave */
    byte ids;        /* clusters that began here */
    byte pub;        /* the newest publication */
    byte taken;      /* rounds whose turn was taken */
    byte out;        /* the round that is out, 0 for none, and the place of its report */
    byte bseq;
    byte bpub;
    byte answered;   /* the last step of it */
    int drawn;       /* what it has been in it: its report, and all questions since */
    int hist
};

typedef Turn {       /* a row of the journal (AdoptionRow) */
    bool there;
    byte bseq;
    byte bpub;
    byte seq;
    byte pub;
    byte shown;
    int names;
    int payload
};

typedef Part {       /* rows of a shard in SQL */
    byte owner;      /* process + 1 */
    byte epoch;
    byte n;
    byte reported;   /* the newest lease, its place, and whether it is open */
    byte bseq;
    byte bpub;
    bool open;
    Turn turn[MOST_ROUNDS + 1];
    byte saved;
    Model snap;
    /* What an undisturbed run has then. */
    byte ids;
    byte shown;
    int drawn;
    int hist
};

typedef Round {      /* a row of shard_rounds, and of shard_messages those that are about it */
    int asked[STEPS];
    int said[STEPS * MOST_SHARDS];
    int name;        /* hyperparameters and next_name */
    bool summed;     /* rows_of_sums are written */
    /* What was said and asked, whether it is there or not. */
    byte id;
    byte was_asked
};

typedef Owner {
    byte pc;
    byte epoch;
    Model m;
    byte told;       /* ShardRounds._told */
    /* _Keeper: its row, its steps, and the round whose sums are told */
    byte number;
    byte step;
    int steps;
    byte summed;
    /* BatchCommit */
    bool records;
    byte id;         /* of a cluster that begins */
    bool reports;
    byte answers;
    int payload;
    bool takes;
    Turn t;
    byte asks;       /* the round, 0 for none; `step` is what is asked */
    int question;
    int name;
    byte publishes;
    byte new;        /* the id that it gives */
    byte sums
};

Part sql[MOST_SHARDS];
Round round[MOST_ROUNDS + 2];
byte number;         /* of the newest round, and its step */
byte step;
byte pubs;           /* publications of the whole, and the last id of theirs */
byte last;
int given;           /* all ids */

Owner w[OWNERS];

bool began;
byte published;
byte saves;
byte deaths;
byte takeovers;
byte unanswered;

/* Promises. */
hidden byte answers_of_this_round;
hidden byte asked_by_one;
hidden byte answered_alike;
hidden byte needed_messages_stay;
hidden byte none_leaves_in_a_round;
hidden byte each_turn_once;
hidden byte replayed_bit_for_bit;
hidden byte shards_agree;
hidden byte ids_are_new;
hidden byte sums_are_told;
hidden byte rounds_end;

/* Scratch, within a step. */
hidden Model x;
hidden byte i;
hidden byte j;
hidden byte k;
hidden byte r;
hidden byte going;
hidden byte complete;
hidden byte right;
hidden int g;
hidden int q;
hidden int v;

#define MINE (_pid % MOST_SHARDS)
#define me w[_pid]
#define part sql[MINE]
#define MASK 1073741823
#define mix(a, b) (((((a) * 69069 + (b) * 40503 + 12345) ^ ((a) >> 11)) & MASK) | 1)
#define said(r, s, k) round[r].said[(k) * MOST_SHARDS + (s)]
#define owns (part.owner == _pid + 1)
/* _Keeper._all_said */
#define has_said(r, s, k) (said(r, s, k) > 0                                                       \
    || (is(ANSWERS_OF_ANY_ROUND) && r > 1 && said(r - 1, s, k) > 0)                                \
    || (is(OPENED_BEFORE_ALL_REPORTED) && k == REPORT && s > 0))
#define all_said(r, k) (has_said(r, 0, k) && has_said(r, 1, k) && (SHARDS < 3 || has_said(r, 2, k)))
/* own_ids (stream/publication/whole.py) */
#define own_id(s, n) ((s) + 1 + ((n) - 1) * (SHARDS + 1))

inline copy(a, b) {
    a.seq = b.seq; a.due = b.due; a.ids = b.ids; a.pub = b.pub; a.taken = b.taken; a.out = b.out;
    a.bseq = b.bseq; a.bpub = b.bpub; a.answered = b.answered; a.drawn = b.drawn; a.hist = b.hist
}

inline renew(a) {
    a.seq = 0; a.due = 0; a.ids = 0; a.pub = 0; a.taken = 0; a.out = 0; a.bseq = 0; a.bpub = 0;
    a.answered = 0; a.drawn = 0; a.hist = 0
}

inline no_turn(a) {
    a.there = false; a.bseq = 0; a.bpub = 0; a.seq = 0; a.pub = 0; a.shown = 0; a.names = 0;
    a.payload = 0
}

inline no_batch() {
    me.records = false; me.id = 0; me.reports = false; me.answers = 0; me.payload = 0;
    me.takes = false; no_turn(me.t); me.asks = 0; me.question = 0; me.name = 0; me.publishes = 0;
    me.new = 0; me.sums = 0
}

/* Ownership.drop: SQL has what counts. */
inline drop() {
    me.pc = GONE; me.epoch = 0; renew(me.m); me.told = 0; me.number = 0; me.step = 0;
    me.steps = 0; me.summed = 0; no_batch()
}

/* PartShard (stream/model/part_shard.py). */

inline leave(a) {
    if
    :: a.due > 0 ->
        none_leaves_in_a_round = (a.out == 0);
        assert(none_leaves_in_a_round);
        a.hist = mix(a.hist, 2); a.due = 0
    :: else
    fi
}

/* apply: every second record takes the place of the one before, and any other begins a cluster. */
inline insert(a) {
    a.seq++; a.hist = mix(a.hist, 1);
    if
    :: a.seq % 2 == 1 -> a.ids++
    :: else ->
        a.due++;
        /* remove */
        if
        :: a.out == 0 || is(LEAVES_IN_A_ROUND) -> leave(a)
        :: else
        fi
    fi
}

/* report, and in a replay note_lent */
inline begin_round(a, which) {
    leave(a);
    a.out = which; a.bseq = a.seq; a.bpub = a.pub; a.answered = REPORT;
    a.hist = mix(a.hist, 3);
    a.drawn = mix(a.hist, which)
}

/* _show and _ended; in a replay adopt_round */
inline end_round(a, how, shows) {
    a.hist = mix(a.hist, how); a.taken = a.out; a.out = 0; a.bseq = 0; a.bpub = 0;
    a.answered = TURN; a.drawn = 0;
    if
    :: shows > 0 -> a.pub = shows; a.hist = mix(a.hist, shows)
    :: else
    fi
}

/* ReplayedRounds.catch_up (stream/recovery/replayed_rounds.py), on x of a shard. */
inline catch_up(p) {
    going = true;
    do
    :: going && r <= ROUNDS && p.turn[r].there ->
        if
        :: x.out != r && p.turn[r].bseq == x.seq && p.turn[r].bpub == x.pub -> begin_round(x, r)
        :: else
        fi;
        if
        :: x.out == r && p.turn[r].seq == x.seq && p.turn[r].pub == x.pub ->
            if
            :: is(REPLAY_SHOWS_NOTHING) -> end_round(x, p.turn[r].payload, 0)
            :: else -> end_round(x, p.turn[r].payload, p.turn[r].shown)
            fi;
            r++
        :: else -> going = false
        fi
    :: going && r <= ROUNDS && !p.turn[r].there ->
        /* The round that is out: Writer._out. */
        if
        :: p.open && p.reported == r && x.out != r && p.bseq == x.seq && p.bpub == x.pub ->
            begin_round(x, r)
        :: else
        fi;
        going = false
    :: else -> break
    od
}

/* recovery.replay, on x of a shard. */
inline replay(p) {
    r = x.taken + 1;
    catch_up(p);
    do
    :: x.seq < p.n -> insert(x); catch_up(p)
    :: else -> break
    od
}

/* _Keeper._messages: the answers of all shards to a step go into g; `complete` if all are there. */
inline hear(which, at) {
    i = 0;
    do
    :: i < SHARDS ->
        v = said(which, i, at);
        if
        :: v == 0 && is(ANSWERS_OF_ANY_ROUND) -> v = said(which - 1, i, at)
        :: else
        fi;
        complete = complete && said(which, i, at) > 0;
        g = mix(g, v);
        i++
    :: else -> break
    od
}

/* What comes after a step: a question that would be empty is left out, which all follows from. */
inline next_step(at) {
    if
    :: at < REDRAW && (round[j].said[REPORT] & 4) > 0 -> k = REDRAW
    :: at < REDRAW || at == REDRAW -> k = SIDES
    :: else -> k = TURN
    fi
}

/* _Keeper._made_again: round j up to a step, in g and k. */
inline make_again(until) {
    complete = true; g = round[j - 1].name;
    hear(j, REPORT);
    if
    :: is(DECIDED_AGAIN) -> k = ITEMS
    :: round[j].asked[ITEMS] > 0 && !is(DECIDED_AGAIN) -> k = ITEMS
    :: else -> next_step(REPORT)
    fi;
    do
    :: k < until -> hear(j, k); next_step(k)
    :: else -> break
    od
}

/* After each change of SQL: the journal, what a replay comes to, and what was said. */
inline look() {
    i = 0;
    do
    :: i < SHARDS ->
        j = 1; right = true;
        do
        :: j <= ROUNDS ->
            right = right &&
                (sql[i].turn[j].there ==
                (sql[i].reported > j || (sql[i].reported == j && !sql[i].open)));
            j++
        :: else -> break
        od;
        each_turn_once = right;
        assert(each_turn_once);
        renew(x); replay(sql[i]);
        replayed_bit_for_bit = (x.hist == sql[i].hist && x.pub == sql[i].shown &&
            x.ids == sql[i].ids);
        assert(replayed_bit_for_bit);
        if
        :: sql[i].saved > 0 ->
            copy(x, sql[i].snap); replay(sql[i]);
            replayed_bit_for_bit = (x.hist == sql[i].hist && x.pub == sql[i].shown);
            assert(replayed_bit_for_bit)
        :: else
        fi;
        i++
    :: else -> break
    od;
    renew(x);
    /* From what was said in the newest round it is made again, and every shard as it is in it. */
    if
    :: number > 0 ->
        k = 1; right = true;
        do
        :: k < STEPS ->
            right = right && ((round[number].was_asked >> k) & 1) == (round[number].asked[k] > 0);
            k++
        :: else -> break
        od;
        i = 0;
        do
        :: i < SHARDS ->
            k = REPORT;
            do
            :: k < step ->
                right = right &&
                    (said(number, i, k) > 0 || (k > REPORT && round[number].asked[k] == 0));
                k++
            :: else -> break
            od;
            i++
        :: else -> break
        od;
        needed_messages_stay = right;
        assert(needed_messages_stay)
    :: else
    fi;
    i = 0; j = 0; k = 0; v = 0; g = 0; q = 0; r = 0
}

/* What was said in a round goes. */
inline forget(which) {
    i = 0;
    do
    :: i < STEPS * MOST_SHARDS -> round[which].said[i] = 0; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < STEPS -> round[which].asked[i] = 0; i++
    :: else -> break
    od
}

/* _write_whole (storage/writing/writer.py): a publication of all shards, and its sums */
inline write_whole() {
    if
    :: me.publishes > 0 && me.pc == HAS ->
        ids_are_new = (me.publishes == pubs + 1 && ((given >> me.new) & 1) == 0);
        assert(ids_are_new);
        pubs = me.publishes; last = me.new; given = given | (1 << me.new)
    :: else
    fi;
    if
    :: me.sums > 0 -> round[me.sums].summed = true
    :: else
    fi
}

/* write_shard_rounds: what is asked */
inline write_questions() {
    if
    :: me.asks > 0 ->
        asked_by_one = (owns && round[me.asks].asked[me.step] == 0);
        assert(asked_by_one);
        round[me.asks].asked[me.step] = me.question;
        round[me.asks].was_asked = round[me.asks].was_asked | (1 << me.step);
        if
        :: me.step == TURN && me.publishes > 0 ->
            round[me.asks].asked[SHOW] = me.publishes;
            round[me.asks].was_asked = round[me.asks].was_asked | (1 << SHOW)
        :: else
        fi
    :: else
    fi
}

/* _write_round (storage/writing/shard_rounds.py), of which a new round ends the one before */
inline write_row() {
    if
    :: me.asks > number ->
        i = 0; right = true;
        do
        :: i < SHARDS -> right = right && sql[i].reported == me.asks; i++
        :: else -> break
        od;
        needed_messages_stay = right;
        assert(needed_messages_stay);
        if
        :: number > 0 ->
            i = 0; right = true;
            do
            :: i < SHARDS ->
                right = right && sql[i].turn[number].there &&
                    sql[i].turn[number].names == sql[0].turn[number].names &&
                    sql[i].turn[number].shown == round[number].asked[SHOW];
                i++
            :: else -> break
            od;
            shards_agree = right;
            assert(shards_agree);
            sums_are_told = (round[number].asked[SHOW] == 0 || round[number].summed);
            assert(sums_are_told);
            forget(number)
        :: else
        fi;
        number = me.asks; step = me.step; round[number].name = me.name
    :: me.asks > 0 && me.asks <= number ->
        step = me.step; round[me.asks].name = me.name;
        if
        :: is(GONE_AT_THE_TURN) && me.step == TURN -> forget(number)
        :: else
        fi
    :: else
    fi
}

/* write_leases (storage/writing/leases.py): the journal */
inline write_journal() {
    if
    :: me.takes ->
        each_turn_once = (!part.turn[me.m.taken].there);
        assert(each_turn_once);
        part.turn[me.m.taken].there = true;
        part.turn[me.m.taken].bseq = me.t.bseq; part.turn[me.m.taken].bpub = me.t.bpub;
        part.turn[me.m.taken].seq = me.t.seq; part.turn[me.m.taken].pub = me.t.pub;
        part.turn[me.m.taken].shown = me.t.shown; part.turn[me.m.taken].names = me.t.names;
        part.turn[me.m.taken].payload = me.t.payload
    :: else
    fi
}

/* write_batch (storage/writing/writer.py), from the fence on: all of it or nothing. */
inline write_batch() {
    part.epoch++; me.epoch++;
    part.n = me.m.seq; part.ids = me.m.ids;
    if
    :: me.id > 0 ->
        ids_are_new = (((given >> me.id) & 1) == 0);
        assert(ids_are_new);
        given = given | (1 << me.id)
    :: else
    fi;
    if
    :: me.reports ->
        answered_alike = (said(me.m.out, MINE, REPORT) == 0 && part.reported == me.m.out - 1);
        assert(answered_alike);
        part.reported = me.m.out; part.open = true; part.bseq = me.m.bseq; part.bpub = me.m.bpub;
        said(me.m.out, MINE, REPORT) = me.m.drawn;
        part.drawn = me.m.drawn
    :: else
    fi;
    write_whole();
    /* Its own questions are among those that a shard answers. */
    write_row();
    if
    :: is(ASKED_OUTSIDE)
    :: else -> write_questions()
    fi;
    if
    :: me.answers > 0 ->
        q = round[me.m.out].asked[me.answers];
        answered_alike = (said(me.m.out, MINE, me.answers) == 0 &&
            (me.payload == mix(part.drawn, q) || is(ASKED_OUTSIDE)));
        assert(answered_alike);
        said(me.m.out, MINE, me.answers) = me.payload;
        part.drawn = me.payload
    :: else
    fi;
    if
    :: me.takes ->
        q = round[me.m.taken].asked[TURN];
        answered_alike = (me.t.payload == mix(part.drawn, q) || is(ASKED_OUTSIDE));
        assert(answered_alike);
        part.open = false; part.drawn = 0; part.bseq = 0; part.bpub = 0;
        if
        :: me.t.shown > 0 -> said(me.m.taken, MINE, SHOW) = 1
        :: else
        fi
    :: else
    fi;
    if
    :: is(JOURNAL_OUTSIDE)
    :: else -> write_journal()
    fi;
    part.hist = me.m.hist; part.shown = me.m.pub
}

/* ShardRounds._answer, of a shard to questions up to a step; those in hand are asked already. */
inline answer(which, until) {
    k = me.m.answered + 1;
    do
    :: k <= until && k < TURN ->
        q = round[which].asked[k];
        if
        :: me.asks == which && me.step == k -> q = me.question
        :: else
        fi;
        if
        :: q > 0 ->
            if
            :: is(ANSWERS_FROM_THE_PRESENT) -> me.m.drawn = mix(mix(me.m.hist, which), q)
            :: else -> me.m.drawn = mix(me.m.drawn, q)
            fi;
            me.m.answered = k;
            if
            :: k > me.told || is(WRITTEN_AGAIN) ->
                me.answers = k; me.payload = me.m.drawn; me.told = k
            :: else ->
                /* It was answered before: by one whose place this one has taken. */
                v = said(which, MINE, k);
                answered_alike = (v == me.m.drawn || (v == 0 && !owns));
                assert(answered_alike)
            fi
        :: else
        fi;
        k++
    :: else -> break
    od;
    if
    :: until == TURN -> take_turn(which)
    :: else
    fi
}

/* ShardRounds._take_turn */
inline take_turn(which) {
    q = round[which].asked[TURN]; v = round[which].asked[SHOW];
    if
    :: me.asks == which && me.step == TURN -> q = me.question; v = me.publishes
    :: else
    fi;
    if
    :: q > 0 ->
        me.takes = true; me.t.there = true; me.t.bseq = me.m.bseq; me.t.bpub = me.m.bpub;
        if
        :: is(PLACE_OF_THE_REPORT_WRONG) -> me.t.bseq = me.m.seq
        :: else
        fi;
        me.t.seq = me.m.seq; me.t.pub = me.m.pub; me.t.shown = v; me.t.names = q;
        if
        :: is(NAMED_BY_EACH) -> me.t.names = mix(q, MINE)
        :: else
        fi;
        me.t.payload = mix(me.m.drawn, q);
        end_round(me.m, me.t.payload, v)
    :: else
    fi
}

/* The end of ShardRounds.turn: what is said is to be committed. */
inline commit_if_said() {
    if
    :: me.answers > 0 || me.takes || me.asks > 0 -> me.pc = HAS
    :: else -> me.pc = RUNS
    fi;
    i = 0; j = 0; k = 0; v = 0; g = 0; q = 0
}

/* _Keeper.go_on from the reading on: open round j, published or not, or ask what comes next. */
inline ask(shows, publication) {
    if
    :: me.number == 0 || me.step == TURN ->
        j = me.number + 1;
        complete = true; g = round[j - 1].name; hear(j, REPORT);
        if
        :: shows -> k = ITEMS
        :: else -> next_step(REPORT)
        fi
    :: else ->
        j = me.number;
        complete = true; g = me.steps;
        if
        :: g == 0 ->
            make_again(me.step);
            /* What it would ask in the present step is what was asked. */
            asked_by_one = (!owns || mix(g, me.step) == round[j].asked[me.step]);
            if
            :: is(ASKED_OUTSIDE)
            :: else -> assert(asked_by_one)
            fi
        :: else
        fi;
        hear(j, me.step);
        k = me.step;
        next_step(k)
    fi;
    if
    :: (!complete && !is(HEARS_WHAT_IS_THERE) &&
            !is(ANSWERS_OF_ANY_ROUND) && !is(OPENED_BEFORE_ALL_REPORTED)) ->
        /* Another has gone on meanwhile: Fenced. */
        answers_of_this_round = !owns;
        assert(answers_of_this_round);
        drop()
    :: else ->
        answers_of_this_round = complete;
        assert(answers_of_this_round);
        me.number = j; me.step = k; me.steps = (k == TURN -> 0 : g);
        me.asks = j; me.question = mix(g, k); me.name = round[j - 1].name;
        if
        :: k == TURN ->
            /* GlobalRound.turns: names are given now. */
            me.name = mix(me.question, 5);
            if
            :: round[j].asked[ITEMS] > 0 && publication -> publish()
            :: else
            fi
        :: else
        fi;
        if
        :: me.m.out == j -> answer(j, me.step)
        :: else
        fi;
        commit_if_said()
    fi
}

/* _Keeper._publish, and publication_of_items (stream/publication/whole.py) */
inline publish() {
    me.publishes = pubs + 1; me.new = last + SHARDS + 1;
    if
    :: is(IDS_AT_RANDOM) -> me.new = me.new + (SHARDS + 1) * (_pid / MOST_SHARDS)
    :: else
    fi;
    if
    :: owns ->
        ids_are_new = (round[j].id == 0 || round[j].id == me.new);
        assert(ids_are_new);
        round[j].id = me.new
    :: else
    fi
}

/* _Keeper._sums_due */
#define sums_due (me.number > me.summed && me.number > 0 && me.step == TURN                        \
    && round[me.number].asked[SHOW] > 0 && !round[me.number].summed)
#define all_show all_said(me.number, SHOW)
#define next_round (me.number + 1)
/* fence.take_turn (storage/writing/fence.py) */
#define passes ((owns && me.epoch == part.epoch)                                                   \
    || (is(NO_FENCE_IN_ASKING) && me.asks > 0) || (is(NO_FENCE_IN_ANSWERING) && me.answers > 0))

active [OWNERS] proctype process()
{
end:
    do
    /* SqlStore.claim: of nobody, of an owner that died, or of one that lives on unawares */
    :: d_step { (began && me.pc == GONE && MINE < SHARDS && (owns
            || (part.owner == 0 && _pid < MOST_SHARDS)
            || (part.owner > 0 && w[part.owner - 1].pc > GONE && takeovers < TAKEOVERS))) ->
        printf("owner %d of shard %d claims\n", _pid / MOST_SHARDS, MINE);
        if
        :: part.owner > 0 && !owns -> takeovers++
        :: else
        fi;
        part.owner = _pid + 1; me.epoch = part.epoch; me.pc = CLAIMED }
    /* Writer.load, from nothing or the snapshot, and ShardRounds._whole_of */
    :: d_step { me.pc == CLAIMED ->
        printf("owner %d of shard %d loads\n", _pid / MOST_SHARDS, MINE);
        if
        :: !owns -> drop()   /* Writer.confirm */
        :: else ->
            if
            :: part.saved > 0 -> copy(x, part.snap)
            :: else -> renew(x)
            fi;
            replay(part);
            copy(me.m, x); renew(x);
            me.told = REPORT; k = 1;
            do
            :: k < STEPS && me.m.out > 0 ->
                if
                :: said(me.m.out, MINE, k) > 0 -> me.told = k
                :: else
                fi;
                k++
            :: else -> break
            od;
            if
            :: is(ROUND_GIVEN_UP) -> me.m.out = 0
            :: is(NOT_ANSWERED_AGAIN) && me.m.out > 0 -> me.m.answered = me.told
            :: is(WRITTEN_AGAIN) -> me.told = REPORT
            :: else
            fi;
            me.number = number; me.step = step; me.steps = 0; me.pc = RUNS; k = 0; r = 0
        fi }
    /* Engine._digest: a batch of one record */
    :: d_step { me.pc == RUNS && me.m.seq < RECORDS ->
        printf("owner %d of shard %d takes a record in\n", _pid / MOST_SHARDS, MINE);
        j = me.m.ids;
        insert(me.m);
        me.records = true;
        if
        :: me.m.ids > j && !is(IDS_OF_ONE_COUNT) -> me.id = own_id(MINE, me.m.ids)
        :: me.m.ids > j && is(IDS_OF_ONE_COUNT) ->
            me.id = 1;
            do
            :: (given >> me.id) > 0 -> me.id++
            :: else -> break
            od
        :: else
        fi;
        j = 0;
        me.pc = HAS }
    /* ShardRounds._report: as many records have come, in a silence, or since others wait */
    :: d_step { me.pc == RUNS && me.m.out == 0 && me.m.taken < ROUNDS ->
        printf("owner %d of shard %d reports\n", _pid / MOST_SHARDS, MINE);
        begin_round(me.m, me.m.taken + 1);
        me.told = REPORT; me.reports = true; me.pc = HAS }
    /* ShardRounds._answer */
    :: d_step { (me.pc == RUNS && me.m.out > 0 && number == me.m.out && step > me.m.answered
            && round[number].asked[step] > 0) ->
        printf("owner %d of shard %d answers\n", _pid / MOST_SHARDS, MINE);
        answer(number, step);
        commit_if_said() }
    /* _Keeper._sum: first, and in the commit that opens the next round, if all wait for that */
    :: d_step { me.pc == RUNS && MINE == 0 && sums_due && all_show ->
        printf("owner %d of shard 0 sums\n", _pid / MOST_SHARDS);
        me.summed = me.number; me.sums = me.number;
        if
        :: me.number < ROUNDS && all_said(next_round, REPORT) -> me.pc = LOOKED
        :: else -> me.pc = HAS
        fi }
    :: d_step { (me.pc == RUNS && MINE == 0 && sums_due && all_show
            && unanswered < UNANSWERED && is(SUMMED_BEFORE_THE_READING)) ->
        printf("owner %d of shard 0 sums, and SQL does not answer\n", _pid / MOST_SHARDS);
        unanswered++; me.summed = me.number }
    /* _Keeper.go_on: have all reported, or answered? */
    :: d_step { (me.pc == RUNS && MINE == 0 && (me.number == 0 || me.step == TURN)
            && me.number < ROUNDS && !(sums_due && all_show) && all_said(next_round, REPORT)) ->
        printf("owner %d of shard 0 sees all reports\n", _pid / MOST_SHARDS);
        me.pc = LOOKED }
    :: d_step { (me.pc == RUNS && MINE == 0 && me.number > 0 && me.step < TURN
            && all_said(me.number, me.step)) ->
        printf("owner %d of shard 0 sees all answers\n", _pid / MOST_SHARDS);
        me.pc = LOOKED }
    /* The reading, and what is asked then */
    :: d_step { me.pc == LOOKED ->
        printf("owner %d of shard 0 asks\n", _pid / MOST_SHARDS);
        ask(false, true) }
    /* _Keeper._publishes: a clock may decide */
    :: d_step { me.pc == LOOKED && (me.number == 0 || me.step == TURN) && published < PUBLISHED ->
        printf("owner %d of shard 0 asks for items\n", _pid / MOST_SHARDS);
        ask(true, true) }
    /* SQL keeps a publication from being made: it is left out. */
    :: d_step { (me.pc == LOOKED && me.step == SIDES && round[me.number].asked[ITEMS] > 0
            && unanswered < UNANSWERED) ->
        printf("owner %d of shard 0 asks, and cannot publish\n", _pid / MOST_SHARDS);
        unanswered++;
        ask(false, false) }
    /* SqlStore.commit */
    :: d_step { me.pc == HAS && passes ->
        printf("owner %d of shard %d commits\n", _pid / MOST_SHARDS, MINE);
        if
        :: is(PUBLISHED_OUTSIDE) && me.publishes > 0 -> write_whole(); me.pc = HALF
        :: else ->
            if
            :: me.asks > number && me.step == ITEMS -> published++
            :: else
            fi;
            write_batch();
            if
            :: (is(ASKED_OUTSIDE) && me.asks > 0) || (is(JOURNAL_OUTSIDE) && me.takes) ->
                me.pc = HALF
            :: else -> no_batch(); me.pc = RUNS
            fi
        fi;
        look() }
    :: d_step { me.pc == HALF && owns ->
        printf("owner %d of shard %d commits the rest\n", _pid / MOST_SHARDS, MINE);
        if
        :: is(PUBLISHED_OUTSIDE) -> write_batch()
        :: is(ASKED_OUTSIDE) -> write_questions()
        :: else -> write_journal()
        fi;
        no_batch(); me.pc = RUNS;
        look() }
    /* With a snapshot in the same transaction, or alone (Engine._save). */
    :: d_step { me.pc == RUNS && saves < SAVES && passes && me.m.seq > 0 ->
        printf("owner %d of shard %d saves\n", _pid / MOST_SHARDS, MINE);
        saves++; part.epoch++; me.epoch++;
        part.saved = saves; copy(part.snap, me.m);
        if
        :: is(SAVED_WITHOUT_THE_DRAWN) && part.snap.out > 0 -> part.snap.drawn = part.snap.out
        :: else
        fi;
        look() }
    :: d_step { (me.pc == HAS || me.pc == HALF) && !passes ->
        printf("owner %d of shard %d is fenced\n", _pid / MOST_SHARDS, MINE);
        drop() }
    :: d_step { me.pc > GONE && deaths < DEATHS ->
        printf("owner %d of shard %d dies\n", _pid / MOST_SHARDS, MINE);
        deaths++; drop() }
    od
}

init
{
    d_step { c_code { read_bounds(); }; began = true };
    do
    /* Nobody has anything to do any more. */
    :: timeout ->
        d_step {
            i = 0;
            sums_are_told = (number == 0 || round[number].asked[SHOW] == 0 ||
                round[number].summed);
            assert(sums_are_told);
            right = (number == ROUNDS && step == TURN);
            do
            :: i < SHARDS ->
                right = right && sql[i].n == RECORDS && sql[i].turn[ROUNDS].there;
                i++
            :: else -> break
            od;
            i = 0;
            rounds_end = right;
            assert(rounds_end) };
        break
    od
}
