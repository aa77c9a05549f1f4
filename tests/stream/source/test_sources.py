"""Files and standard input as sources."""

import gzip
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from weald.storage.commit.log_marks import LogMark
from weald.stream.errors import SourceError
from weald.stream.record.decode import decode
from weald.stream.record.record import STORED_BYTES, Message, TopicPartition, checksum_of
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource


def source(path: Path, batch_records: int = 500, max_bytes: int = 1_000_000) -> FileSource:
    settings = StreamSettings(source="file", path=str(path), batch_records=batch_records)
    return FileSource(settings, max_bytes)


def drained(one: FileSource) -> list[Message]:
    messages: list[Message] = []
    with closing(one):
        while not one.exhausted:
            messages += one.poll(0.1)
    return messages


def values(messages: list[Message]) -> list[bytes]:
    return [message.value or b"" for message in messages]


@pytest.mark.parametrize("batch_records", [1, 2, 500])
def test_lines_of_a_file_are_numbered_records(tmp_path: Path, batch_records: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"x":1}\r\n\n{"x":2}\n  \n{"x":3}')
    messages = drained(source(path, batch_records))
    assert values(messages) == [b'{"x":1}', b'{"x":2}', b'{"x":3}']
    assert [message.offset for message in messages] == [0, 1, 2]
    assert {message[:2] for message in messages} == {("a.jsonl", 0)}


def test_an_assignment_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    one = source(path)
    (change,) = one.take_changes()
    assert (change.kind, change.partitions) == ("assigned", (TopicPartition("a.jsonl", 0),))
    assert one.take_changes() == []
    assert one.poll(0.0) == []
    assert one.exhausted
    assert one.generation() == 0
    one.close()


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz"])
def test_seek_goes_back_and_forth(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    rows = (
        [f'{{"x": "{i}"}}' for i in range(50)] if "jsonl" in name else ["x", *map(str, range(50))]
    )
    text = "\n".join(rows).encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    one = source(path, batch_records=20)
    one.seek({TopicPartition(name, 0): 37})
    first = one.poll(0.0)[0]
    assert (first.offset, json.loads(first.value or b"")) == (37, {"x": "37"})
    one.seek({TopicPartition(name, 0): 5})
    assert json.loads(one.poll(0.0)[0].value or b"") == {"x": "5"}
    one.seek({})
    assert one.poll(0.0)[0].offset == 0
    one.pause()
    assert one.poll(0.01) == []
    one.resume()
    # A CSV file's first line is no record.
    assert one.poll(0.0)[0].offset == (19 if name.endswith("csv") else 20)
    one.close()


def test_csv_rows_become_objects(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'\xef\xbb\xbfid,x,note\n007, 1.5 ,"two\nlines, and a comma"\na,2,"say ""hi"""\n\nb,,\n'
    )
    rows = [json.loads(value) for value in values(drained(source(path, batch_records=2)))]
    assert rows == [
        {"id": "007", "x": "1.5", "note": "two\nlines, and a comma"},
        {"id": "a", "x": "2", "note": 'say "hi"'},
        {"id": "b", "x": "", "note": ""},
    ]


def test_rows_are_told_by_what_stands_in_them(tmp_path: Path) -> None:
    """A stream that has committed a row finds it again by its checksum, whatever Weald has run."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n.165,+1\n5., 007 \n")
    place = TopicPartition("a.csv", 0)
    with closing(source(path)) as one:
        found = one.look({place: LogMark(last_offset=1)})[place]
    assert found.checksum == checksum_of(Message("a.csv", 0, 1, 0, None, b'{"x":"5.","y":"007"}'))


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV"])
def test_tabs_part_cells_of_what_is_called_so(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"x\ty\n1\t2,5\n")
    assert values(drained(source(path))) == [b'{"x":"1","y":"2,5"}']


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"x":1}\n{"x":2}\n')
    one = source(path)
    assert values(drained(one)) == [b'{"x":1}', b'{"x":2}']
    one.seek(dict.fromkeys(one.assignment(), 0))
    assert values(drained(one)) == [b'{"x":1}', b'{"x":2}']


def test_bad_csv_rows_are_left_for_the_decoder(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,x\na,1,extra\nb\n\xff,1\nc,3\nd,"4"x\ne,"never closed\n')
    messages = drained(source(path))
    schema = Schema.of(SchemaSettings(fields=(FieldSettings("x"),), key="id"), text=True)
    batch, dead = decode(messages, schema)
    assert batch.key == ["c"]
    assert [(letter.offset, letter.reason) for letter in dead] == [
        (0, "not_object"),
        (1, "missing_field"),
        (2, "bad_utf8"),
        (4, "not_json"),
        (5, "not_json"),
    ]


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"x":1}\n' + b"9" * 3_000_000 + b'\n{"x":2}\n')
    found = values(drained(source(path, max_bytes=1_000)))
    assert [len(value) for value in found] == [7, STORED_BYTES + 1, 7]


@pytest.mark.parametrize("name", ["a.csv", "a.log"])
def test_a_row_that_is_too_long_is_the_same_where_longer_ones_are_taken(
    name: str, tmp_path: Path
) -> None:
    """Its dead letter can be replayed, and the file is known again by it."""
    path = tmp_path / name
    path.write_bytes(b"id,x,note\n1,2,3\na,1," + b"z" * 3_000 + b"\n")
    *_, strict = values(drained(source(path, max_bytes=1_000)))
    *_, lenient = values(drained(source(path, max_bytes=100_000)))
    assert strict == lenient
    assert b"z" * 3_000 in strict


@pytest.mark.parametrize(("name", "part"), [("a.csv", ","), ("a.tsv", "\t")])
def test_a_quote_inside_a_cell_is_a_character(name: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / name
    rows = ["n,note", '1,5" wide', '2,"two\nlines, ""so"", and 5"" wide"', '3,a "b" c', '4,"']
    text = "\n".join([*rows[:3], rows[2], rows[3], rows[1], rows[4], "5,never", "closed"])
    path.write_text(text.replace(",", part))
    found = values(drained(source(path, batch_records=1)))
    whole = {"n": "2", "note": f'two\nlines{part} "so"{part} and 5" wide'}
    assert [json.loads(value) for value in found[:-1]] == [
        {"n": "1", "note": '5" wide'},
        whole,
        whole,
        {"n": "3", "note": 'a "b" c'},
        {"n": "1", "note": '5" wide'},
    ]
    assert found[-1] == f'4{part}"\n5{part}never\nclosed\n'.encode()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.jsonl cannot be opened"):
        source(tmp_path / "nowhere.jsonl")
    broken = tmp_path / "a.jsonl.gz"
    broken.write_bytes(gzip.compress(os.urandom(500_000))[:400_000])
    with pytest.raises(SourceError, match=r"a\.jsonl\.gz cannot be read"):
        drained(source(broken))
    with pytest.raises(SourceError, match="path"):
        FileSource(StreamSettings(source="file"))


FULL_PIPE = """
import sys
from weald.stream.source.file_source import FileSource
from weald.stream.settings import StreamSettings

source = FileSource(StreamSettings(source="stdin"))
assert source.poll(0.01) == []
source.take_changes()
source.seek({})
while not source.exhausted:
    for message in source.poll(0.05):
        print(message.offset, message.value.decode())
"""


def test_standard_input_loses_nothing_before_its_stream_is_settled() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_PIPE], input=b"one\ntwo\n", capture_output=True, check=True
    )
    assert done.stdout == b"0 one\n1 two\n"


PIPE = """
import sys
from weald.stream.source.file_source import FileSource
from weald.stream.record.record import TopicPartition
from weald.stream.settings import StreamSettings

source = FileSource(StreamSettings(source="stdin", batch_records=2))
source.seek({TopicPartition("stdin", 0): 40})
print("empty" if not source.poll(0.01) else "early", flush=True)
while not source.exhausted:
    for message in source.poll(0.05):
        print(message.offset, message.value.decode(), flush=True)
"""


def test_standard_input_is_read_as_it_comes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PIPE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"empty\n"
        process.stdin.write(b"one\ntwo\nthr")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == [b"40 one\n", b"41 two\n"]
        process.stdin.write(b"ee")
        process.stdin.close()
        assert process.stdout.read() == b"42 three\n"
        assert process.wait(timeout=20) == 0
