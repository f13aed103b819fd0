"""What files of tools import as `pydantic`, for the Python cell: models whose fields have types, and what is said of a field.

The library itself has native code, which a cell has not. Here are models as arguments and results of tools. What they have not
(validators, aliases, computed fields, types of its own) is an error that names it, never left out in silence.
"""

import collections.abc
import copy
import datetime
import enum
import functools
import json
import re
import types
import typing

_BOUNDS = {
    "gt": ("exclusiveMinimum", lambda value, bound: value > bound, "greater than {}"),
    "ge": ("minimum", lambda value, bound: value >= bound, "greater than or equal to {}"),
    "lt": ("exclusiveMaximum", lambda value, bound: value < bound, "less than {}"),
    "le": ("maximum", lambda value, bound: value <= bound, "less than or equal to {}"),
}
_LENGTHS = {"min_length": "min", "max_length": "max"}
_YES, _NO = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_DATES = {datetime.datetime: "date-time", datetime.date: "date", datetime.time: "time"}
_LISTS = (list, tuple, set, frozenset)
_SEQUENCES = (collections.abc.Sequence, collections.abc.Iterable)


class _Wrong(Exception):
    """A value that is none of a type: where in it, and why."""

    def __init__(self, *problems):
        super().__init__(problems)
        self.problems = list(problems)

    def below(self, place):
        return [((place, *where), why) for where, why in self.problems]


class ValidationError(ValueError):
    """Values that make no model."""

    def __init__(self, title, problems):
        self.title, self._problems = title, problems
        count = len(problems)
        lines = [f"{count} validation error{'s' if count > 1 else ''} for {title}"]
        for where, why in problems:
            lines += [".".join(map(str, where)), f"  {why}"]
        super().__init__("\n".join(lines))

    def errors(self):
        return [{"loc": where, "msg": why} for where, why in self._problems]

    def error_count(self):
        return len(self._problems)


class Field:
    """What is said of a field of a model, or of an argument."""

    def __init__(self, default=..., *, default_factory=None, description=None, title=None, examples=None, **bounds):
        known = [*_BOUNDS, *_LENGTHS, "pattern"]
        for name in bounds:
            if name not in known:
                names = ", ".join(["default", "default_factory", "description", "title", "examples", *known])
                raise TypeError(f"of a `Field` a sealed cell knows {names}, and not `{name}`")
        self.default, self.default_factory, self.description = default, default_factory, description
        self.title, self.examples = title, examples
        self.bounds = {name: bound for name, bound in bounds.items() if bound is not None}

    def is_required(self):
        return self.default is ... and self.default_factory is None

    def get_default(self):
        return self.default_factory() if self.default_factory else copy.deepcopy(self.default)

    def in_schema(self, schema):
        """A JSON schema with what is said here."""
        said = dict(schema)
        for name, bound in self.bounds.items():
            if name in _BOUNDS:
                said[_BOUNDS[name][0]] = bound
            elif name == "pattern":
                said["pattern"] = bound
            else:
                kind = {"array": "Items", "object": "Properties"}.get(schema.get("type"), "Length")
                said[_LENGTHS[name] + kind] = bound
        if self.description:
            said["description"] = self.description
        return said

    def check(self, value):
        for name, bound in self.bounds.items():
            if value is None:
                return
            if name in _BOUNDS:
                if not _BOUNDS[name][1](value, bound):
                    raise _Wrong(((), f"Input should be {_BOUNDS[name][2].format(bound)}"))
            elif name == "pattern":
                if not re.search(bound, value):
                    raise _Wrong(((), f"String should match pattern '{bound}'"))
            elif len(value) < bound if name == "min_length" else len(value) > bound:
                raise _Wrong(((), f"Value should have at {'least' if name == 'min_length' else 'most'} {bound} items or characters"))


def ConfigDict(**settings):
    """Settings of a model."""
    return settings


def _parts(hint):
    """A type without what is said beside it, and that."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, []
    hint, *said = typing.get_args(hint)
    return hint, [one for one in said if isinstance(one, Field)]


def _is_model(hint):
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _is_enum(hint):
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _unknown(hint):
    return TypeError(f"a sealed cell has no `pydantic` for the type `{getattr(hint, '__name__', hint)}`")


def converted(hint, value):
    """A value as one of a type."""
    hint, said = _parts(hint)
    value = _converted(hint, value)
    for field in said:
        field.check(value)
    return value


def validated(title, hint, value):
    """The same for a value that is no field."""
    try:
        return converted(hint, value)
    except _Wrong as wrong:
        raise ValidationError(title, wrong.problems) from None


def _converted(hint, value):
    if hint is typing.Any:
        return value
    if hint in _SCALARS or hint is None:
        return _scalar(hint, value)
    if hint in _DATES:
        return _date(hint, value)
    if _is_model(hint):
        return value if isinstance(value, hint) else _model(hint, value)
    if _is_enum(hint):
        try:
            return hint(value)
        except ValueError:
            raise _Wrong(((), f"Input should be {_either(repr(one.value) for one in hint)}")) from None
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Literal:
        if any(type(value) is type(one) and value == one for one in parts):
            return value
        raise _Wrong(((), f"Input should be {_either(map(repr, parts))}"))
    if origin in (typing.Union, types.UnionType):
        return _one_of(parts, value)
    if origin in _LISTS or origin in _SEQUENCES:
        return _items(origin if origin in _LISTS else list, parts, value)
    if origin in (dict, collections.abc.Mapping):
        return _entries(parts, value)
    raise _unknown(hint)


def _either(texts):
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


def _scalar(hint, value):
    name = {str: "string", int: "integer", float: "number", bool: "boolean"}.get(hint)
    if name is None:
        if value is None:
            return None
        raise _Wrong(((), "Input should be None"))
    if hint is str and isinstance(value, str):
        return value
    if hint is bool:
        if isinstance(value, bool):
            return value
        text = str(int(value)) if isinstance(value, (int, float)) and value in (0, 1) else str(value).lower()
        if isinstance(value, (int, float, str)) and text in _YES + _NO:
            return text in _YES
    if hint is int and isinstance(value, (int, float, str)):
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(\.0*)?\s*", value):
            return int(value.partition(".")[0])
        if not isinstance(value, str) and value == value // 1:
            return int(value)
    if hint is float and isinstance(value, (int, float, str)):
        try:
            return float(value)
        except ValueError:
            pass
    raise _Wrong(((), f"Input should be a valid {name}"))


def _date(hint, value):
    if isinstance(value, hint):
        return value
    try:
        return hint.fromisoformat(value)
    except (TypeError, ValueError):
        raise _Wrong(((), f"Input should be a valid {hint.__name__}")) from None


def _model(hint, value):
    if not isinstance(value, collections.abc.Mapping):
        raise _Wrong(((), f"Input should be a valid dictionary or instance of {hint.__name__}"))
    try:
        return hint(**value)
    except ValidationError as error:
        raise _Wrong(*error._problems) from None


def _one_of(parts, value):
    """As the first of the types that it is already, or else as the first that it can become."""
    problems = []
    for exact in (True, False):
        for part in parts:
            if exact and type(value) is not (typing.get_origin(_parts(part)[0]) or _parts(part)[0]):
                continue
            try:
                return converted(part, value)
            except _Wrong as wrong:
                problems = problems or wrong.problems
    raise _Wrong(*problems)


def _items(kind, parts, value):
    if not isinstance(value, _LISTS):
        raise _Wrong(((), f"Input should be a valid {kind.__name__}"))
    hints = [part for part in parts if part is not Ellipsis]
    if kind is tuple and parts and Ellipsis not in parts:
        if len(hints) != len(value):
            raise _Wrong(((), f"Input should have {len(hints)} items"))
    else:
        hints = (hints or [typing.Any])[:1] * len(value)
    return kind(_each(enumerate(value), hints))


def _each(items, hints):
    made, problems = [], []
    for (place, item), hint in zip(items, hints):
        try:
            made.append(converted(hint, item))
        except _Wrong as wrong:
            problems += wrong.below(place)
    if problems:
        raise _Wrong(*problems)
    return made


def _entries(parts, value):
    if not isinstance(value, collections.abc.Mapping):
        raise _Wrong(((), "Input should be a valid dictionary"))
    of_keys, of_values = parts or (typing.Any, typing.Any)
    keys = _each(((key, key) for key in value), [of_keys] * len(value))
    return dict(zip(keys, _each(value.items(), [of_values] * len(value))))


def schema_of(hint):
    """The JSON schema of a type."""
    hint, said = _parts(hint)
    schema = _schema_of(hint)
    for field in said:
        schema = field.in_schema(schema)
    return schema


def _schema_of(hint):
    if hint is typing.Any:
        return {}
    if hint in _SCALARS or hint is None:
        return {"type": _SCALARS.get(hint, "null")}
    if hint in _DATES:
        return {"type": "string", "format": _DATES[hint]}
    if _is_model(hint):
        return hint.model_json_schema()
    if _is_enum(hint):
        return {"enum": [one.value for one in hint]}
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part) for part in parts]}
    if origin in _LISTS or origin in _SEQUENCES:
        items = [part for part in parts if part is not Ellipsis]
        if origin is tuple and items and Ellipsis not in parts:
            count = {"minItems": len(items), "maxItems": len(items)}
            return {"type": "array", "prefixItems": [schema_of(item) for item in items], **count}
        return {"type": "array", "items": schema_of(items[0])} if items else {"type": "array"}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", "additionalProperties": schema_of(parts[1])} if parts else {"type": "object"}
    raise _unknown(hint)


@functools.cache
def _fields(model):
    """The fields of a model by their names: the type and what is said of each."""
    fields = {}
    for name, hint in typing.get_type_hints(model, include_extras=True).items():
        if name.startswith("_") or typing.get_origin(hint) is typing.ClassVar or hint is typing.ClassVar:
            continue
        default = getattr(model, name, ...)
        hint, said = _parts(hint)
        field = default if isinstance(default, Field) else Field(default)
        for other in reversed(said):
            field = _together(other, field)
        fields[name] = (hint, field)
    return fields


def _together(first, last):
    """What two say of the same; the last has the last word."""
    default = first if last.is_required() else last
    return Field(
        default.default,
        default_factory=default.default_factory,
        description=last.description or first.description,
        title=last.title or first.title,
        **{**first.bounds, **last.bounds},
    )


class _Model(type):
    @property
    def model_fields(cls):
        return {name: field for name, (_, field) in _fields(cls).items()}


class BaseModel(metaclass=_Model):
    """A model: an object whose fields have types."""

    model_config = {}

    def __init_subclass__(cls, **settings):
        super().__init_subclass__()
        if "Config" in vars(cls):
            raise TypeError(f"`{cls.__name__}`: `class Config` is not known to a sealed cell; say `model_config = ConfigDict(...)`")
        cls.model_config = {**cls.model_config, **settings}
        for name in cls.model_config:
            if name not in ("extra", "title"):
                raise TypeError(f"`{cls.__name__}`: of the settings of a model a sealed cell knows `extra` and `title`, and not `{name}`")

    def __init__(self, /, **given):
        fields, values, problems = _fields(type(self)), {}, []
        for name, (hint, field) in fields.items():
            try:
                values[name] = self._value(hint, field, given, name)
            except _Wrong as wrong:
                problems += wrong.below(name)
        extra = self.model_config.get("extra", "ignore")
        others = {name: value for name, value in given.items() if name not in fields}
        if extra == "forbid":
            problems += [((name,), "Extra inputs are not permitted") for name in others]
        if problems:
            raise ValidationError(type(self).__name__, problems)
        vars(self).update(others if extra == "allow" else {}, **values)
        self.__dict__["__given__"] = frozenset(given)
        self.model_post_init(None)

    @staticmethod
    def _value(hint, field, given, name):
        if name in given:
            value = converted(hint, given[name])
            field.check(value)
            return value
        if field.is_required():
            raise _Wrong(((), "Field required"))
        return field.get_default()

    def model_post_init(self, context, /):
        """Called when the fields have their values."""

    @property
    def model_fields_set(self):
        return set(self.__dict__["__given__"] & _fields(type(self)).keys())

    def _entries(self):
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def model_dump(
        self, *, mode="python", include=None, exclude=None, exclude_unset=False, exclude_defaults=False, exclude_none=False, by_alias=None
    ):
        fields, dumped = _fields(type(self)), {}
        for name, value in self._entries().items():
            is_default = name in fields and not fields[name][1].is_required() and fields[name][1].get_default() == value
            if (
                (include is not None and name not in include)
                or (exclude is not None and name in exclude)
                or (exclude_unset and name not in self.__dict__["__given__"])
                or (exclude_defaults and is_default)
                or (exclude_none and value is None)
            ):
                continue
            nested = {"exclude_unset": exclude_unset, "exclude_defaults": exclude_defaults, "exclude_none": exclude_none}
            dumped[name] = _dumped(value, mode, nested)
        return dumped

    def model_dump_json(self, *, indent=None, **settings):
        between = (",", ":") if indent is None else None
        return json.dumps(self.model_dump(mode="json", **settings), indent=indent, separators=between, ensure_ascii=False)

    def dict(self, **settings):
        return self.model_dump(**settings)

    def json(self, **settings):
        return self.model_dump_json(**settings)

    def model_copy(self, *, update=None, deep=False):
        made = (copy.deepcopy if deep else copy.copy)(self)
        vars(made).update(update or {})
        return made

    @classmethod
    def model_validate(cls, value):
        return validated(cls.__name__, cls, value)

    @classmethod
    def model_validate_json(cls, text):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValidationError(cls.__name__, [((), f"Invalid JSON: {error}")]) from None
        return cls.model_validate(value)

    @classmethod
    def model_json_schema(cls):
        properties, required = {}, []
        for name, (hint, field) in _fields(cls).items():
            schema = field.in_schema(schema_of(hint))
            if field.is_required():
                required.append(name)
            elif field.default_factory is None:
                schema["default"] = _dumped(field.default, "json", {})
            properties[name] = schema
        described = {"description": cls.__doc__.strip()} if vars(cls).get("__doc__") else {}
        extra = {"additionalProperties": False} if cls.model_config.get("extra") == "forbid" else {}
        return {"type": "object", **described, "properties": properties, "required": required, **extra}

    def __eq__(self, other):
        return type(self) is type(other) and self._entries() == other._entries()

    def __iter__(self):
        return iter(self._entries().items())

    def __str__(self):
        return " ".join(f"{name}={value!r}" for name, value in self._entries().items())

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._entries().items())})"


def _dumped(value, mode, nested):
    if isinstance(value, BaseModel):
        return value.model_dump(mode=mode, **nested)
    if isinstance(value, dict):
        return {key: _dumped(item, mode, nested) for key, item in value.items()}
    if isinstance(value, _LISTS):
        items = [_dumped(item, mode, nested) for item in value]
        return items if mode == "json" else type(value)(items)
    if mode == "json" and isinstance(value, enum.Enum):
        return value.value
    if mode == "json" and isinstance(value, tuple(_DATES)):
        return value.isoformat()
    return value


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"of `pydantic` a sealed cell has BaseModel, ConfigDict, Field, ValidationError, and no `{name}`")
