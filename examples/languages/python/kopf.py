"""Runs handlers that are written for Kopf as a worker of the command "kopf serve".

    workers:
      python:
        command: [python3, kopf.py, handlers.py]

handlers.py is imported as it is: "import kopf" finds this file. Its decorators become the declarations
of the worker, and its functions get the arguments of Kopf. Functions run in threads, coroutines in one
event loop, so many calls run at the same time.

Filters that are functions (when=, and functions as labels=, annotations=, value=, old=, and new=) are called here,
right before the handler. If they do not hold, the handler is not called, and the operator is told that it has succeeded.

Handlers of kinds that Kopf does not have, such as ensure and drift, are declared in the file of "kopf serve", with worker: python and the
name of a function of handlers.py as the id, or as the function. The function returns the children, the resolution, or the
converted object.

A function, or a filter, gets an index if one of its parameters has the name of the index. The parameter **kwargs alone does not
get indices: the operator would have to send all of them with each call.

This file needs nothing but Python 3.10. Copy it next to your handlers. What it does not have is refused when
the handlers are imported, with the reason: daemons with filters that are functions, and login handlers. What a running
handler uses ends its attempts: the settings of a startup handler, which are in the file of "kopf serve";
patch.fns; and nested= of kopf.label() and kopf.adopt().
"""
import asyncio
import collections
import collections.abc
import concurrent.futures
import contextvars
import copy
import datetime
import difflib
import enum
import functools
import importlib.util
import inspect
import json
import logging
import os
import sys
import threading
import traceback
import types

VERSION = 1  # of the protocol
DEFAULT_DELAY = 60

_this = sys.modules[__name__]
_call = contextvars.ContextVar("call")
_handlers = []  # declarations, with their functions
_functions = {}  # by their names in calls
_modules = []  # of the handlers
_readers = collections.defaultdict(list)  # by the names of functions: the functions and their filters, whose parameters name indices
_conditions = collections.defaultdict(list)  # by the names of functions: what each is declared for, and its filters that are functions
_open = {}  # calls by their ids
_refused = None  # what is not supported, while handlers are imported: all of it is reported at once


class PermanentError(Exception):
    """Ends the attempts of a handler."""


class TemporaryError(Exception):
    """Asks for another attempt after the delay, in seconds."""

    def __init__(self, *args, delay=DEFAULT_DELAY):
        super().__init__(*args)
        self.delay = delay


class AdmissionError(PermanentError):
    """Rejects the request of a user."""

    def __init__(self, message="", code=500):
        super().__init__(message)
        self.code = code


HandlerRetryError = TemporaryError
HandlerFatalError = PermanentError


class ErrorsMode(enum.Enum):
    IGNORED = "ignored"
    TEMPORARY = "temporary"
    PERMANENT = "permanent"


class Reason(str, enum.Enum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    NOOP = "noop"
    FREE = "free"
    GONE = "gone"

    __str__ = str.__str__


class DiffOperation(str, enum.Enum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"

    __str__ = str.__str__
    __repr__ = str.__repr__


class DaemonStoppingReason(enum.Flag):
    """Why a daemon must end: one or several of these."""

    DONE = enum.auto()  # never here: a daemon that has ended does not ask
    FILTERS_MISMATCH = enum.auto()
    RESOURCE_DELETED = enum.auto()
    OPERATOR_PAUSING = enum.auto()
    OPERATOR_EXITING = enum.auto()
    DAEMON_SIGNALLED = enum.auto()
    DAEMON_CANCELLED = enum.auto()
    DAEMON_ABANDONED = enum.auto()


# The reasons by their names in messages. What Kopf does not have is named by what it means for the daemon.
_REASONS = {
    "deleted": DaemonStoppingReason.RESOURCE_DELETED, "mismatch": DaemonStoppingReason.FILTERS_MISMATCH,
    "paused": DaemonStoppingReason.OPERATOR_PAUSING, "exiting": DaemonStoppingReason.OPERATOR_EXITING,
    "signaled": DaemonStoppingReason.DAEMON_SIGNALLED, "canceled": DaemonStoppingReason.DAEMON_CANCELLED,
    "abandoned": DaemonStoppingReason.DAEMON_ABANDONED, "leadershipLost": DaemonStoppingReason.OPERATOR_EXITING,
    "moved": DaemonStoppingReason.OPERATOR_PAUSING,
}


class _Token(enum.Enum):
    PRESENT = "present"
    ABSENT = "absent"


PRESENT = _Token.PRESENT
ABSENT = _Token.ABSENT
EVERYTHING = "*"


class Unsupported(AttributeError):
    """The handlers need something that only Kopf in Python has. No other attempt would have it."""


# Names of types in annotations, which say nothing here.
_TYPES = set("""
    Annotations AsyncDaemonStopperChecker BodyEssence ConnectionInfo DaemonStopped Diff FieldPath FieldSpec HandlerId Headers
    Labels LocalObjectLogger Logger ObjectLogger ObjectReference Operation OperatorSettings OwnerReference PatchFn RawBody RawEvent
    RawEventType Resource Spec SSLPeer Status SyncDaemonStopperChecker UserInfo
""".split())


class _OnlyAType(type):
    """The type of names that say nothing here. Annotations can have them, also with parameters and in unions."""

    def __getitem__(cls, _parameters):
        return cls

    def __getattr__(cls, name):
        raise Unsupported(f"kopf.{cls.__name__} is only a type here: it has no {name}")

    def __call__(cls, *_args, **_kwargs):
        raise Unsupported(f"kopf.{cls.__name__} is only a type here: it cannot be called")

    def __instancecheck__(cls, _instance):
        raise Unsupported(f"kopf.{cls.__name__} is only a type here: nothing is an instance of it")


for _type in _TYPES:
    globals()[_type] = _OnlyAType(_type, (), {"__module__": "kopf"})


def __getattr__(name):
    raise Unsupported(f"kopf.{name} is not supported: see the beginning of kopf.py")


# --- Declarations -----------------------------------------------------------------------------------


def _duration(value):
    return value.total_seconds() if isinstance(value, datetime.timedelta) else value


def _filter(value):
    return {value.value: True} if isinstance(value, _Token) else {"equal": value}


def _resource(args, fields):
    """Returns a resource as the file has it."""
    names = {"plural": "plural", "singular": "singular", "shortcut": "shortName", "kind": "kind", "category": "category", "group": "group", "version": "version"}
    given = {names[key]: fields.pop(key) for key in list(fields) if key in names and fields[key] is not None}
    parts = [str(part) for part in args]
    if not given:
        return parts
    if not parts and given == {"group": given.get("group")}:
        return [given["group"], EVERYTHING]
    if len(parts) == 1:
        group, _, version = parts[0].partition("/")
        given.update({"group": group} | ({"version": version} if version else {}))
    return given


# The options of Kopf, and their words. Durations and filters are translated.
_OPTIONS = {
    "id": "id", "param": "param", "errors": "errors", "timeout": "timeout", "retries": "retries", "backoff": "backoff",
    "labels": "labels", "annotations": "annotations", "field": "field", "value": "value", "old": "old", "new": "new",
    "deleted": "deleted", "optional": "optional", "interval": "interval", "initial_delay": "initialDelay", "idle": "idle", "sharp": "sharp",
    "cancellation_backoff": "cancellationBackoff", "cancellation_timeout": "cancellationTimeout", "cancellation_polling": "cancellationPolling",
    "operations": "operations", "operation": "operations", "subresource": "subresource",
    "persistent": "persistent", "side_effects": "sideEffects", "ignore_failures": "ignoreFailures",
}


def _options(given):
    """Returns the options of a declaration in the words of the file, the filters that are functions of the arguments, and the
    functions of the user in these."""
    found, conditions, functions = {}, [], []
    for key, value in given.items():
        if value is None or key == "registry":
            continue
        if key == "when":
            conditions.append(lambda kwargs, when=value: when(**kwargs))
            functions.append(value)
            continue
        if key not in _OPTIONS:
            near = difflib.get_close_matches(key, _OPTIONS, 1)
            raise Unsupported(f"the option {key} is not supported{f': did you mean {near[0]}?' if near else ''}")
        if key in ("labels", "annotations"):
            if not isinstance(value, dict):
                raise TypeError(f"{key} must be a mapping of names and their filters, not {value!r}")
            conditions += [_on_metadata(key, name, each) for name, each in value.items() if callable(each)]
            functions += filter(callable, value.values())
            value = {name: _filter(each) for name, each in value.items() if not callable(each)}
            if not value:
                continue
        elif key in ("value", "old", "new"):
            if callable(value):
                conditions.append(_on_value(key, given.get("field"), value))
                functions.append(value)
                continue
            value = _filter(value)
        elif key == "field":
            value = value if isinstance(value, str) else "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in value)
        elif key == "errors":
            value = value.value
        elif key == "operation":
            value = [value]
        elif callable(value):
            raise Unsupported(f"{key} is a function: use a value")
        else:
            value = _duration(value)
        if value is not False:
            found[_OPTIONS[key]] = value
    return found, conditions, functions


def _on_metadata(part, name, holds):
    """Returns a filter of a label or an annotation as a function of the arguments."""
    return lambda kwargs: holds(kwargs[part].get(name), **kwargs)


def _on_value(which, field, holds):
    """Returns a filter of the value of a field as a function of the arguments: for changes, before or after them."""
    if field is None:
        raise TypeError(f"{which} needs field")
    path = field.split(".") if isinstance(field, str) else field

    def values(kwargs):
        if kwargs["reason"] is None or "operation" in kwargs:
            return [functools.reduce(lambda part, name: part.get(name) if isinstance(part, dict) else None, path, kwargs["body"])]
        return {"value": [kwargs["new"], kwargs["old"]], "old": [kwargs["old"]], "new": [kwargs["new"]]}[which]

    return lambda kwargs: any(holds(value, **kwargs) for value in values(kwargs))


def _combined(fns, combine):
    """Returns a filter of others, which are remembered for their parameters."""
    fns = list(fns)

    def holds(*args, **kwargs):
        return combine(fn(*args, **kwargs) for fn in fns)

    holds.parts = fns
    return holds


def not_(fn):
    return _combined([fn], lambda results: not all(results))


def any_(fns):
    return _combined(fns, any)


def all_(fns):
    return _combined(fns, all)


def none_(fns):
    return not_(any_(fns))


def _declarator(word, activity=False):
    """Returns the decorator of a kind of handlers."""

    def decorate(*args, **kwargs):
        place = _place()
        if activity and len(args) == 1 and callable(args[0]):  # @kopf.on.startup without parentheses
            return decorate()(args[0])

        def declare(fn):
            fields = dict(kwargs)
            declaration = {word: True if activity else _resource(args, fields), "place": place}
            try:
                options, conditions, filters = _options(fields)
                if conditions and word == "daemon":
                    raise Unsupported("filters of daemons cannot be functions: test it in the daemon")
            except Unsupported as exc:
                _refuse(exc, place)
                return fn
            declaration.update(options)
            if word == "daemon":
                declaration["wakeOn"] = ["spec", "status", "metadata", "data"]  # changes of these come to its arguments
            declaration.setdefault("id", _id(fn))
            if "operations" in declaration:
                declaration["operations"] = [each.upper() for each in declaration["operations"]]
            declaration["function"] = _name(fn)
            _handlers.append(declaration)
            _readers[declaration["function"]] += [fn, *filters]
            _conditions[declaration["function"]].append((word, declaration.get("field"), conditions))
            return fn

        return declare

    return decorate


def _indices(fns):
    """Returns the names of the indices among the parameters of functions."""
    known = {declaration["id"] for declaration in _handlers if "index" in declaration}
    return sorted(known & set().union(*map(_parameters, fns)))


def _parameters(fn):
    """Returns the names of the parameters of a function, or of all functions that a filter combines."""
    if hasattr(fn, "parts"):
        return set().union(*map(_parameters, fn.parts))
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # some functions in C do not say it
        return set()
    return {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}


def _refuse(exc, place):
    """Raises an exception, or keeps it until all handlers are imported."""
    if _refused is None:
        raise exc
    _refused.append(f"{place}: {exc}")


def _place():
    """Returns the file and the line of the handlers that have called this file."""
    frame = sys._getframe()
    here = frame.f_code.co_filename
    while frame.f_back and frame.f_code.co_filename == here:
        frame = frame.f_back
    return f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def _shown(path):
    """Returns a path as people know it: relative to the folder of the worker, if it is there."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _id(fn):
    """Returns the id of the handler of a function."""
    fn = _whole(fn)
    return getattr(fn, "__name__", repr(fn))


def _whole(fn):
    """Returns the function that a partial one calls."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def _name(fn):
    """Returns the name of a function in calls: another one for each function."""
    wanted = f"{_whole(fn).__module__}.{_whole(fn).__qualname__}"
    name, number = wanted, 1
    while _functions.setdefault(name, fn) is not fn:
        number += 1
        name = f"{wanted}#{number}"
    return name


on = types.SimpleNamespace(
    create=_declarator("create"), update=_declarator("update"), delete=_declarator("delete"), resume=_declarator("resume"),
    field=_declarator("change"), event=_declarator("event"), validate=_declarator("validate"), mutate=_declarator("mutate"),
    startup=_declarator("startup", True), cleanup=_declarator("cleanup", True), probe=_declarator("probe", True),
)
timer = on.timer = _declarator("timer")
daemon = on.daemon = _declarator("daemon")
index = on.index = _declarator("index")


def _unsupported(what, instead):
    def refuse(*_args, **_kwargs):
        _refuse(Unsupported(f"{what} is not supported: {instead}"), _place())
        return lambda fn: fn

    return refuse


on.login = _unsupported("kopf.on.login", "kopf serve connects like kubectl")


async def execute(*, fns=None, handlers=None, registry=None, lifecycle=None, cause=None):
    """Calls the sub-handlers of the running handler, and returns when all of them have ended."""
    if handlers is not None or registry is not None or cause is not None:
        raise Unsupported("kopf.execute() has only fns here: declare other sub-handlers with kopf.subhandler, or kopf.register")
    for id, fn in fns.items() if isinstance(fns, collections.abc.Mapping) else ((None, fn) for fn in fns or ()):
        register(fn, id=id)
    await _running().execute()


def register(fn, *, id=None, **options):
    """Registers a function as a sub-handler of the running handler."""
    call = _running()
    declaration, conditions, filters = _options(options)
    declaration["place"] = _place()
    indices = _indices([fn, *filters])
    if indices:
        declaration["indices"] = indices
    declaration["id"] = id or _id(fn)
    declaration["function"] = declaration["id"]
    call.subhandlers.append(declaration)
    call.functions[declaration["id"]] = fn
    call.conditions[declaration["id"]] = conditions
    return fn


def subhandler(*, id=None, **options):
    """Declares a sub-handler of the running handler."""
    return lambda fn: register(fn, id=id, **options)


on.this = on.subhandler = subhandler
on.register = register


# --- Arguments ---------------------------------------------------------------------------------------


class _Part(dict):
    """A mapping of a patch. Mappings that were made on the way to a field, but not used, are left out."""

    def _part(self, key, kind=None):
        part = self.get(key)
        if not isinstance(part, _Part):
            part = self[key] = (kind or _Part)(part or {})
        return part

    def setdefault(self, key, default=None):
        if isinstance(default, dict) and not default:
            return self._part(key)
        return super().setdefault(key, default)


class _MetaPart(_Part):
    labels = property(lambda self: self._part("labels"))
    annotations = property(lambda self: self._part("annotations"))


class Patch(_Part):
    """What a handler wants changed."""

    @property
    def fns(self):
        raise Unsupported("patch.fns is not supported: change the fields of the patch")

    metadata = meta = property(lambda self: self._part("metadata", _MetaPart))
    spec = property(lambda self: self._part("spec"))
    status = property(lambda self: self._part("status"))


def _plain(value):
    """Returns a patch without the mappings that were made but not used."""
    if not isinstance(value, _Part):
        return value
    plain = {key: _plain(each) for key, each in value.items()}
    return {key: each for key, each in plain.items() if not (isinstance(value[key], _Part) and each == {})}


class Memo(dict):
    """Values in memory, as items or attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


_memos = {None: Memo()}  # by the uids of the objects; that of the operator has none


def _memo(uid, kept=True):
    """Returns the memo of an object: at first, a copy of that of the operator. It is kept until the object is gone."""
    memo = _memos.get(uid)
    if memo is None:
        memo = Memo(_memos[None])
        if kept:
            _memos[uid] = memo
    return memo


DiffItem = collections.namedtuple("DiffItem", "operation field old new")
DiffItem.op = property(lambda self: self.operation)


class Meta(dict):
    """The metadata of an object, with its parts."""

    labels = property(lambda self: self.get("labels") or {})
    annotations = property(lambda self: self.get("annotations") or {})
    name = property(lambda self: self.get("name"))
    namespace = property(lambda self: self.get("namespace"))
    uid = property(lambda self: self.get("uid"))
    creation_timestamp = property(lambda self: self.get("creationTimestamp"))
    deletion_timestamp = property(lambda self: self.get("deletionTimestamp"))


class Body(dict):
    """An object, with its parts."""

    spec = property(lambda self: self.get("spec") or {})
    status = property(lambda self: self.get("status") or {})
    metadata = meta = property(lambda self: Meta(self.get("metadata") or {}))


class _View(collections.abc.Mapping):
    """A part of the object of a daemon, as it is now. It can be read while another thread gets a change."""

    def __init__(self, call, *path):
        self._call = call
        self._path = path

    def _now(self):
        return functools.reduce(lambda part, name: part.get(name) or {}, self._path, self._call.object)

    def __getitem__(self, key):
        return self._now()[key]

    def __iter__(self):
        return iter(self._now())

    def __len__(self):
        return len(self._now())

    def __repr__(self):
        return repr(self._now())

    def __deepcopy__(self, copied):
        return copy.deepcopy(self._now(), copied)

    def keys(self):
        return self._now().keys()

    def values(self):
        return self._now().values()

    def items(self):
        return self._now().items()


def _as_mapping(value):
    """Returns a part of an object as JSON can have it."""
    if isinstance(value, _View):
        return value._now()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class _MetaView(_View):
    labels = property(lambda self: _View(self._call, "metadata", "labels"))
    annotations = property(lambda self: _View(self._call, "metadata", "annotations"))
    name, namespace, uid = Meta.name, Meta.namespace, Meta.uid
    creation_timestamp, deletion_timestamp = Meta.creation_timestamp, Meta.deletion_timestamp


class _BodyView(_View):
    spec = property(lambda self: _View(self._call, "spec"))
    status = property(lambda self: _View(self._call, "status"))
    metadata = meta = property(lambda self: _MetaView(self._call, "metadata"))


class Stopped:
    """Tells a daemon that it must end. wait() can be called in threads, and awaited in coroutines."""

    def __init__(self, loop):
        self._loop = loop
        self._thread = threading.Event()
        self._async = asyncio.Event()
        self.reason = None

    def _set(self, *names):
        """Adds reasons to those that are known."""
        for name in names:
            reason = _REASONS.get(name)
            if reason is not None:
                self.reason = reason if self.reason is None else self.reason | reason
        self._thread.set()
        self._async.set()

    def is_set(self):
        return self._thread.is_set()

    __bool__ = is_set

    def wait(self, timeout=None):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._thread.wait(timeout)
        return self._wait(timeout)

    async def _wait(self, timeout):
        try:
            await asyncio.wait_for(self._async.wait(), timeout)
        except asyncio.TimeoutError:
            pass
        return self.is_set()


# Its lines also go to the handlers that a program adds to the root. It is not known to the tree of loggers, so that a
# configuration of that does not silence it. The operator decides what is logged, and what becomes an event.
_objects = logging.Logger("kopf.objects", logging.DEBUG)
_objects.parent = logging.getLogger()


class _ObjectLogger(logging.LoggerAdapter):
    """Writes to the log of an object."""

    def __init__(self, call_id):
        super().__init__(_objects, {})
        self.call_id = call_id

    def process(self, msg, kwargs):
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "kopf_call": self.call_id}
        return msg, kwargs


class _Handler(logging.Handler):
    """Sends the log to kopf serve."""

    def emit(self, record):
        level = "error" if record.levelno >= logging.ERROR else "warning" if record.levelno >= logging.WARNING else "info" if record.levelno >= logging.INFO else "debug"
        message = {"type": "log", "level": level, "message": self.format(record)}
        if getattr(record, "kopf_call", None):
            message["id"] = record.kopf_call
        if getattr(record, "kopf_log_only", False):
            message["logOnly"] = True
        _send(message)


_objects.addHandler(_Handler())


def _is_about_no_call(record):
    """Reports whether nothing has sent a line yet."""
    return not hasattr(record, "kopf_call")


class _Unfinished(BaseException):
    """Ends a call because some sub-handlers have not ended. Handlers that catch all exceptions must not catch it."""


class _Call:
    """One call, from its message to its answer."""

    def __init__(self, message, loop):
        self.message = message
        self.id = message["id"]
        self.patch = Patch()
        self.warnings = []
        self.subhandlers = []
        self.functions = {}
        self.conditions = {}
        self.executed = None
        self.object = message.get("object") or {}
        self.body = _BodyView(self) if message.get("kind") == "daemon" else Body(self.object)
        self.stopped = Stopped(loop)
        self.logger = _ObjectLogger(self.id)
        self.task = None
        self.parent = _open.get(message.get("parent"))
        # An object that is reviewed or converted may never be stored.
        kept = "admission" not in message and message.get("kind") != "convert"
        self.memo = self.parent.memo if self.parent else _memo(message.get("uid"), kept)

    def function(self):
        name = self.message["function"]
        if self.parent:
            return self.parent.functions[name]
        for module in [] if name in _functions else _modules:  # the handler is declared in the file of kopf serve
            if callable(getattr(module, name, None)):
                return getattr(module, name)
        if name not in _functions:
            raise PermanentError(f"the file of kopf serve declares a handler with the function {name}, and the handlers in Python have no such function")
        return _functions[name]

    def is_meant(self, kwargs):
        """Reports whether the filters hold that are functions: all those of one of the declarations that the call is for."""
        m = self.message
        if self.parent:
            declared = [self.parent.conditions[m["function"]]]
        else:
            words = (m["reason"], "change") if m["kind"] == "change" else (m["kind"],)
            declared = [conditions for word, field, conditions in _conditions.get(m["function"], ()) if word in words and field == m.get("field")]
        return not declared or any(all(holds(kwargs) for holds in conditions) for conditions in declared)

    async def execute(self):
        """Lets the operator call the sub-handlers that are registered since the last time, and waits for their ends."""
        if not self.subhandlers:
            return
        declared, self.subhandlers = self.subhandlers, []
        self.executed = concurrent.futures.Future()
        _send({"type": "execute", "id": self.id, "subhandlers": declared})
        if await asyncio.wrap_future(self.executed):
            raise _Unfinished

    def kwargs(self):
        m = self.message
        meta = self.body.metadata
        started = m.get("started")
        resource = m.get("resource") or {}
        return {
            "body": self.body, "spec": self.body.spec, "meta": meta, "status": self.body.status,
            "name": m.get("name"), "namespace": m.get("namespace"), "uid": m.get("uid"),
            "labels": meta.labels, "annotations": meta.annotations,
            "resource": types.SimpleNamespace(**resource), "logger": self.logger, "patch": self.patch, "param": m.get("param"),
            "memo": self.memo, "reason": _reason(m.get("reason")), "retry": m["retry"], "runtime": datetime.timedelta(seconds=m["runtime"]),
            "started": datetime.datetime.fromisoformat(_iso(started)) if started else None,
            "old": m.get("old"), "new": m.get("new"), "diff": tuple(DiffItem(DiffOperation(op), tuple(path), old, new) for op, path, old, new in m.get("diff") or ()),
            "type": m.get("event") or None, "event": {"type": m.get("event") or None, "object": self.body}, "stopped": self.stopped,
            "settings": _NoSettings(), **_admission(m.get("admission"), self.warnings), **_family(m),
            **{name: Index(entries) for name, entries in (m.get("indices") or {}).items()},
        }


def _running():
    """Returns the call of the handler that has called a function of kopf."""
    call = _call.get(None)
    if call is None:
        raise LookupError(
            "this function of kopf is about the object of the running handler, and no handler runs here: call it in a handler, "
            "or in a thread with the context of one, by contextvars.copy_context().run"
        )
    return call


def _reason(text):
    return Reason(text) if text in Reason._value2member_map_ else text


def _iso(text):
    """Returns a time that datetime can parse: with at most six digits of the second."""
    text = text.replace("Z", "+00:00")
    whole, dot, rest = text.partition(".")
    if not dot:
        return text
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return f"{whole}.{digits[:6].ljust(6, '0')}{rest[len(digits):]}"


def _admission(review, warnings):
    if review is None:
        return {}
    return {
        "operation": review["operation"], "dryrun": review["dryRun"], "subresource": review.get("subresource"),
        "userinfo": review["userInfo"], "warnings": warnings, "headers": {}, "sslpeer": {},
    }


def _family(message):
    """Returns the arguments of the kinds of handlers that Kopf does not have."""
    if message.get("kind") == "convert":
        return {"from_version": message["from"], "to_version": message["to"]}
    if message.get("kind") not in ("child", "drift", "daemon"):
        return {}
    children = {"child": message.get("child"), "children": message.get("children") or []}
    return {**children, "initial": message.get("initial", False), "moved": message.get("moved", False), "drift": message.get("drift")}


# What becomes of the result of a function, by the kind of the call.
_ANSWERS = {"ensure": "children", "drift": "resolution", "convert": "object"}


class _NoSettings:
    """Says where settings are."""

    def __getattr__(self, name):
        raise Unsupported(f"settings.{name} is not here: the settings are in the file of kopf serve")

    def __setattr__(self, name, value):
        self.__getattr__(name)


# --- Indices -----------------------------------------------------------------------------------------


class Store(collections.abc.Collection):
    """The values of all objects under one key of an index. They are in no order."""

    def __init__(self, values):
        self._values = values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __contains__(self, value):
        return value in self._values

    def __repr__(self):
        return repr(self._values)

    __class_getitem__ = classmethod(types.GenericAlias)


class Index(collections.abc.Mapping):
    """An index, as it was when the call began: the keys with their values."""

    def __init__(self, entries):
        self._entries = entries

    @functools.cached_property
    def _stores(self):
        return {_hashable(entry["key"]): Store([_unpacked(value) for value in entry["values"]]) for entry in self._entries}

    def __getitem__(self, key):
        return self._stores[key]

    def __iter__(self):
        return iter(self._stores)

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._stores

    def __repr__(self):
        return repr(self._stores)

    __class_getitem__ = classmethod(types.GenericAlias)


def _hashable(key):
    """Returns a key of JSON as Python can have it: lists are tuples."""
    return tuple(map(_hashable, key)) if isinstance(key, list) else key


def _key(key):
    """Returns a key as JSON has it: tuples are lists."""
    if isinstance(key, tuple):
        return [_key(part) for part in key]
    if key is None or isinstance(key, (str, int, float)):
        return key
    raise TypeError(f"a key of an index must be a text, a number, None, or a tuple of these, not {key!r}")


# What JSON does not have, but indices do: each is a mapping with one of these names.
_PACKED = {"$tuple": tuple, "$set": set, "$frozenset": frozenset, "$body": Body, "$dict": dict}


def _packed(value):
    """Returns a value of an index as JSON has it."""
    for name, kind in _PACKED.items():
        if type(value) is kind and name != "$dict":
            return {name: _packed(dict(value)) if kind is Body else [_packed(each) for each in value]}
    if isinstance(value, dict):
        plain = {each: _packed(part) for each, part in value.items()}
        return {"$dict": plain} if len(plain) == 1 and next(iter(plain)) in _PACKED else plain
    return [_packed(each) for each in value] if isinstance(value, list) else value


def _unpacked(value):
    """Returns a value of an index as the function has returned it."""
    if isinstance(value, list):
        return [_unpacked(each) for each in value]
    if not isinstance(value, dict):
        return value
    name, packed = next(iter(value.items()), (None, None))
    if len(value) > 1 or name not in _PACKED:
        return {each: _unpacked(part) for each, part in value.items()}
    if name == "$dict":
        return {each: _unpacked(part) for each, part in packed.items()}
    return _PACKED[name](_unpacked(packed))


def _entries(result):
    """Returns the keys and values of an object in an index. All that is no mapping has the key None."""
    keys = result if type(result) is dict else {None: result}
    entries = [{"key": _key(key), "value": _packed(value)} for key, value in keys.items()]
    json.dumps(entries, default=_as_mapping, allow_nan=False)
    return entries


# --- Events ------------------------------------------------------------------------------------------


def event(objs, *, type, reason, message=""):
    """Posts an event about the handled object. Events about other objects are not supported."""
    call = _running()
    for obj in _walk(objs):
        if obj.get("metadata", {}).get("uid") != call.body.metadata.get("uid"):
            raise PermanentError("only events about the handled object can be posted")
        _send({"type": "event", "id": call.id, "event": {"type": type, "reason": reason, "message": message}})


def info(objs, *, reason, message=""):
    event(objs, type="Normal", reason=reason, message=message)


def warn(objs, *, reason, message=""):
    event(objs, type="Warning", reason=reason, message=message)


def exception(objs, *, reason="", message="", exc=None):
    exc = exc or sys.exc_info()[1]
    event(objs, type="Error", reason=reason or exc.__class__.__name__, message=f"{message} {exc}".strip())


# --- Children ----------------------------------------------------------------------------------------


def _walk(objs):
    return [objs] if isinstance(objs, collections.abc.Mapping) else [each for some in objs for each in _walk(some)]


def build_owner_reference(body=None, *, controller=True, block_owner_deletion=True):
    body = body or _running().body
    return {
        "controller": controller, "blockOwnerDeletion": block_owner_deletion, "apiVersion": body["apiVersion"], "kind": body["kind"],
        "name": body["metadata"]["name"], "uid": body["metadata"]["uid"],
    }


def _not_nested(nested):
    if nested:
        raise Unsupported("nested= is not supported: label the nested metadata itself")


def append_owner_reference(objs, owner=None, **options):
    reference = build_owner_reference(owner, **options)
    for obj in _walk(objs):
        references = obj.setdefault("metadata", {}).setdefault("ownerReferences", [])
        if not any(each["uid"] == reference["uid"] for each in references):
            references.append(reference)


def label(objs, labels=None, *, forced=False, nested=None):
    _not_nested(nested)
    for obj in _walk(objs):
        own = obj.setdefault("metadata", {}).setdefault("labels", {})
        for key, value in (labels if labels is not None else _running().body.metadata.get("labels") or {}).items():
            if forced or key not in own:
                own[key] = value


def harmonize_naming(objs, name=None, *, forced=False, strict=False):
    for obj in _walk(objs):
        meta = obj.setdefault("metadata", {})
        if forced or not (meta.get("name") or meta.get("generateName")):
            wanted = name or _running().body.metadata["name"]
            meta.pop("name", None)
            meta["name" if strict else "generateName"] = wanted if strict else f"{wanted}-"


def adjust_namespace(objs, namespace=None, *, forced=False):
    for obj in _walk(objs):
        meta = obj.setdefault("metadata", {})
        if forced or not meta.get("namespace"):
            meta["namespace"] = namespace or _running().body.metadata.get("namespace")


def adopt(objs, owner=None, *, forced=False, strict=False, nested=None):
    _not_nested(nested)
    owner = owner or _running().body
    append_owner_reference(objs, owner)
    harmonize_naming(objs, owner["metadata"]["name"], forced=forced, strict=strict)
    adjust_namespace(objs, owner["metadata"].get("namespace"), forced=forced)
    label(objs, owner["metadata"].get("labels") or {}, forced=forced)


# --- The conversation --------------------------------------------------------------------------------

_writing = threading.Lock()
_output = None


def _greet(output):
    """Sends the first message."""
    global _output
    for declaration in _handlers:
        indices = _indices(_readers[declaration["function"]])
        if indices:
            declaration["indices"] = indices
    output.write(json.dumps({"type": "hello", "version": VERSION, "handlers": _handlers, "memos": True}, default=str) + "\n")
    output.flush()
    _output = output


def _send(message):
    if _output is None:  # handlers are imported: only lines of the log come before the hello
        print(message["message"], file=sys.stderr)
        return
    line = json.dumps(message, default=lambda value: _as_mapping(value) if isinstance(value, _View) else str(value)) + "\n"
    with _writing:
        _output.write(line)
        _output.flush()


def _error(exc):
    message = str(exc) or repr(exc)
    if isinstance(exc, AdmissionError):
        return {"message": message, "code": exc.code, "permanent": True}
    if isinstance(exc, (PermanentError, Unsupported)):
        return {"message": message, "permanent": True}
    if isinstance(exc, TemporaryError):
        return {"message": message, "delay": _duration(exc.delay) or 0}
    return {"message": f"{type(exc).__name__}: {message}" if str(exc) else message}


async def _respond(call, pool):
    _call.set(call)
    answer = {}
    try:
        fn, kwargs = call.function(), call.kwargs()
        is_index = call.message["kind"] == "index"
        if not call.is_meant(kwargs):
            result = {} if is_index else None  # an object that does not match is not in the index
        elif inspect.iscoroutinefunction(fn):
            result = await fn(**kwargs)
        else:
            result = await _run_in_thread(pool, fn, kwargs)
        if result is not None and is_index:
            answer["index"] = _entries(result)
        elif result is not None:
            json.dumps(result, default=_as_mapping)
            answer[_ANSWERS.get(call.message["kind"], "result")] = result
        if call.subhandlers:
            answer["subhandlers"] = call.subhandlers
    except _Unfinished:
        answer["error"] = {"message": "some sub-handlers have not ended", "delay": 0}
    except asyncio.CancelledError:
        answer["error"] = {"message": "the call was canceled", "delay": 1}
    except (PermanentError, TemporaryError, Unsupported) as exc:
        answer["error"] = _error(exc)
    except Exception as exc:
        # The operator posts an event about the failure itself.
        call.logger.error("%s", "".join(traceback.format_exception(exc)).rstrip(), extra={"kopf_log_only": True})
        answer["error"] = _error(exc)
    patch = _plain(call.patch)
    if patch and call.message["kind"] != "index":  # as in Kopf, it is not written
        answer["patch"] = patch
    if call.warnings:
        answer["warnings"] = call.warnings
    if "subhandlers" not in answer:
        _open.pop(call.id, None)
    _send({"type": "answer", "id": call.id, "answer": answer})


async def _run_in_thread(pool, fn, kwargs):
    """Calls a function in a thread. A thread cannot be interrupted, so a cancellation waits for its end: an answer before it
    would let the next attempt begin meanwhile."""
    work = pool.submit(contextvars.copy_context().run, fn, **kwargs)
    ended = asyncio.wrap_future(work)
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            if work.cancel():  # it has not begun
                raise
    return ended.result()


async def _converse(lines):
    loop = asyncio.get_running_loop()
    threads = concurrent.futures.ThreadPoolExecutor(max_workers=int(os.environ.get("KOPF_THREADS", "200")))
    unlimited = concurrent.futures.ThreadPoolExecutor(max_workers=sys.maxsize)  # daemons keep others waiting; all others wait for indices
    tasks = set()
    while True:
        line = await lines.get()
        if line is None:
            break
        message = json.loads(line)
        kind = message["type"]
        call = _open.get(message.get("id"))
        if kind == "gone":
            _memos.pop(message["uid"], None)
        elif kind == "call":
            call = _open[message["id"]] = _Call(message["call"], loop)
            call.task = loop.create_task(_respond(call, unlimited if message["call"]["kind"] in ("daemon", "index") else threads))
            tasks.add(call.task)
            call.task.add_done_callback(tasks.discard)
            await asyncio.sleep(0)  # a task that is canceled before it begins would give no answer
        elif call is None:
            continue
        elif kind == "stop":
            call.stopped._set(*message.get("reason", "").split("|"))
        elif kind == "cancel":
            call.stopped._set("canceled")
            if call.task:
                call.task.cancel()
        elif kind == "executed":
            if not call.executed.cancelled():
                call.executed.set_result(message.get("error"))
        elif kind == "changed":
            call.object = message.get("object") or call.object
        elif kind == "forget":
            _open.pop(message["id"], None)
    for task in list(tasks):
        task.cancel()
    os._exit(0)  # threads that ignore their stop cannot be ended otherwise


def _read(source, loop, lines):
    for line in source:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    loop.call_soon_threadsafe(lines.put_nowait, None)


async def _run(source):
    lines = asyncio.Queue()
    threading.Thread(target=_read, args=(source, asyncio.get_running_loop(), lines), daemon=True).start()
    await _converse(lines)


def _take_pipes():
    """Returns the pipes of the conversation, and puts others in their place: what handlers and their child processes print
    goes to standard error, and there is nothing that they could read."""
    pipes = open(os.dup(0), encoding="utf-8"), open(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return pipes


def main(paths):
    global _refused
    _refused = []
    source, output = _take_pipes()
    sys.modules["kopf"] = _this
    others = _Handler()
    others.addFilter(_is_about_no_call)
    logging.basicConfig(level=logging.INFO, handlers=[others], format="%(message)s")
    for path in paths:
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        _modules.append(module)
        try:
            spec.loader.exec_module(module)
        except Unsupported as exc:
            _refused.append(f"{_origin(exc)}: {exc}")
            break
        except Exception as exc:
            traceback.print_exc()
            _refused.append(f"{_origin(exc)}: {type(exc).__name__}: {exc}")
            break
    if _refused:
        sys.exit("; ".join(_refused))  # one line: the operator repeats the last one
    _refused = None
    _greet(output)
    asyncio.run(_run(source))


def _origin(exc):
    """Returns the file and the line of the handlers that an exception has come from."""
    if isinstance(exc, SyntaxError):
        return f"{_shown(exc.filename)}:{exc.lineno}"
    here = _origin.__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(exc.__traceback__) if frame.filename != here and not frame.filename.startswith("<")]
    return f"{_shown(frames[-1].filename)}:{frames[-1].lineno}" if frames else "the handlers"


if __name__ == "__main__":
    main(sys.argv[1:])
