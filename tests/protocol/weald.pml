/*
 * How Weald keeps its promises, as a model: the group's generations, the fence in SQL, leases and
 * their tokens, rounds that are taken back, snapshots, replay, and the two ways back.
 *
 * One process, whose options are all steps that anyone can take; a step is what happens at once.
 * Each names the function that it stands for. What must hold are the variables under "Promises",
 * named as in docs/guarantees.md. Which wrong form is played, if any, and the bounds come from the
 * environment (spin.py), so that one program serves for all.
 *
 * What a model of a stream is made of, its history says: each insertion (1), publication out of
 * turn (2), round that was taken back (3, how many records came while it was out, and which leases
 * came back) and way back that kept results (0), two bits and more for each, the first on the left.
 * Two models are the same, bit for bit, when their histories are. Publications in turn follow from
 * the number of records, and are left out.
 */

/* Room: bounds may be lower. */
#define MOST_ROUNDS 2
#define MOST_PUBLICATIONS 2
#define SNAPSHOTS 3
#define WRITERS 2
#define OPERATORS 2

c_decl {
\#include "told.h"
    static int wrong, records, rounds, publications, kept, n_leases, n_saves, n_crashes;
    static int n_rebalances;
    static int n_resets, n_lost, n_flushes, n_lonely, n_diverging, n_commands, n_kinds, retention;

    static void read_bounds(void)
    {
        wrong = told("WRONG"); records = told("RECORDS"); rounds = told("ROUNDS");
        publications = told("PUBLICATIONS"); kept = told("KEPT"); n_leases = told("LEASES");
        n_crashes = told("CRASHES"); n_rebalances = told("REBALANCES"); n_resets = told("RESETS");
        n_lost = told("LOST"); n_flushes = told("FLUSHES"); n_lonely = told("LONELY");
        n_diverging = told("DIVERGING"); n_commands = told("COMMANDS"); n_kinds = told("KINDS");
        retention = told("RETENTION"); n_saves = told("SAVES");
    }
}

#define RECORDS c_expr { records }            /* in the topic, of one partition */
#define ROUNDS c_expr { rounds }              /* that are begun */
#define PUBLICATIONS c_expr { publications }  /* out of turn */
#define SAVES c_expr { n_saves }              /* snapshots that writers make */
#define KEPT c_expr { kept }                  /* storage.snapshots_kept */
#define LEASES c_expr { n_leases }            /* of a round: 1 or 2 */
#define CRASHES c_expr { n_crashes }
#define REBALANCES c_expr { n_rebalances }
#define RESETS c_expr { n_resets }            /* of the group: it counts from the start */
#define LOST c_expr { n_lost }                /* answers to COMMIT, and transactions aborted */
#define FLUSHES c_expr { n_flushes }          /* of Redis */
#define LONELY c_expr { n_lonely }            /* times that no worker is heard of */
#define DIVERGING c_expr { n_diverging }      /* replays by another version of a library */
#define COMMANDS c_expr { n_commands }        /* that people give */
#define ALLOWED(kind) c_expr { (n_kinds & kind) != 0 }
#define RETENTION c_expr { retention }        /* rows before the oldest snapshot go at once */
#define is(form) c_expr { wrong == form }

/* Wrong forms. */
#define FENCE_OFF 1
#define OWNER_OFF 2
#define EPOCH_OFF 3
#define GENERATION_OFF 4
#define LOCK_OFF 5
#define OFFSETS_OUTSIDE 6
#define TOKEN_OFF 7
#define ADOPTED_TWICE 8
#define PLACE_OF_THE_BEGINNING_WRONG 9
#define PLACE_WITHOUT_PUBLICATION 10
#define REPLAY_ADOPTS_AGAIN 11
#define REPLAY_TRUSTS_ITSELF 12
#define SNAPSHOT_WITHOUT_THE_PLACE 13
#define CREATED_WITHOUT_THE_PLACE 14
#define PRUNED_AT_THE_SNAPSHOTS_PLACE 15
#define ROUNDS_DROPPED_BY_PLACE 16
#define SNAPSHOTS_DROPPED_BY_NUMBER 17
#define SAVED_UNASKED 18
#define GONE_SNAPSHOT_TAKEN 19
#define KEPT_OF_ANOTHER_MOMENT 20
#define KEPT_WITH_FORGOTTEN_ROUNDS 21
#define LEASES_LEFT_OPEN 22
#define LOST_LEASES_LEFT 23
#define ANSWER_OF_ANOTHER 24
#define REPLAYED_WHAT_WAS_PRUNED 25
#define NEVER_ASKS_IN_A_SILENCE 26

#define ALL ((1 << LEASES) - 1)

/* Where a writer is. */
#define AWAY 0       /* no tenure */
#define CLAIMED 1    /* Writer._take is done */
#define RUNS 2
#define PREPARED 3   /* a batch is to be committed, perhaps again */
#define IN_SQL 4     /* its transaction is open, the stream's row locked */
#define ORPHANED 5   /* likewise, and the process is dead */

/* Outcomes of a lease. */
#define OFFERED 1
#define CLOSED 2

/* Commands. */
#define CREATE 1
#define DROP 2
#define KEEP 4

typedef Model {
    byte seq;      /* observations */
    byte pub;      /* publications out of turn */
    byte taken;    /* the last round that was taken back */
    byte out;      /* the round that is out, 0 for none, and the place where it began */
    byte oseq;
    byte opub;
    int hist
};

typedef Snapshot {
    byte number;   /* 0: a free place */
    byte epoch;
    byte off;
    bool label;
    Model m
};

typedef Adoption {
    bool there;
    byte bseq;     /* where it began */
    byte bpub;
    byte seq;      /* where it was taken back */
    byte pub;
    byte mask      /* the leases that came back */
};

typedef Lease {
    byte outcome;  /* all of a round are closed in one transaction */
    byte token;
    byte seq;      /* where the round began */
    byte pub
};

typedef Writer {
    byte pc;
    byte gen;      /* the generation under which the group gave it the partition; 0: it did not */
    byte epoch;    /* of the last commit that it knows of */
    byte last;     /* observations at the claim */
    byte off;
    bool fresh;    /* RefinementCoordinator._take_over is to come */
    Model m;
    byte seq;      /* what SQL had before the batch in hand */
    int hist;
    /* RefinementCoordinator._out */
    byte round;
    byte token;
    byte back;     /* leases that came back, were given up, or came back of another round */
    byte gone;
    byte alien;
    bool sent;
    /* BatchCommit */
    byte adopts;
    byte mask;
    byte bseq;
    byte bpub;
    byte apub;
    byte atoken;
    byte aalien;
    byte begins;
    byte abandons;
    bool saves;
    bool ends
};

typedef Operator {
    byte does;
    byte pc;
    byte began;
    byte epoch;
    byte n;
    byte out;
    byte pubs;
    byte first;    /* the observation from which it replays, and the oldest snapshot's */
    byte oldest;
    byte number;   /* of the snapshot to go back to, its epoch and offsets */
    byte sepoch;
    byte off;
    Model m
};

/* The group. */
byte generation = 1;
byte member = 0;

/* SQL. Owners: 0 nobody, 1 and 2 the writers, 3 and 4 people. */
byte owner;
byte gen;
byte epoch;
byte reverted;
byte kept;            /* epoch of the last way back that kept results */
byte n;               /* observations */
byte off;             /* next offset */
byte forgotten;       /* observations that the retention has deleted */
bool pruned;          /* whether rounds have been deleted */
byte pubs;
byte pubseq[MOST_PUBLICATIONS + 2];
int hist = 1;         /* what an undisturbed run would have come to */
Snapshot snap[SNAPSHOTS];
Adoption round[MOST_ROUNDS + 1];
Lease lease[MOST_ROUNDS + 1];
byte locked;          /* by which writer */

/* Redis and the workers, by round, as masks of its leases. */
byte standing[MOST_ROUNDS + 1];
byte held[MOST_ROUNDS + 1];
byte returned[MOST_ROUNDS + 1];

Writer w[WRITERS];
Operator o[OPERATORS];

byte crashes;
byte rebalances;
byte resets;
byte losses;
byte flushes;
byte lonely;
byte diverging;
byte commands;
byte saves;

/* Promises. */
hidden byte each_record_once;
hidden byte one_writer;
hidden byte continues_bit_for_bit;
hidden byte adopted_under_its_token;
hidden byte one_can_go_back;
hidden byte nothing_needed_goes;
hidden byte rounds_go_on;

/* Scratch, within a step. */
hidden Model x;
hidden byte i;
hidden byte j;
hidden byte k;
hidden byte row;
hidden byte newest;
hidden byte last;
hidden byte going;
hidden byte lacks;
hidden byte moved;
hidden int h;

inline copy(a, b) {
    a.seq = b.seq; a.pub = b.pub; a.taken = b.taken; a.out = b.out; a.oseq = b.oseq;
    a.opub = b.opub; a.hist = b.hist
}

inline renew(a) {
    a.seq = 0; a.pub = 0; a.taken = 0; a.out = 0; a.oseq = 0; a.opub = 0; a.hist = 1
}

inline wipe(a) {
    a.seq = 0; a.pub = 0; a.taken = 0; a.out = 0; a.oseq = 0; a.opub = 0; a.hist = 0
}

/* Shard. */

inline insert(a) { a.seq++; a.hist = a.hist * 4 + 1 }

inline publish(a) { a.pub++; a.hist = a.hist * 4 + 2 }

inline begin_round(a, r) { a.out = r; a.oseq = a.seq; a.opub = a.pub }

inline forget_lent(a) { a.out = 0; a.oseq = 0; a.opub = 0 }

inline take_back(a, which, came) {
    a.hist = a.hist * 64 + 48 + ((a.seq - a.oseq) & 3) * 4 + came;
    a.taken = which;
    forget_lent(a)
}

/* ReplayedRounds.catch_up, on x. */
inline catch_up(outrow) {
    going = true;
    do
    :: going ->
        do
        :: row <= ROUNDS && !round[row].there -> row++
        :: else -> break
        od;
        if
        :: row > ROUNDS ->
            going = false;
            if
            :: (outrow > last && x.out != outrow &&
                lease[outrow].seq == x.seq && lease[outrow].pub == x.pub) -> begin_round(x, outrow)
            :: else
            fi
        :: else ->
            if
            :: x.out != row &&
                    !(round[row].bseq == x.seq &&
                    (round[row].bpub == x.pub || is(PLACE_WITHOUT_PUBLICATION))) ->
                going = false
            :: else ->
                if
                :: x.out != row -> begin_round(x, row)
                :: else
                fi;
                if
                :: round[row].seq == x.seq &&
                        (round[row].pub == x.pub || is(PLACE_WITHOUT_PUBLICATION)) ->
                    take_back(x, row, round[row].mask);
                    row++
                :: else -> going = false
                fi
            fi
        fi
    :: else -> break
    od
}

/* recovery.replay, of x up to an observation; `lacks` when rows are not there. */
inline replay(end, publications, outrow) {
    lacks = (x.seq < forgotten || end > n);
    row = x.taken + 1;
    if
    :: is(REPLAY_ADOPTS_AGAIN) && x.taken > 0 -> row--
    :: else
    fi;
    last = x.taken;
    i = row;
    do
    :: i <= ROUNDS ->
        if
        :: round[i].there -> last = i
        :: else
        fi;
        i++
    :: else -> break
    od;
    catch_up(outrow);
    do
    :: x.pub < publications && pubseq[x.pub + 1] <= x.seq ->
        forget_lent(x);
        publish(x);
        catch_up(outrow)
    :: else ->
        if
        :: x.seq < end -> insert(x); catch_up(outrow)
        :: else -> break
        fi
    od
}

/* Of every snapshot that is kept, and of nothing, after each change of SQL. */
inline look() {
    each_record_once = (off == n);
    assert(each_record_once);
    j = 0;
    do
    :: j < SNAPSHOTS ->
        if
        :: snap[j].number > 0 && snap[j].epoch >= kept ->
            copy(x, snap[j].m);
            replay(n, pubs, 0);
            nothing_needed_goes = !lacks;
            assert(nothing_needed_goes);
            continues_bit_for_bit = (x.hist == hist && x.seq == n && x.pub == pubs &&
                snap[j].off == snap[j].m.seq);
            assert(continues_bit_for_bit)
        :: else
        fi;
        j++
    :: else -> break
    od;
    if
    :: kept == 0 && !pruned && forgotten == 0 ->
        renew(x);
        replay(n, pubs, 0);
        continues_bit_for_bit = (x.hist == hist);
        assert(continues_bit_for_bit)
    :: else
    fi;
    wipe(x)
}

/* The newest snapshot, by number; SNAPSHOTS for none. */
inline find_newest() {
    newest = SNAPSHOTS; k = 0; j = 0;
    do
    :: j < SNAPSHOTS ->
        if
        :: snap[j].number > k -> k = snap[j].number; newest = j
        :: else
        fi;
        j++
    :: else -> break
    od
}

inline remove(place) {
    snap[place].number = 0; snap[place].epoch = 0; snap[place].off = 0; snap[place].label = false;
    wipe(snap[place].m)
}

/* write_snapshot; room is asked for before. */
inline save(model, offset, under, labelled) {
    find_newest();
    j = 0;
    do
    :: snap[j].number == 0 -> break
    :: else -> j++
    od;
    snap[j].number = k + 1; snap[j].epoch = under; snap[j].off = offset; snap[j].label = labelled;
    copy(snap[j].m, model);
    if
    :: is(SNAPSHOT_WITHOUT_THE_PLACE) -> forget_lent(snap[j].m)
    :: else
    fi
}

/* The oldest observation from which a snapshot starts, in k; 255 for no snapshot. */
inline find_oldest() {
    k = 255; j = 0;
    do
    :: j < SNAPSHOTS ->
        if
        :: snap[j].number > 0 && snap[j].m.seq < k -> k = snap[j].m.seq
        :: else
        fi;
        j++
    :: else -> break
    od
}

/* _prune_snapshots, leases.prune, and what the retention lets go. */
inline prune() {
    find_newest();
    /* Of those without a label the newest stay. */
    i = KEPT;
    do
    :: k > 0 ->
        j = 0;
        do
        :: j < SNAPSHOTS ->
            if
            :: snap[j].number == k && !snap[j].label ->
                if
                :: i > 0 -> i--
                :: else -> remove(j)
                fi
            :: else
            fi;
            j++
        :: else -> break
        od;
        k--
    :: else -> break
    od;
    find_oldest();
    i = 1;
    do
    :: i <= ROUNDS && k < 255 ->
        if
        :: round[i].there &&
                (round[i].seq < k ||
                (is(PRUNED_AT_THE_SNAPSHOTS_PLACE) && round[i].seq == k)) ->
            drop_round(i);
            pruned = true
        :: else
        fi;
        i++
    :: else -> break
    od;
    if
    :: RETENTION && k < 255 && k > forgotten -> forgotten = k
    :: else
    fi
}

inline drop_round(r) {
    round[r].there = false; round[r].bseq = 0; round[r].bpub = 0;
    round[r].seq = 0; round[r].pub = 0; round[r].mask = 0
}

/* leases(outcome="offered"), in k; and last_round, in newest. */
inline find_offered() {
    k = 0; newest = 0; i = 1;
    do
    :: i <= ROUNDS ->
        if
        :: lease[i].outcome == OFFERED -> k = i
        :: else
        fi;
        if
        :: lease[i].outcome > 0 -> newest = i
        :: else
        fi;
        i++
    :: else -> break
    od
}

inline no_batch(a) {
    a.adopts = 0; a.mask = 0; a.bseq = 0; a.bpub = 0; a.apub = 0; a.atoken = 0; a.aalien = 0;
    a.begins = 0; a.abandons = 0; a.saves = false; a.ends = false
}

inline no_round(a) {
    a.round = 0; a.token = 0; a.back = 0; a.gone = 0; a.alien = 0; a.sent = false
}

/* Ownership.drop: SQL has what counts. */
inline drop(a) {
    a.pc = AWAY; a.gen = 0; a.epoch = 0; a.last = 0; a.off = 0; a.fresh = false; a.seq = 0;
    a.hist = 0;
    wipe(a.m); no_round(a); no_batch(a)
}

/* Writer.committed. */
inline committed(a) {
    a.epoch++; a.seq = a.m.seq; a.hist = a.m.hist;
    if
    :: a.ends -> drop(a)
    :: else -> no_batch(a); a.pc = RUNS
    fi
}

/* write_batch, from the fence on: all of it or nothing. */
inline write_batch(a, me) {
    one_writer = (owner == me + 1 && a.epoch == epoch);
    assert(one_writer);
    each_record_once = (a.seq == n && off + (a.m.seq - n) == a.off);
    assert(each_record_once);
    continues_bit_for_bit = (a.hist == hist);
    assert(continues_bit_for_bit);
    epoch = a.epoch + 1; n = a.m.seq; hist = a.m.hist;
    off = a.off;
    if
    :: a.m.pub > pubs -> pubs = a.m.pub; pubseq[pubs] = n
    :: else
    fi;
    if
    :: a.abandons > 0 -> lease[a.abandons].outcome = CLOSED
    :: else
    fi;
    if
    :: a.adopts > 0 ->
        adopted_under_its_token = (lease[a.adopts].outcome == OFFERED &&
            lease[a.adopts].token == a.atoken && a.aalien == 0);
        assert(adopted_under_its_token);
        lease[a.adopts].outcome = CLOSED;
        round[a.adopts].there = true; round[a.adopts].mask = a.mask;
        round[a.adopts].bseq = a.bseq; round[a.adopts].bpub = a.bpub;
        round[a.adopts].seq = n; round[a.adopts].pub = a.apub
    :: else
    fi;
    if
    :: a.begins > 0 ->
        find_offered();
        rounds_go_on = (k == 0 && lease[a.begins].outcome == 0);
        assert(rounds_go_on);
        lease[a.begins].outcome = OFFERED; lease[a.begins].token = epoch;
        lease[a.begins].seq = a.m.oseq; lease[a.begins].pub = a.m.opub
    :: else
    fi;
    if
    :: a.saves -> save(a.m, a.off, epoch, false); prune()
    :: else
    fi;
    look()
}

/* RefinementCoordinator._begin, into the batch. */
inline lend(a) {
    find_offered();
    begin_round(a.m, newest + 1);
    no_round(a);
    a.round = newest + 1; a.token = a.epoch + 1; a.begins = newest + 1
}

/* RefinementCoordinator._adopt, into the batch. */
inline adopt(a) {
    a.adopts = a.round; a.mask = a.back; a.atoken = a.token; a.aalien = a.alien;
    a.bseq = a.m.oseq; a.bpub = a.m.opub; a.apub = a.m.pub;
    if
    :: is(PLACE_OF_THE_BEGINNING_WRONG) -> a.bseq = a.m.seq
    :: else
    fi;
    take_back(a.m, a.round, a.back);
    if
    :: is(ADOPTED_TWICE)
    :: else -> no_round(a)
    fi
}

/* RefinementCoordinator._collect: whoever looks takes all that is there. */
inline collect(a) {
    i = 1;
    do
    :: i <= ROUNDS ->
        if
        :: i == a.round -> a.back = a.back | (returned[i] & ~a.gone)
        :: i != a.round && is(TOKEN_OFF) ->
            a.alien = a.alien | (returned[i] & ~(a.back | a.gone));
            a.back = a.back | (returned[i] & ~a.gone)
        :: else
        fi;
        returned[i] = 0;
        i++
    :: else -> break
    od;
    i = 0
}

#define open(a) (ALL & ~(a.back | a.gone))
#define room_for_a_snapshot (snap[SNAPSHOTS - 1].number == 0 || snap[0].number == 0                \
    || snap[SNAPSHOTS / 2].number == 0)
#define room_for_a_round (ROUNDS > 0 && lease[ROUNDS].outcome == 0)
#define anything_returned (returned[1] > 0 || returned[2] > 0)

/* Writer.load: the model of a snapshot, or of nothing, and what came after it. */
inline load(a, me, under, diverges) {
    replay(a.last, pubs, 0);
    if
    :: owner != me + 1 || epoch != a.epoch || lacks -> drop(a)   /* Writer.confirm */
    :: else ->
        /* What a way back has forgotten a replay from before it does all the same. */
        continues_bit_for_bit = (x.hist == hist || under < kept);
        assert(continues_bit_for_bit);
        if
        :: diverges -> x.hist = x.hist + 1; diverging++
        :: else
        fi;
        /* _compare and adopt */
        if
        :: x.hist != hist && !is(REPLAY_TRUSTS_ITSELF) -> x.hist = hist; x.pub = pubs
        :: else
        fi;
        copy(a.m, x);
        a.seq = n; a.hist = a.m.hist; a.fresh = true; a.pc = RUNS
    fi;
    wipe(x)
}

#define may_claim(a, me)                                                                           \
    (a.gen >= gen || (member == me && a.gen == generation) || is(GENERATION_OFF))
#define unlocked (locked == 0 || is(LOCK_OFF))
#define passes(a, me) (is(FENCE_OFF) ||                                                            \
    ((owner == me + 1 || is(OWNER_OFF)) && gen <= a.gen &&                                         \
    (epoch == a.epoch || (epoch > a.epoch && is(EPOCH_OFF)))))
#define was_there(a, me)                                                                           \
    ((owner == me + 1 || is(ANSWER_OF_ANOTHER)) && epoch == a.epoch + 1)

#define WRITER(a, me)                                                                              \
    /* The group names a member, and takes the partition away; a poll tells. */                    \
    :: d_step { a.pc == AWAY && member == me && a.gen != generation ->                             \
        printf("writer %d hears of the group\n", me);                                              \
        a.gen = generation }                                                                       \
    :: d_step { a.pc <= PREPARED && a.gen > 0 && (member != me || a.gen != generation) ->          \
        printf("writer %d is no member any more\n", me);                                           \
                                                                                                   \
        drop(a) }                                                                                  \
    /* fence.claim; a takeover only where the group goes on naming this process */                 \
    :: d_step { a.pc == AWAY && a.gen > 0 && unlocked && may_claim(a, me) ->                       \
        printf("writer %d claims\n", me);                                                          \
                                                                                                   \
        one_writer = (resets > 0 || owner == 0 || owner > WRITERS || a.gen >= gen);                \
        assert(one_writer);                                                                        \
        owner = me + 1; gen = a.gen; a.epoch = epoch; a.last = n; a.off = off; a.pc = CLAIMED }    \
    /* Writer.load: from the newest snapshot, or past damaged ones from an earlier or from none */ \
    :: d_step { a.pc == CLAIMED && snap[0].number > 0 ->                                           \
        printf("writer %d loads the first snapshot\n", me);                                        \
                                                                                                   \
        copy(x, snap[0].m); load(a, me, snap[0].epoch, false) }                                    \
    :: d_step { a.pc == CLAIMED && snap[1].number > 0 ->                                           \
        printf("writer %d loads the second\n", me);                                                \
                                                                                                   \
        copy(x, snap[1].m); load(a, me, snap[1].epoch, false) }                                    \
    :: d_step { a.pc == CLAIMED && SNAPSHOTS > 2 && snap[SNAPSHOTS - 1].number > 0 ->              \
        printf("writer %d loads the third\n", me);                                                 \
                                                                                                   \
        copy(x, snap[SNAPSHOTS - 1].m); load(a, me, snap[SNAPSHOTS - 1].epoch, false) }            \
    :: d_step { a.pc == CLAIMED && !pruned && forgotten == 0 && kept == 0 ->                       \
        printf("writer %d loads without one\n", me);                                               \
                                                                                                   \
        renew(x); load(a, me, 0, false) }                                                          \
    :: d_step { a.pc == CLAIMED && diverging < DIVERGING && !pruned && forgotten == 0 && n > 0 ->  \
        printf("writer %d loads, and the replay diverges\n", me);                                  \
                                                                                                   \
        renew(x); load(a, me, 0, true) }                                                           \
    /* RefinementCoordinator._take_over: what the writer before left open is closed */                          \
    :: d_step { a.pc == RUNS && a.fresh ->                                                         \
        printf("writer %d takes over\n", me);                                                      \
                                                                                                   \
        a.fresh = false; forget_lent(a.m); no_round(a); find_offered();                            \
        if                                                                                         \
        :: k > 0 && !is(LEASES_LEFT_OPEN) -> a.abandons = k; standing[k] = 0; a.pc = PREPARED      \
        :: else                                                                                    \
        fi }                                                                                       \
    /* Engine._digest: a batch of one record, or of two */                                         \
    :: d_step { a.pc == RUNS && a.off < RECORDS ->                                                 \
        printf("writer %d takes a record in\n", me);                                               \
        insert(a.m); a.off++; a.pc = PREPARED }                                                    \
    :: d_step { a.pc == RUNS && a.off + 1 < RECORDS ->                                             \
        printf("writer %d takes two records in\n", me);                                            \
                                                                                                   \
        insert(a.m); insert(a.m); a.off = a.off + 2; a.pc = PREPARED }                             \
    /* RefinementCoordinator.turn: take back, show it, begin another */                                         \
    :: d_step { a.pc == RUNS && !a.fresh && a.round == 0 && a.m.seq > 0 && room_for_a_round ->     \
        printf("writer %d begins a round\n", me);                                                  \
                                                                                                   \
        lend(a); a.pc = PREPARED }                                                                 \
    :: d_step { a.pc == RUNS && !a.fresh && a.round > 0 && open(a) == 0 ->                         \
        printf("writer %d takes back\n", me);                                                      \
                                                                                                   \
        adopt(a); a.pc = PREPARED }                                                                \
    :: d_step { a.pc == RUNS && !a.fresh && a.round > 0 && open(a) == 0 && pubs < PUBLICATIONS ->  \
        printf("writer %d takes back and shows\n", me);                                            \
                                                                                                   \
        adopt(a); publish(a.m); a.pc = PREPARED }                                                  \
    :: d_step { a.pc == RUNS && !a.fresh && a.round > 0 && open(a) == 0 && room_for_a_round ->     \
        printf("writer %d takes back and begins\n", me);                                           \
                                                                                                   \
        adopt(a); lend(a); a.pc = PREPARED }                                                       \
    :: d_step { a.pc == RUNS && !a.fresh && a.round > 0 && open(a) == 0 && room_for_a_round        \
            && pubs < PUBLICATIONS ->                                                              \
        printf("writer %d takes back, shows and begins\n", me);                                    \
                                                                                                   \
        adopt(a); publish(a.m); lend(a); a.pc = PREPARED }                                         \
    /* Shard.conclude, and the process ends */                                                     \
    :: d_step { a.pc == RUNS && !a.fresh && a.off == RECORDS && pubs < PUBLICATIONS ->             \
        printf("writer %d concludes\n", me);                                                       \
                                                                                                   \
        forget_lent(a.m); no_round(a); publish(a.m); a.ends = true; a.pc = PREPARED }              \
    /* Writer.snapshot, with a batch or alone */                                                   \
    :: d_step { (a.pc == PREPARED || a.pc == RUNS) && !a.saves && a.m.seq > 0                      \
            && saves < SAVES && room_for_a_snapshot ->                                             \
        printf("writer %d saves\n", me);                                                           \
        saves++; a.saves = true; a.pc = PREPARED }                                                 \
    /* fence.take_turn; the row stays locked */                                                    \
    :: d_step { a.pc == PREPARED && locked == 0 && passes(a, me)                                   \
            && !(a.saves && !room_for_a_snapshot) ->                                               \
        printf("writer %d passes the fence\n", me);                                                \
                                                                                                   \
        locked = me + 1; a.pc = IN_SQL;                                                            \
        if                                                                                         \
        :: is(OFFSETS_OUTSIDE) -> off = a.off                                                      \
        :: else                                                                                    \
        fi }                                                                                       \
    :: d_step { a.pc == PREPARED && locked == 0 && !passes(a, me) && was_there(a, me) ->           \
        printf("writer %d was answered: it is there already\n", me);                               \
                                                                                                   \
        one_writer = (a.m.hist == hist);                                                           \
        assert(one_writer);                                                                        \
        committed(a) }                                                                             \
    :: d_step { a.pc == PREPARED && locked == 0 && !passes(a, me) && !was_there(a, me) ->          \
        printf("writer %d is fenced\n", me);                                                       \
                                                                                                   \
        drop(a) }                                                                                  \
    /* COMMIT, with an answer, without, and after the process has died */                          \
    :: d_step { a.pc == IN_SQL ->                                                                  \
        printf("writer %d commits\n", me);                                                         \
        write_batch(a, me); locked = 0; committed(a) }                                             \
    :: d_step { a.pc == IN_SQL && losses < LOST ->                                                 \
        printf("writer %d commits, and the answer is lost\n", me);                                 \
                                                                                                   \
        write_batch(a, me); locked = 0; losses++; a.pc = PREPARED }                                \
    :: d_step { a.pc == ORPHANED ->                                                                \
        printf("writer %d commits, though it died\n", me);                                         \
        write_batch(a, me); locked = 0; drop(a) }                                                  \
    :: d_step { a.pc == IN_SQL && losses < LOST ->                                                 \
        printf("writer %d does not commit\n", me);                                                 \
        locked = 0; losses++; a.pc = PREPARED }                                                    \
    :: d_step { a.pc == ORPHANED ->                                                                \
        printf("writer %d died, and does not commit\n", me);                                       \
        locked = 0; drop(a) }                                                                      \
    :: d_step { a.pc > AWAY && a.pc < IN_SQL && crashes < CRASHES ->                               \
        printf("writer %d dies\n", me);                                                            \
        crashes++; drop(a) }                                                                       \
    :: d_step { a.pc == IN_SQL && crashes < CRASHES ->                                             \
        printf("writer %d dies in a transaction\n", me);                                           \
        crashes++; a.pc = ORPHANED }                                                               \
    /* Writer.confirm: in a silence it asks SQL now and then */                                    \
    :: d_step { a.pc == RUNS && owner != me + 1 && !is(NEVER_ASKS_IN_A_SILENCE) ->                 \
        printf("writer %d sees that SQL names another\n", me);                                     \
        drop(a) }                                                                                  \
    /* RefinementCoordinator._send, _collect, _look */                                                          \
    :: d_step { a.pc == RUNS && a.round > 0 && !a.sent ->                                          \
        printf("writer %d sends\n", me);                                                           \
                                                                                                   \
        standing[a.round] = standing[a.round] | open(a); a.sent = true }                           \
    :: d_step { a.pc == RUNS && a.round > 0 && a.sent && anything_returned ->                      \
        printf("writer %d collects\n", me);                                                        \
        collect(a) }                                                                               \
    :: d_step { a.pc == RUNS && a.round > 0 && a.sent && !is(LOST_LEASES_LEFT)                     \
            && (open(a) & ~standing[a.round] & ~returned[a.round]) > 0 ->                          \
        printf("writer %d offers again\n", me);                                                    \
                                                                                                   \
        standing[a.round] = standing[a.round] | (open(a) & ~returned[a.round]) }                   \
    :: d_step { a.pc == RUNS && a.round > 0 && a.sent && open(a) > 0 && lonely < LONELY ->         \
        printf("writer %d gives up\n", me);                                                        \
                                                                                                   \
        lonely++; a.gone = a.gone | open(a);                                                       \
        standing[a.round] = standing[a.round] & ~a.gone }

/* Delivery is at least once: who was slow gives back as well. */
#define WORKER(number, bit)                                                                        \
    :: d_step { (standing[number] & bit) && !(held[number] & bit) ->                               \
        printf("lease %d of round %d is taken\n", bit, number);                                    \
                                                                                                   \
        held[number] = held[number] | bit }                                                        \
    :: d_step { (held[number] & bit) && !(returned[number] & bit) ->                               \
        printf("lease %d of round %d is given back\n", bit, number);                               \
                                                                                                   \
        returned[number] = returned[number] | bit; standing[number] = standing[number] & ~bit;     \
        held[number] = held[number] & ~bit }                                                       \
    :: d_step { (held[number] & bit) && (standing[number] & bit) ->                                \
        printf("lease %d of round %d is given back by one of two\n", bit, number);                 \
                                                                                                   \
        returned[number] = returned[number] | bit; standing[number] = standing[number] & ~bit }

inline rest(p) {
    p.does = 0; p.pc = 0; p.began = 0; p.epoch = 0; p.n = 0; p.out = 0; p.pubs = 0; p.number = 0;
    p.first = 0; p.oldest = 0;
    p.sepoch = 0; p.off = 0; wipe(p.m)
}

/* Whether x was what SQL showed at some moment: its history is a beginning of the present one. */
inline is_a_beginning() {
    h = hist; going = true;
    do
    :: going && h > x.hist -> h = h >> 2
    :: else -> break
    od;
    going = (h == x.hist)
}

/* rewind.rewind. */
inline rewind(p, me) {
    each_record_once = (p.m.seq <= n && p.off <= off);
    assert(each_record_once);
    owner = WRITERS + 1 + me; epoch++; reverted = epoch;
    n = p.m.seq; off = p.off; hist = p.m.hist; pubs = p.m.pub;
    i = pubs + 1;
    do
    :: i <= PUBLICATIONS + 1 -> pubseq[i] = 0; i++
    :: else -> break
    od;
    i = 1;
    do
    :: i <= ROUNDS ->
        if
        :: is(ROUNDS_DROPPED_BY_PLACE) && round[i].seq > p.m.seq -> drop_round(i)
        :: !is(ROUNDS_DROPPED_BY_PLACE) && i > p.m.taken -> drop_round(i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < SNAPSHOTS ->
        if
        :: snap[i].number > p.number ||
                (!is(SNAPSHOTS_DROPPED_BY_NUMBER) && snap[i].number > 0 &&
                (snap[i].m.seq > p.m.seq || snap[i].epoch > p.sepoch)) ->
            remove(i)
        :: else
        fi;
        i++
    :: else -> break
    od
}

#define CHOOSES(p, place, what)                                                                    \
    :: d_step { p.does == 0 && ALLOWED(what) && commands < COMMANDS && snap[place].number > 0 ->   \
        printf("person chooses snapshot %d\n", snap[place].number);                                \
                                                                                                   \
        commands++; p.does = what; p.pc = 1; p.epoch = epoch; p.n = n;                             \
        p.number = snap[place].number;                                                             \
        p.sepoch = snap[place].epoch; p.off = snap[place].off; copy(p.m, snap[place].m) }

#define OPERATOR(p, me)                                                                            \
    /* snapshots.create: an image, where the stream stands, a replay, and only then SQL is asked */ \
    :: d_step { p.does == 0 && ALLOWED(CREATE) && commands < COMMANDS                              \
                && n > 0 && !pruned && forgotten == 0                                              \
            && snap[0].number == 0 && kept == 0 ->                                                 \
        printf("person %d creates from nothing\n", me);                                            \
                                                                                                   \
        commands++; p.does = CREATE; p.pc = 1; p.began = epoch; p.oldest = 255; renew(p.m) }       \
    :: d_step { p.does == 0 && ALLOWED(CREATE) && commands < COMMANDS && snap[0].number > 0 ->     \
        printf("person %d creates from the newest\n", me);                                         \
                                                                                                   \
        commands++; p.does = CREATE; p.pc = 1; p.began = epoch; find_newest();                     \
        copy(p.m, snap[newest].m); p.first = p.m.seq; find_oldest(); p.oldest = k }                \
    :: d_step { p.does == CREATE && p.pc == 1 ->                                                   \
        printf("person %d sees where the stream stands\n", me);                                    \
                                                                                                   \
        find_offered(); p.epoch = epoch; p.n = n;                                                  \
        p.out = (is(CREATED_WITHOUT_THE_PLACE) -> 0 : k); p.pc = 2 }                               \
    :: d_step { p.does == CREATE && p.pc == 2 ->                                                   \
        printf("person %d reads publications\n", me);                                              \
        p.pubs = pubs; p.pc = 3 }                                                                  \
    :: d_step { p.does == CREATE && p.pc == 3 ->                                                   \
        printf("person %d replays\n", me);                                                         \
                                                                                                   \
        if                                                                                         \
        :: p.n > n -> rest(p)                                                                      \
        :: else ->                                                                                 \
            copy(x, p.m); replay(p.n, p.pubs, p.out);                                              \
            copy(p.m, x); is_a_beginning();                                                        \
            find_oldest();                                                                         \
            moved = (k != p.oldest && k > p.first && k < 255 && !is(REPLAYED_WHAT_WAS_PRUNED));    \
            one_can_go_back = (going || lacks || moved || reverted > p.began);                     \
            assert(one_can_go_back);                                                               \
            if                                                                                     \
            :: lacks || !going || moved || reverted > p.began -> rest(p)                           \
            :: else -> p.pc = 4                                                                    \
            fi;                                                                                    \
            wipe(x)                                                                                \
        fi }                                                                                       \
    :: d_step { p.does == CREATE && p.pc == 4 && unlocked && room_for_a_snapshot ->                \
        printf("person %d keeps the snapshot\n", me);                                              \
                                                                                                   \
        find_oldest();                                                                             \
        if                                                                                         \
        :: is(SAVED_UNASKED) || (reverted <= p.epoch && (k == 255 || p.m.seq >= k)) ->             \
                    save(p.m, p.m.seq, p.epoch, true); look()                                      \
        :: else                                                                                    \
        fi;                                                                                        \
        rest(p) }                                                                                  \
    /* snapshots.revert_dropping */                                                                \
    CHOOSES(p, 0, DROP)                                                                            \
    CHOOSES(p, 1, DROP)                                                                            \
    CHOOSES(p, SNAPSHOTS - 1, DROP)                                                                \
    :: d_step { p.does == DROP && unlocked ->                                                      \
        printf("person %d drops\n", me);                                                           \
                                                                                                   \
        i = 0; going = is(GONE_SNAPSHOT_TAKEN);                                                    \
        do                                                                                         \
        :: i < SNAPSHOTS ->                                                                        \
            if                                                                                     \
            :: snap[i].number == p.number && snap[i].epoch == p.sepoch -> going = true             \
            :: else                                                                                \
            fi;                                                                                    \
            i++                                                                                    \
        :: else -> break                                                                           \
        od;                                                                                        \
        if                                                                                         \
        :: going -> rewind(p, me); look()                                                          \
        :: else                                                                                    \
        fi;                                                                                        \
        rest(p) }                                                                                  \
    /* snapshots.revert_keeping: the model of the snapshot, later rows inserted, then the claim */ \
    CHOOSES(p, 0, KEEP)                                                                            \
    CHOOSES(p, 1, KEEP)                                                                            \
    :: d_step { p.does == KEEP && p.pc == 1 ->                                                     \
        printf("person %d inserts the rest\n", me);                                                \
                                                                                                   \
        if                                                                                         \
        :: p.n > n || p.m.seq < forgotten -> rest(p)                                               \
        :: else ->                                                                                 \
            p.m.seq = p.n; p.m.pub = pubs; p.m.hist = hist * 4; p.pc = 2                           \
        fi }                                                                                       \
    :: d_step { p.does == KEEP && p.pc == 2 && unlocked ->                                         \
        printf("person %d claims\n", me);                                                          \
                                                                                                   \
        owner = WRITERS + 1 + me;                                                                  \
        if                                                                                         \
        :: epoch != p.epoch && !is(KEPT_OF_ANOTHER_MOMENT) -> rest(p)                              \
        :: else -> p.epoch = epoch; forget_lent(p.m); find_offered();                              \
        if                                                                                         \
        :: is(KEPT_WITH_FORGOTTEN_ROUNDS)                                                          \
        :: else -> p.m.taken = newest                                                              \
        fi;                                                                                        \
        p.pc = 3                                                                                   \
        fi }                                                                                       \
    :: d_step { p.does == KEEP && p.pc == 3 && unlocked && room_for_a_snapshot ->                  \
        printf("person %d keeps\n", me);                                                           \
                                                                                                   \
        if                                                                                         \
        :: owner == WRITERS + 1 + me && epoch == p.epoch ->                                        \
            one_can_go_back = (p.m.seq == n && p.m.hist == hist * 4 && p.m.pub == pubs);           \
            assert(one_can_go_back);                                                               \
            epoch++; reverted = epoch; kept = epoch; hist = p.m.hist;                              \
            save(p.m, off, epoch, false); prune(); look()                                          \
        :: else                                                                                    \
        fi;                                                                                        \
        rest(p) }

active proctype world()
{
    c_code { read_bounds(); };
    do
    WRITER(w[0], 0)
    WRITER(w[1], 1)
    WORKER(1, 1)
    WORKER(1, 2)
    WORKER(2, 1)
    WORKER(2, 2)
    OPERATOR(o[0], 0)
    OPERATOR(o[1], 1)
    /* The group: of what befalls its members nobody is told. */
    :: d_step { rebalances < REBALANCES ->
        printf("the group names the other\n");
        rebalances++; generation++; member = 1 - member }
    :: d_step { rebalances < REBALANCES ->
        printf("the group counts on\n");
        rebalances++; generation++ }
    :: d_step { resets < RESETS -> resets++; generation = 1; member = 1 - member }
    :: d_step { flushes < FLUSHES && (standing[1] || standing[2] || anything_returned) ->
        flushes++; i = 1;
        do
        :: i <= ROUNDS -> standing[i] = 0; returned[i] = 0; i++
        :: else -> break
        od;
        i = 0 }
    /* Nobody has anything to do any more. */
    :: else ->
        d_step { find_offered();
            /* Where there is no room for a snapshot, the bounds are why. */
            rounds_go_on = ((n == RECORDS && k == 0) || !(room_for_a_snapshot));
            assert(rounds_go_on) };
        break
    od
}
