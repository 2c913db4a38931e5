"""Frozen dataclasses that are quick to make: an agent waits for about seventy of them to be made.

The standard `@dataclass(frozen=True)` compiles five functions for each class, which takes a third
of a millisecond. This one shares four of them, and compiles `__init__` when the first instance is
made, which for most classes is after the first answer. To type checkers, and to whoever uses the
classes, they are the same. `slots` is for those of which thousands are kept.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    Class = TypeVar("Class", bound=type)

    def dataclass(*, frozen, kw_only=False, slots=False):
        """Make a frozen dataclass of the class below; `frozen` is always true."""
        assert frozen

        def make(cls):
            made = dataclasses.dataclass(
                init=False, repr=False, eq=False, kw_only=kw_only, slots=slots
            )(cls)
            made.__dataclass_params__.frozen = made.__dataclass_params__.eq = True
            made.__init__ = _init_on_demand(made)
            for name, function in _SHARED.items():
                if name not in cls.__dict__:
                    setattr(made, name, function)
            return made

        return make


def _init_on_demand(cls: Any) -> Any:
    def first(_self_: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _init_of(cls)
        cls.__init__(_self_, *args, **kwargs)

    return first


def _init_of(cls: type) -> Any:
    ordered = sorted(dataclasses.fields(cls), key=lambda one: one.kw_only is True)
    known: dict[str, object] = {}
    arguments = ["_self_"]  # a field may well be called `self`
    lines = [] if "__slots__" in cls.__dict__ else ["_values_ = _self_.__dict__"]
    for one in ordered:
        name, given = one.name, one.name
        if one.kw_only and "*" not in arguments:
            arguments.append("*")
        if one.default is not dataclasses.MISSING:
            known[f"_{name}"] = one.default
            given = f"{name}=_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            known[f"_{name}"] = one.default_factory
            given = f"{name}=None"
            lines.append(f"if {name} is None: {name} = _{name}()")
        arguments.append(given)
        if "__slots__" in cls.__dict__:
            known[f"_set_{name}"] = cls.__dict__[name].__set__
            lines.append(f"_set_{name}(_self_, {name})")
        else:
            lines.append(f"_values_[{name!r}] = {name}")
    if hasattr(cls, "__post_init__"):
        lines.append("_self_.__post_init__()")
    body = "\n ".join(lines)
    # Names of fields and our own words, nothing else: as the standard library does it.
    exec(f"def __init__({', '.join(arguments)}):\n {body}", known)  # noqa: S102 - as said
    return known["__init__"]


def _repr(self: Any) -> str:
    shown = (
        f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def values(of: Any) -> tuple[object, ...]:
    """Return what the fields of an instance hold, in their order."""
    return tuple([getattr(of, name) for name in of.__dataclass_fields__])


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(values(self))


def _restore(self: Any, held: tuple[object, ...]) -> None:
    for name, value in zip(self.__dataclass_fields__, held, strict=True):
        object.__setattr__(self, name, value)


def _refuse(self: Any, name: str, *value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} is not to be changed")


_SHARED = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__getstate__": values,
    "__setstate__": _restore,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
