#!/usr/bin/env python3
"""Makes tests/core/parquet/goldens: small Parquet files of several writers, and the same rows as JSON lines.

    python3 -m venv .venv && .venv/bin/pip install pyarrow polars duckdb fastparquet
    .venv/bin/python tests/reference/make_parquet_goldens.py

Files in refused/ hold what Millrace refuses by name.  With --random FOLDER [--count N] larger files of random
tables are made there, to be read beside their JSON lines.
"""

import argparse
import datetime
import json
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "core/parquet/goldens"

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])


def pairs(count):
    return [
        {
            "prompt": f"question {i % 7}",
            "response": None if i % 5 == 3 else f"answer \"{i}\"\n\\ \u7c89 {'x' * (i % 4)}",
            "score": i / 4,
            "id": i * i - 20,
            "good": i % 3 == 0,
        }
        for i in range(count)
    ]


PAIRS = pa.schema(
    [
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("score", pa.float64()),
        ("id", pa.int64()),
        pa.field("good", pa.bool_(), nullable=False),
    ]
)


def chats():
    rows = []
    for i in range(20):
        messages = [{"role": ["user", "assistant"][k % 2], "content": f"turn {k} of {i}"} for k in range(i % 5)]
        if messages and i % 6 == 4:
            messages[0]["content"] = None
        if i % 7 == 5:
            messages.append(None)
        rows.append({"messages": None if i % 9 == 8 else messages, "source": "s" if i % 2 else None})
    return rows


CHATS = pa.schema([("messages", pa.list_(MESSAGE)), ("source", pa.string())])


def deep():
    rows = []
    for i in range(12):
        grid = [[k * j for k in range(j % 3)] if j % 4 else None for j in range(i % 5)]
        rows.append(
            {
                "grid": None if i % 5 == 4 else grid,
                "meta": None
                if i % 4 == 3
                else {"tags": [f"t{k}" for k in range(i % 3)], "by": {"name": f"n{i}", "age": None if i % 2 else i}},
                "scores": {f"k{k}": k / 2 for k in range(i % 3)},
                "codes": [{"key": k, "value": "v" * k} for k in range(i % 2)],
            }
        )
    return rows


DEEP = pa.schema(
    [
        ("grid", pa.list_(pa.list_(pa.int32()))),
        ("meta", pa.struct([("tags", pa.list_(pa.string())), ("by", pa.struct([("name", pa.string()), ("age", pa.int8())]))])),
        ("scores", pa.map_(pa.string(), pa.float64())),
        ("codes", pa.map_(pa.int32(), pa.string())),
    ]
)


def kinds():
    rows = []
    for i in range(10):
        moment = datetime.datetime(1969, 12, 30, 23, 59, 58) + datetime.timedelta(days=97 * i, microseconds=250000 * i)
        rows.append(
            {
                "i8": i - 5,
                "u8": 250 + i % 6,
                "u32": 4294967290 + i % 6,
                "u64": 18446744073709551600 + i,
                "i64": -9223372036854775808 + i,
                "f32": i / 8 - 1,
                "f64": 10.0 ** (i * 7 - 30) * (1 if i % 2 else -1),
                "nan": None if i % 3 else i / 1.0,
                "day": moment.date(),
                "ms": moment,
                "us": moment,
                "ns": moment,
                "large": f"large {i}",
                "nothing": None,
            }
        )
    return rows


KINDS = pa.schema(
    [
        ("i8", pa.int8()),
        ("u8", pa.uint8()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("i64", pa.int64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("nan", pa.float64()),
        ("day", pa.date32()),
        ("ms", pa.timestamp("ms")),
        ("us", pa.timestamp("us", tz="UTC")),
        ("ns", pa.timestamp("ns")),
        ("large", pa.large_string()),
        ("nothing", pa.null()),
    ]
)

FRACTION = {"ms": 3, "us": 6, "ns": 9}


def as_json(name, value):
    if isinstance(value, datetime.datetime):
        text = value.strftime("%Y-%m-%dT%H:%M:%S")
        digits = f"{value.microsecond:06d}000"[: FRACTION[name]]
        return text + ("." + digits if value.microsecond else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def for_arrow(row):
    out = dict(row)
    if "scores" in out:
        out["scores"] = list(out["scores"].items())
    if "codes" in out:
        out["codes"] = [(c["key"], c["value"]) for c in out["codes"]]
    if isinstance(out.get("nan"), float) and out["nan"] == 0.0:
        out["nan"] = float("nan")  # null in JSON
    return out


def write(folder, name, rows, schema, **options):
    table = pa.Table.from_pylist([for_arrow(row) for row in rows], schema=schema)
    pq.write_table(table, folder / f"{name}.parquet", store_schema=False, **options)
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
        for row in rows:
            line = {k: as_json(k, v) for k, v in row.items()}
            if line.get("nan") == 0.0:
                line["nan"] = None
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


SMALL = {"row_group_size": 7, "data_page_size": 64, "write_batch_size": 2}
DELTA = {
    "use_dictionary": False,
    "column_encoding": {
        "prompt": "DELTA_BYTE_ARRAY",
        "response": "DELTA_LENGTH_BYTE_ARRAY",
        "id": "DELTA_BINARY_PACKED",
        "score": "BYTE_STREAM_SPLIT",
        "good": "RLE",
    },
}


def make_others():
    import duckdb
    import fastparquet
    import pandas
    import polars

    rows = [
        {"prompt": f"question {i}", "response": None if i % 4 == 3 else f"answer {i}", "id": i} for i in range(9)
    ]
    frame = pandas.DataFrame(rows)
    fastparquet.write(str(GOLDENS / "fastparquet.parquet"), frame, compression="SNAPPY")
    base = duckdb.connect()
    base.register("rows", frame)
    base.execute(f"copy rows to '{GOLDENS}/duckdb.parquet' (format parquet, compression zstd, parquet_version v2)")
    polars.DataFrame(rows).write_parquet(GOLDENS / "polars.parquet")
    for name in ("fastparquet", "duckdb", "polars"):
        with open(GOLDENS / f"{name}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


def make_goldens():
    GOLDENS.mkdir(parents=True, exist_ok=True)
    write(GOLDENS, "snappy", pairs(25), PAIRS)
    write(GOLDENS, "zstd_v2", pairs(25), PAIRS, compression="zstd", data_page_version="2.0", **SMALL)
    write(GOLDENS, "gzip", pairs(25), PAIRS, compression="gzip", write_page_checksum=True)
    write(GOLDENS, "lz4", pairs(25), PAIRS, compression="lz4")
    write(GOLDENS, "plain", pairs(25), PAIRS, compression="none", use_dictionary=False, **SMALL)
    write(GOLDENS, "delta", pairs(150), PAIRS, compression="zstd", **DELTA)
    write(GOLDENS, "delta_v2", pairs(25), PAIRS, data_page_version="2.0", write_page_checksum=True, **DELTA, **SMALL)
    write(GOLDENS, "messages", chats(), CHATS, **SMALL)
    write(GOLDENS, "messages_v2", chats(), CHATS, compression="zstd", data_page_version="2.0", **SMALL)
    write(GOLDENS, "deep", deep(), DEEP, compression="zstd", **SMALL)
    write(GOLDENS, "older_lists", chats(), CHATS, use_compliant_nested_type=False, version="1.0")
    write(GOLDENS, "kinds", kinds(), KINDS)
    write(GOLDENS, "empty", [], PAIRS)
    make_others()
    refused = GOLDENS / "refused"
    refused.mkdir(exist_ok=True)
    one = pa.table({"prompt": ["a"]})
    pq.write_table(one, refused / "brotli.parquet", compression="brotli", store_schema=False)
    moment = pa.table({"at": pa.array([datetime.datetime(2024, 1, 1)])})
    pq.write_table(moment, refused / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    import decimal

    price = pa.table({"price": pa.array([decimal.Decimal("1.5")])})
    pq.write_table(price, refused / "decimal.parquet", store_schema=False)
    picture = pa.table({"prompt": ["a", "b"], "picture": [b"text", b"\xff\xd8\xff"]})
    pq.write_table(picture, refused / "bytes.parquet", store_schema=False)


def random_table(draw, count):
    words = ["", "a", "\u7c89", "long " * 40, "\"quoted\"\n", "end"]

    def text():
        return None if draw.random() < 0.1 else draw.choice(words) * draw.randint(0, 3)

    def messages():
        return None if draw.random() < 0.1 else [
            None if draw.random() < 0.05 else {"role": text(), "content": text()} for _ in range(draw.randint(0, 5))
        ]

    return [
        {"prompt": text() or "", "messages": messages(), "id": draw.randint(-(2**40), 2**40), "score": draw.random()}
        for _ in range(count)
    ]


RANDOM = pa.schema([("prompt", pa.string()), ("messages", pa.list_(MESSAGE)), ("id", pa.int64()), ("score", pa.float64())])


def make_random(folder, count):
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    for i in range(count):
        write(
            folder,
            f"random{i}",
            random_table(draw, draw.randint(1, 20000)),
            RANDOM,
            compression=draw.choice(["none", "snappy", "gzip", "zstd", "lz4"]),
            data_page_version=draw.choice(["1.0", "2.0"]),
            use_dictionary=draw.random() < 0.5,
            row_group_size=draw.choice([100, 5000, 100000]),
            data_page_size=draw.choice([100, 10000, 1 << 20]),
            write_page_checksum=draw.random() < 0.5,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.random:
        make_random(arguments.random, arguments.count)
    else:
        make_goldens()


if __name__ == "__main__":
    main()
