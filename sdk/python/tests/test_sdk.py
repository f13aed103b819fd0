"""Tests of the SDK without a cell: `PYTHONPATH=. python3 -m unittest discover tests` in `sdk/python`."""

import enum
import json
import unittest
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

from hotcell_plugin import Denied, InvalidInput, Outcome, PluginError, Request, Unavailable, accepted, change, config
from hotcell_plugin import connector, hook, http
from hotcell_plugin import kv, llm, node, proceed, receive, refuse, script, secret, state, tool, tools
from hotcell_plugin import _calls, _registry
from hotcell_plugin._shapes import shape
from hotcell_plugin import _places, files
from hotcell_plugin.describe import description, undeclared
from hotcell_plugin.docstrings import parse
from hotcell_plugin.errors import DeclarationError
from hotcell_plugin.testing import surroundings


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Place:
    """A place.

    Attributes:
        name: What it is called.
    """

    name: str
    height: float = 0.0


class Options(TypedDict):
    """Choices."""

    fast: bool
    limit: NotRequired[int]


@dataclass
class Tree:
    children: "list[Tree]"


class Shapes(unittest.TestCase):
    def test_types_become_schemas(self):
        cases = [
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (str, {"type": "string"}),
            (bool, {"type": "boolean"}),
            (Any, {}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (Optional[str], {"type": ["string", "null"]}),
            (int | list[int], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Colour, {"enum": ["red", "green"]}),
            (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
            (
                Place,
                {
                    "type": "object",
                    "description": "A place.",
                    "properties": {
                        "name": {"type": "string", "description": "What it is called."},
                        "height": {"type": "number"},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
            ),
            (
                Options,
                {
                    "type": "object",
                    "description": "Choices.",
                    "properties": {"fast": {"type": "boolean"}, "limit": {"type": "integer"}},
                    "required": ["fast"],
                    "additionalProperties": False,
                },
            ),
        ]
        for annotation, expected in cases:
            self.assertEqual(shape(annotation, "x").schema, expected, annotation)

    def test_values_become_what_the_types_promise(self):
        self.assertEqual(shape(Place, "x").read({"name": "Oslo"}, "x"), Place("Oslo"))
        self.assertIs(shape(Colour, "x").read("red", "x"), Colour.RED)
        self.assertEqual(shape(float, "x").read(2, "x"), 2.0)
        self.assertEqual(shape(int, "x").read(2.0, "x"), 2)

    def test_what_does_not_fit_is_said_with_its_place(self):
        cases = [
            (int, True, "x must be a whole number, but is `true`"),
            (int, 1.5, "x must be a whole number, but is `1.5`"),
            (str, None, "x must be a text, but is null"),
            (bool, 1, "x must be true or false, but is `1`"),
            (list[int], [1, "b"], 'x[1] must be a whole number, but is `"b"`'),
            (dict[str, int], {"a": []}, "x.a must be a whole number, but is a list"),
            (Literal[1], True, "x must be one of `1`, but is `true`"),
            (Optional[int], "a", 'x must be a whole number, but is `"a"`'),
            (Place, {}, "x.name is missing"),
            (Place, {"name": "a", "depth": 1}, "`depth` is not known; there are: `height`, `name`"),
        ]
        for annotation, value, expected in cases:
            with self.assertRaises(InvalidInput) as raised:
                shape(annotation, "x").read(value, "x")
            self.assertIn(expected, raised.exception.message)

    def test_what_cannot_be_described_is_refused(self):
        for annotation, expected in [
            (bytes, "`bytes` cannot be described"),
            (dict[int, str], "have to be `str`"),
            (Tree, "contains itself"),
            (tuple[int, int], "cannot be described"),
        ]:
            with self.assertRaises(DeclarationError) as raised:
                shape(annotation, "parameter `x`")
            self.assertIn(expected, str(raised.exception))


class Docstrings(unittest.TestCase):
    def test_text_and_entries_are_read(self):
        read = parse("""Does it.

        In two
        paragraphs.

        Args:
            a: First,
                on two lines.
            b (int): Second.

        Returns:
            c: nothing of interest
        """)
        self.assertEqual(read.text, "Does it.\n\nIn two paragraphs.")
        self.assertEqual(read.entries, {"a": "First, on two lines.", "b": "Second."})
        self.assertEqual(parse(None), ("", {}))


class Plugins(unittest.TestCase):
    def setUp(self):
        for name, value in vars(_registry.Plugin()).items():
            setattr(_registry.declared, name, value)

    def test_a_tool_is_described_and_called(self):
        @tool(read_only=True)
        def find(where: Place, limit: int = 3, colour: Optional[Colour] = None) -> dict[str, Any]:
            """Finds.

            Args:
                where: Around this.
            """
            return {"where": where, "limit": limit, "colour": colour}

        described = description()["tools"][0]
        self.assertEqual(
            (described["name"], described["read_only"], described["description"]), ("find", True, "Finds.")
        )
        self.assertEqual(described["parameters"]["required"], ["where"])
        self.assertEqual(described["parameters"]["properties"]["limit"], {"type": "integer", "default": 3})
        result = _calls.call_tool("find", '{"where": {"name": "Oslo"}, "colour": "green", "limit": null}')
        self.assertEqual(json.loads(result), {"where": {"name": "Oslo", "height": 0.0}, "limit": 3, "colour": "green"})
        for arguments, expected in [
            ("{}", "`where` is missing"),
            ("[]", "must be an object"),
            ("{", "is not JSON"),
            ('{"where": {"name": 1}}', "`where`.name must be a text"),
        ]:
            with self.assertRaises(InvalidInput) as raised:
                _calls.call_tool("find", arguments)
            self.assertIn(expected, raised.exception.message)
        with self.assertRaises(InvalidInput):
            _calls.call_tool("no", "{}")

    def test_what_a_tool_returns_is_described_where_it_has_a_form(self):
        @tool
        def where() -> Place:
            """Gives a place."""

        @tool
        def many() -> list[int]:
            """Gives numbers."""

        @tool
        def anything() -> Any:
            """Gives anything."""

        @tool
        def nothing() -> None:
            """Gives nothing."""

        @tool
        def odd() -> object:
            """Gives what cannot be described."""

        returns = [one.get("returns") for one in description()["tools"]]
        self.assertEqual((returns[0]["type"], returns[0]["required"]), ("object", ["name"]))
        self.assertEqual(returns[1:], [{"type": "array", "items": {"type": "integer"}}, None, None, None])

    def test_a_result_that_is_no_json_is_an_error(self):
        @tool
        def wrong() -> Any:
            """Gives what JSON has not."""
            return float("nan")

        with self.assertRaises(PluginError):
            _calls.call_tool("wrong", "{}")

    def test_functions_that_cannot_be_tools_are_refused(self):
        def untyped(a): ...
        def many(*a: int): ...
        def undocumented(a: int):
            """Args:
            b: is not there
            """

        for function, expected in [
            (untyped, "`a` has no type"),
            (many, "`*args`"),
            (undocumented, "`b`, which is not a parameter"),
        ]:
            with self.assertRaises(DeclarationError) as raised:
                tool(function)
            self.assertIn(expected, str(raised.exception))

    def test_a_script_gets_the_keys_it_names(self):
        @script
        def run(place: Place):
            return {"seen": place.name}

        self.assertEqual(_calls.run_script('{"name": "Oslo", "other": 1}'), '{"seen": "Oslo"}')
        self.assertTrue(description()["script"])

    def test_a_node_leaves_by_a_declared_branch(self):
        @node("look", branches=["found"])
        def look(fields: dict, inputs: Place) -> Outcome[Options]:
            """Looks."""
            return Outcome({"fast": True}, branch=fields["branch"])

        described = description()["nodes"][0]
        self.assertEqual(
            (described["type"], described["branches"], described["fields"]), ("look", ["found"], {"type": "object"})
        )
        self.assertEqual(described["outputs"]["required"], ["fast"])
        given = _calls.run_node("look", '{"branch": "found"}', '{"name": "a", "more": 1}')
        self.assertEqual((given.outputs, given.branch), ('{"fast": true}', "found"))
        with self.assertRaises(PluginError) as raised:
            _calls.run_node("look", '{"branch": "lost"}', '{"name": "a"}')
        self.assertIn("it declares found", raised.exception.message)

    def test_hooks_give_verdicts(self):
        @hook("before-tool-call")
        def check(event: dict):
            return {"a": proceed(), "b": change({"n": 1}), "c": refuse("no"), "d": None, "e": 1}[event["tool"]]

        verdicts = [_calls.on_event("before-tool-call", json.dumps({"tool": name})) for name in "abcd"]
        self.assertEqual([verdict.kind for verdict in verdicts], ["proceed", "change", "refuse", "proceed"])
        self.assertEqual((verdicts[1].event, verdicts[2].reason), ('{"n": 1}', "no"))
        self.assertEqual(_calls.on_event("after-run", "{}").kind, "proceed")
        with self.assertRaises(PluginError):
            _calls.on_event("before-tool-call", '{"tool": "e"}')
        with self.assertRaises(DeclarationError):
            hook("before-breakfast")

    def test_a_connector_sends_and_receives(self):
        @connector(modes=["sync", "callback"])
        def send(request: Request[Place]):
            """Sends."""
            return accepted() if request.callback_url else {"to": request.config.name, **request.input}

        self.assertEqual(description()["connector"]["config"]["required"], ["name"])
        self.assertEqual(_calls.send(Request('{"a": 1}', '{"name": "x"}')), '{"to": "x", "a": 1}')
        self.assertEqual(_calls.send(Request("{}", '{"name": "x"}', "https://a", "s")), accepted())
        self.assertEqual(_calls.receive(Request("{}", '{"name": "x"}'), "[1]"), "[1]")
        receive(lambda request, body: body[0])
        self.assertEqual(_calls.receive(Request("{}", '{"name": "x"}'), "[1]"), "1")


class Host(unittest.TestCase):
    def test_surroundings_give_the_functions_of_the_host(self):
        def model(request):
            return {"text": request["messages"][-1]["content"].upper(), "model": "m", "usage": {}}

        with surroundings(
            config={"a": "1"},
            kv={"k": "v"},
            state={"x": [{"y": 2}]},
            secrets={"KEY": "s"},
            llm=model,
            tools={"add": lambda a, b: a + b},
        ) as around:
            self.assertEqual(
                (config.get("a"), config.get("b", "-"), kv.get_text("k"), kv.get("none")), ("1", "-", "v", None)
            )
            kv.set_json("j", [1])
            self.assertEqual((kv.get_json("j"), kv.keys("")), ([1], ["j", "k"]))
            self.assertEqual((state.get("x.0.y"), state.get("x.1", "-")), (2, "-"))
            self.assertEqual((llm.complete("hi"), tools.call("add", a=1, b=2)), ("HI", 3))
            self.assertNotEqual(secret("KEY"), "s")
            with self.assertRaises(InvalidInput):
                config.require("none")
            with self.assertRaises(Denied):
                secret("OTHER")
        self.assertIn("j", around.store)

    def test_requests_are_put_together_and_answers_read(self):
        asked = []

        def server(method, url, headers, body):
            asked.append((method, url, headers, body))
            return http.Response(200 if "ok" in url else 503, {}, b'{"a": 1}')

        with surroundings(http=server):
            answer = http.post("https://example.org/ok", query={"q": "a b"}, json={"x": 1}).success()
            self.assertEqual(answer.json(), {"a": 1})
            with self.assertRaises(Unavailable) as raised:
                http.get("https://example.org/no").success()
            with self.assertRaises(InvalidInput):
                http.get("ftp://example.org")
        self.assertEqual(
            asked[0], ("POST", "https://example.org/ok?q=a+b", {"content-type": "application/json"}, b'{"x": 1}')
        )
        self.assertEqual(raised.exception.facts, {"status": "503"})

    def test_outside_a_denial_says_what_to_write(self):
        with self.assertRaises(Denied) as raised:
            kv.get("k")
        self.assertIn("kv = true", raised.exception.message)


class Places(unittest.TestCase):
    def test_an_error_says_where_in_the_authors_code_it_happened(self):
        code = compile("import json\n\ndef read():\n    return 1, json.loads('{')\n", "/1/lib/plugin.py", "exec")
        module = {}
        exec(code, module)
        try:
            module["read"]()
        except ValueError as error:
            _places.authored("/1", "src")
            self.assertTrue(_places.words(error).endswith("(src/lib/plugin.py:4:15)"), _places.words(error))
            _places.authored("/elsewhere", "src")
            self.assertIsNone(_places.place(error))

    def test_what_is_not_asked_for_is_found_with_its_line(self):
        for source, line, word in (
            ("from hotcell_plugin import tool, kv\n", 1, "kv = true"),
            ("import hotcell_plugin\nhotcell_plugin.ask('?')\n", 2, "ask = true"),
            ("from hotcell_plugin.http import get\n", 1, "http = "),
            ("from hotcell_plugin import state\n", 1, "a plugin of this kind does not have"),
        ):
            found = undeclared(source, ["log", "config"])
            self.assertEqual(found[0], line)
            self.assertIn(word, found[1])
            self.assertIsNone(undeclared(source, ["kv", "ask", "http", "state"]))


class Files(unittest.TestCase):
    def test_files_are_those_of_the_surroundings(self):
        with surroundings(files={"/data/a.txt": "a"}) as around:
            files.write("/data/sub/b.txt", files.read_text("/data/a.txt") + "b")
            self.assertEqual(files.entries("/data"), ["a.txt", "sub/"])
            files.remove("/data/a.txt")
            self.assertEqual(around.files, {"/data/sub/b.txt": b"ab"})
            with self.assertRaises(InvalidInput):
                files.read("/data/a.txt")


if __name__ == "__main__":
    unittest.main()
