import argparse, base64, bisect, collections, contextlib, copy, csv, dataclasses, datetime, decimal, difflib, enum, fnmatch, fractions, functools, glob
import hashlib, heapq, hmac, html, io, itertools, json, logging, math, operator, os, pathlib, pprint, random, re, secrets, shlex, statistics, string, struct
import tempfile, textwrap, time, traceback, types, typing, unicodedata, urllib.parse, uuid, zlib, abc, configparser, tomllib, zipfile, gzip, pickle, asyncio
import xml.etree.ElementTree as tree
from collections import Counter, defaultdict, OrderedDict, deque
from dataclasses import dataclass, field, asdict

@dataclass(order=True)
class Item:
    name: str
    size: int = 0
    tags: list[str] = field(default_factory=list)

class Colour(enum.Enum):
    RED = "red"

out = {
    "item": asdict(Item("a", 2, ["t"])),
    "colour": Colour("red").name,
    "sha": hashlib.sha256(b"abc").hexdigest()[:8],
    "md5": hashlib.md5(b"abc").hexdigest()[:8],
    "date": datetime.datetime.strptime("2024-03-01 10:20", "%Y-%m-%d %H:%M").strftime("%d %b %Y"),
    "delta": (datetime.date(2024, 3, 1) - datetime.date(2024, 2, 1)).days,
    "decimal": str(decimal.Decimal("0.1") + decimal.Decimal("0.2")),
    "fraction": str(fractions.Fraction(1, 3) + fractions.Fraction(1, 6)),
    "csv": list(csv.DictReader(io.StringIO("a;b\n1;2\n"), delimiter=";")),
    "counter": Counter("abca").most_common(1),
    "url": urllib.parse.urlencode({"q": "a b"}),
    "split": shlex.split("a 'b c'"),
    "median": statistics.median([1, 5, 3]),
    "zip": zlib.decompress(zlib.compress(b"x" * 100)).decode()[:3],
    "xml": tree.fromstring("<a><b>1</b></a>").find("b").text,
    "codecs": "é".encode("latin-1").hex() + "é".encode("utf-16-le").hex() + "é".encode("cp1252").hex(),
    "toml": tomllib.loads("a = 1"),
    "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))[:8],
    "wrap": textwrap.shorten("one two three four", 12),
    "unicode": unicodedata.name("é"),
    "pickle": pickle.loads(pickle.dumps({"x": 1})),
    "template": string.Template("$a").substitute(a=1),
    "match": re.match(r"(?P<y>\d+)", "2024-").groupdict(),
    "path": str(pathlib.PurePosixPath("a") / "b.txt"),
}
print(json.dumps(out, sort_keys=True))
