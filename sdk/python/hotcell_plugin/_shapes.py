"""From type annotations to JSON schemas, and from JSON values to what the annotations promise.

One pass over an annotation gives a `Shape` with both, so that the schema and the check cannot differ.
"""

import dataclasses
import enum
import inspect
import json
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from .docstrings import parse
from .errors import DeclarationError, InvalidInput

_MISSING = object()


class Shape(NamedTuple):
    """What an annotation means."""

    schema: dict[str, Any]
    #: Takes a JSON value and the words for where it stands; gives the value, or raises `InvalidInput`.
    read: Callable[[Any, str], Any]


class Field(NamedTuple):
    """A parameter of a function or a field of a class."""

    name: str
    shape: Shape
    default: Any = _MISSING

    @property
    def required(self) -> bool:
        """Whether the value has to be given."""
        return self.default is _MISSING


def _shown(value: Any) -> str:
    """What came, in few words."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text if len(text) <= 60 else text[:57] + '…'}`"


def _plain(name: str, words: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any]) -> Shape:
    def read(value: Any, where: str) -> Any:
        if not fits(value):
            raise InvalidInput(f"{where} must be {words}, but is {_shown(value)}")
        return convert(value)

    return Shape({"type": name}, read)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_PLAIN = {
    int: _plain("integer", "a whole number", _is_integer, int),
    float: _plain("number", "a number", _is_number, float),
    str: _plain("string", "a text", lambda value: isinstance(value, str), str),
    bool: _plain("boolean", "true or false", lambda value: isinstance(value, bool), bool),
    type(None): _plain("null", "null", lambda value: value is None, lambda value: value),
    dict: _plain("object", "an object", lambda value: isinstance(value, dict), lambda value: value),
    list: _plain("array", "a list", lambda value: isinstance(value, list), lambda value: value),
    Any: Shape({}, lambda value, where: value),
}


def shape(annotation: Any, where: str, inside: tuple[Any, ...] = ()) -> Shape:
    """What an annotation means; `where` names its place in errors, `inside` has the classes around it."""
    try:
        if annotation in _PLAIN:
            found = _PLAIN[annotation]
            return Shape(dict(found.schema), found.read)
    except TypeError:
        # An annotation that cannot be hashed is none of the plain ones.
        pass
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        inner = shape(arguments[0], where, inside)
        texts = [text for text in arguments[1:] if isinstance(text, str)]
        return Shape({**inner.schema, "description": texts[0]} if texts else inner.schema, inner.read)
    if origin is typing.Literal:
        return _choice(list(arguments), lambda value: value)
    if origin in (typing.Union, types.UnionType):
        return _union([shape(argument, where, inside) for argument in arguments])
    if origin is list:
        return _list(shape(arguments[0], f"{where}, its items", inside))
    if origin is dict:
        if arguments[0] is not str:
            raise DeclarationError(f"{where}: the keys of a dict have to be `str`, because JSON has no others")
        return _map(shape(arguments[1], f"{where}, its values", inside))
    if inspect.isclass(annotation):
        if issubclass(annotation, enum.Enum):
            return _choice([member.value for member in annotation], annotation)
        if annotation in inside:
            raise DeclarationError(f"{where}: `{annotation.__name__}` contains itself, which cannot be described")
        if dataclasses.is_dataclass(annotation):
            return _dataclass(annotation, where, (*inside, annotation))
        if typing.is_typeddict(annotation):
            return _typed_dict(annotation, where, (*inside, annotation))
    shown = getattr(annotation, "__name__", None) or str(annotation)
    raise DeclarationError(
        f"{where}: the type `{shown}` cannot be described; use int, float, str, bool, list[T], "
        "dict[str, T], Optional, Literal, an Enum, a dataclass or a TypedDict"
    )


def _choice(values: list[Any], convert: Callable[[Any], Any]) -> Shape:
    def read(value: Any, where: str) -> Any:
        # `1 == True` in Python, but not in JSON.
        if not any(type(value) is type(one) and value == one for one in values):
            raise InvalidInput(
                f"{where} must be one of {', '.join(_shown(one) for one in values)}, but is {_shown(value)}"
            )
        return convert(value)

    return Shape({"enum": values}, read)


def _union(shapes: list[Shape]) -> Shape:
    def read(value: Any, where: str) -> Any:
        problems = []
        for one in shapes:
            try:
                return one.read(value, where)
            except InvalidInput as problem:
                problems.append(problem)
        # With one choice besides null, its own words say most.
        real = [problem for problem, one in zip(problems, shapes) if one.schema != {"type": "null"}]
        raise real[0] if len(real) == 1 else InvalidInput("; or ".join(problem.message for problem in problems))

    if all(set(one.schema) == {"type"} for one in shapes):
        return Shape({"type": [one.schema["type"] for one in shapes]}, read)
    return Shape({"anyOf": [one.schema for one in shapes]}, read)


def _list(item: Shape) -> Shape:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise InvalidInput(f"{where} must be a list, but is {_shown(value)}")
        return [item.read(one, f"{where}[{index}]") for index, one in enumerate(value)]

    return Shape({"type": "array", "items": item.schema}, read)


def _map(item: Shape) -> Shape:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidInput(f"{where} must be an object, but is {_shown(value)}")
        return {key: item.read(one, f"{where}.{key}") for key, one in value.items()}

    return Shape({"type": "object", "additionalProperties": item.schema}, read)


def object_shape(fields: list[Field], build: Callable[[dict[str, Any]], Any], description: str = "") -> Shape:
    """An object with these fields and no others."""
    schema: dict[str, Any] = {"type": "object"}
    if description:
        schema["description"] = description
    schema["properties"] = {field.name: field.shape.schema for field in fields}
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False

    def read(value: Any, where: str) -> Any:
        return build(read_fields(fields, value, where))

    return Shape(schema, read)


def read_fields(fields: list[Field], value: Any, where: str, strict: bool = True) -> dict[str, Any]:
    """The fields of a JSON object that are there. With `strict`, there may be no others."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{where or 'the input'} must be an object, but is {_shown(value)}")
    known = {field.name for field in fields}
    for name in value:
        if strict and name not in known:
            names = ", ".join(f"`{one}`" for one in sorted(known)) or "none"
            raise InvalidInput(f"{where + ': ' if where else ''}`{name}` is not known; there are: {names}")
    found = {}
    for field in fields:
        place = f"{where}.{field.name}" if where else f"`{field.name}`"
        if field.name in value:
            try:
                found[field.name] = field.shape.read(value[field.name], place)
            except InvalidInput:
                # `null` stands for what is left out, as models write it.
                if value[field.name] is not None or field.required:
                    raise
        elif field.required:
            raise InvalidInput(f"{place} is missing")
    return found


def _own_docstring(kind: type) -> str:
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    # A dataclass without a docstring gets its signature as one.
    return "" if text.startswith(f"{kind.__name__}(") else text


def _described(shape_: Shape, description: str) -> Shape:
    if not description or "description" in shape_.schema:
        return shape_
    return Shape({**shape_.schema, "description": description}, shape_.read)


def fields_of(kind: type, where: str, inside: tuple[Any, ...]) -> list[Field]:
    """The fields of a dataclass or TypedDict, described by the `Attributes:` section of its docstring."""
    texts = parse(_own_docstring(kind)).entries
    hints = typing.get_type_hints(kind, include_extras=True)
    found = []
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            inner = shape(hints[field.name], f"{where}, field `{field.name}`", inside)
            inner = _described(inner, texts.get(field.name, ""))
            found.append(Field(field.name, inner, None if optional else _MISSING))
    else:
        for name, hint in hints.items():
            if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
                hint = typing.get_args(hint)[0]
            inner = _described(shape(hint, f"{where}, field `{name}`", inside), texts.get(name, ""))
            found.append(Field(name, inner, _MISSING if name in kind.__required_keys__ else None))
    return found


def _dataclass(kind: type, where: str, inside: tuple[Any, ...]) -> Shape:
    return object_shape(fields_of(kind, where, inside), lambda found: kind(**found), parse(_own_docstring(kind)).text)


def _typed_dict(kind: type, where: str, inside: tuple[Any, ...]) -> Shape:
    return object_shape(fields_of(kind, where, inside), lambda found: found, parse(_own_docstring(kind)).text)


def parameters(function: Callable[..., Any], where: str, texts: dict[str, str]) -> list[Field]:
    """The parameters of a function, with the descriptions of its docstring."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    signature = inspect.signature(function)
    if unknown := [name for name in texts if name not in signature.parameters]:
        raise DeclarationError(f"{where}: the docstring describes `{unknown[0]}`, which is not a parameter")
    for name, parameter in signature.parameters.items():
        place = f"{where}, parameter `{name}`"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DeclarationError(f"{place}: arguments come by name, so `/`, `*args` and `**kwargs` cannot be used")
        if name not in hints:
            raise DeclarationError(f"{place} has no type; write `{name}: str` or what fits")
        inner = shape(hints[name], place)
        schema = dict(inner.schema)
        if name in texts and "description" not in schema:
            schema["description"] = texts[name]
        if parameter.default is parameter.empty:
            found.append(Field(name, Shape(schema, inner.read)))
            continue
        default = plain_value(parameter.default)
        if default is not None:
            schema["default"] = default
        found.append(Field(name, Shape(schema, inner.read), parameter.default))
    return found


def plain_value(value: Any) -> Any:
    """A result as what JSON knows: dataclasses become objects, enums their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain_value(value.value)
    if isinstance(value, dict):
        return {key: plain_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(one) for one in value]
    return value
