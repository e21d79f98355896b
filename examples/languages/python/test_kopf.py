"""Tests the parts of the adapter that need no operator: what handlers get, and what is refused."""
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import typing
import unittest
from concurrent import futures

import kopf


def call(**more):
    message = {"id": "1", "retry": 0, "runtime": 0, "uid": "u", "object": {"metadata": {"name": "n", "labels": {"a": "b"}}}}
    return kopf._Call({**message, **more}, None)


class ArgumentsTest(unittest.TestCase):
    def test_differences_have_names(self):
        (item,) = call(diff=[["change", ["spec", "x"], 1, 2]]).kwargs()["diff"]
        self.assertEqual((item.op, item.field, item.old, item.new), ("change", ("spec", "x"), 1, 2))
        self.assertIs(item.op, kopf.DiffOperation.CHANGE)
        self.assertEqual((f"{item.op}", json.dumps(item.op)), ("change", '"change"'))
        operation, field, old, new = item
        self.assertEqual((operation, field, old, new), tuple(item))

    def test_reasons_are_texts(self):
        reason = call(reason="create").kwargs()["reason"]
        self.assertEqual(reason, kopf.Reason.CREATE)
        self.assertEqual(reason, "create")
        self.assertEqual(f"{reason}", "create")
        self.assertIsNone(call().kwargs()["reason"])

    def test_reviews_have_no_headers(self):
        kwargs = call(admission={"operation": "CREATE", "dryRun": False, "userInfo": {}}).kwargs()
        self.assertEqual((kwargs["headers"], kwargs["sslpeer"]), ({}, {}))
        self.assertNotIn("headers", call().kwargs())

    def test_reasons_to_stop_are_added(self):
        stopped = call().kwargs()["stopped"]
        self.assertIsNone(stopped.reason)
        stopped._set("deleted", "signaled")
        stopped._set("canceled", "a reason of a later version")
        self.assertTrue(stopped)
        for name, want in (("RESOURCE_DELETED", True), ("DAEMON_SIGNALLED", True), ("DAEMON_CANCELLED", True), ("OPERATOR_EXITING", False)):
            self.assertEqual(kopf.DaemonStoppingReason[name] in stopped.reason, want)

    def test_types_can_be_annotations(self):
        def fn(spec: kopf.Spec, index: kopf.Index[str, int], labels: kopf.Labels | None, diff: typing.Optional[kopf.Diff]): ...

        self.assertIs(typing.get_type_hints(fn)["spec"], kopf.Spec)
        for used in (lambda: kopf.Operation.CREATE, lambda: kopf.HandlerId("a"), lambda: isinstance({}, kopf.Spec)):
            with self.assertRaisesRegex(kopf.Unsupported, "is only a type here"):
                used()

    def test_metadata_has_parts(self):
        kwargs = call().kwargs()
        self.assertEqual(kwargs["meta"].labels, {"a": "b"})
        self.assertEqual(kwargs["body"].metadata.name, "n")
        self.assertEqual(kwargs["labels"], {"a": "b"})

    def test_daemons_see_changes(self):
        made = call(kind="daemon")
        kwargs = made.kwargs()
        made.object = {"metadata": {"name": "n", "labels": {"c": "d"}, "annotations": {"e": "f"}}, "spec": {"size": 2}, "status": {"phase": "ready"}}
        self.assertEqual((kwargs["spec"]["size"], kwargs["status"].get("phase"), kwargs["meta"].name), (2, "ready", "n"))
        self.assertEqual((dict(kwargs["labels"]), kwargs["meta"].labels, dict(kwargs["annotations"])), ({"c": "d"}, {"c": "d"}, {"e": "f"}))
        self.assertEqual((kwargs["body"].spec, kwargs["body"]["spec"]), ({"size": 2}, {"size": 2}))
        taken = kopf.copy.deepcopy(kwargs["spec"])
        made.object = {}
        self.assertEqual((taken, kwargs["spec"], len(kwargs["labels"])), ({"size": 2}, {}, 0))

    def test_results_are_json(self):
        sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        kopf._send = sent.append

        async def fn(**_):
            return {1, 2}

        kopf._functions["f"] = fn
        self.addCleanup(kopf._functions.pop, "f")
        kopf.asyncio.run(kopf._respond(call(function="f", kind="timer"), None))
        self.assertIn("type set is not JSON serializable", sent[-1]["answer"]["error"]["message"])

    def test_the_file_can_declare_functions(self):
        def web(spec, **_):
            return [{"kind": "ConfigMap", "data": {"size": str(spec["size"])}}]

        async def scaled(child, drift, **_):
            return {"accept": [field["path"] for field in drift["fields"]]} if child else "restore"

        async def heard(children, initial, patch, **_):
            patch.status["children"] = len(children)

        async def upgrade(body, from_version, to_version, **_):
            return {**body, "apiVersion": f"example.com/{to_version}", "was": from_version}

        handlers = kopf.types.SimpleNamespace(web=web, scaled=scaled, heard=heard, upgrade=upgrade, number=1)
        kopf._modules.append(handlers)
        self.addCleanup(kopf._modules.remove, handlers)
        self.addCleanup(setattr, kopf, "_output", kopf._output)
        for message, want in (
            ({"function": "web", "kind": "ensure", "object": {"metadata": {}, "spec": {"size": 2}}}, {"children": [{"kind": "ConfigMap", "data": {"size": "2"}}]}),
            ({"function": "scaled", "kind": "drift", "child": {}, "drift": {"fields": [{"path": "spec.replicas"}]}}, {"resolution": "restore"}),
            ({"function": "scaled", "kind": "drift", "child": {"kind": "Pod"}, "drift": {"fields": [{"path": "a"}]}}, {"resolution": {"accept": ["a"]}}),
            ({"function": "heard", "kind": "child", "children": [{}, {}]}, {"patch": {"status": {"children": 2}}}),
            (
                {"function": "upgrade", "kind": "convert", "from": "v1alpha1", "to": "v1", "object": {"kind": "Shop", "metadata": {}}, "uid": "converted"},
                {"object": {"kind": "Shop", "metadata": {}, "apiVersion": "example.com/v1", "was": "v1alpha1"}},
            ),
        ):
            kopf._output = io.StringIO()
            with futures.ThreadPoolExecutor() as pool:
                kopf.asyncio.run(kopf._respond(call(**message), pool))
            self.assertEqual(json.loads(kopf._output.getvalue())["answer"], want)
        self.assertNotIn("converted", kopf._memos)  # it may never be stored
        for missing in ("wbe", "number"):
            kopf._output = io.StringIO()
            kopf.asyncio.run(kopf._respond(call(function=missing, kind="ensure"), None))
            error = json.loads(kopf._output.getvalue())["answer"]["error"]
            self.assertRegex(error["message"], f"the function {missing}, and the handlers in Python have no such function")
            self.assertTrue(error["permanent"])

    def test_parts_of_daemons_can_be_returned(self):
        self.addCleanup(setattr, kopf, "_output", kopf._output)
        kopf._output = io.StringIO()

        async def fn(labels, patch, body, **_):
            kopf.info(body, reason="Seen")
            patch.status["seen"] = labels
            return {"labels": labels}

        kopf._functions["f"] = fn
        self.addCleanup(kopf._functions.pop, "f")
        kopf.asyncio.run(kopf._respond(call(function="f", kind="daemon"), None))
        answer = json.loads(kopf._output.getvalue().splitlines()[-1])["answer"]
        self.assertEqual(answer, {"result": {"labels": {"a": "b"}}, "patch": {"status": {"seen": {"a": "b"}}}})

    def test_memos_begin_with_that_of_the_operator(self):
        kopf._memo(None).pool = 5
        memo = call(uid="other").kwargs()["memo"]
        self.assertEqual(memo.pool, 5)
        memo.pool = 6
        self.assertEqual(kopf._memo(None).pool, 5)

    def test_lines_have_their_levels(self):
        sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        kopf._send = sent.append
        for level in ("debug", "info", "warning", "error", "critical"):
            getattr(call().logger, level)("%s", level)
        levels = ["debug", "info", "warning", "error", "error"]
        self.assertEqual([(each["id"], each["level"]) for each in sent], [("1", level) for level in levels])

    def test_memos_are_kept_for_objects_that_are_stored(self):
        review = {"operation": "CREATE", "dryRun": False, "userInfo": {}}
        call(uid="reviewed", admission=review).memo.seen = True
        self.assertNotIn("reviewed", kopf._memos)
        call(uid="stored").memo.seen = True
        self.assertTrue(call(uid="stored").memo.seen)
        self.assertTrue(call(uid="stored", admission=review).memo.seen)

    def test_subhandlers_have_the_memo_of_their_parent(self):
        kopf._open["7"] = parent = call(id="7")
        self.addCleanup(kopf._open.pop, "7")
        kopf._memos.pop("u")
        self.assertIs(call(id="8", parent="7").memo, parent.memo)
        self.assertNotIn("u", kopf._memos)


class PlacesTest(unittest.TestCase):
    def setUp(self):
        self.before = len(kopf._handlers)
        self.addCleanup(lambda: kopf._handlers.__delitem__(slice(self.before, None)))

    def line(self, offset):
        return f"{kopf._shown(__file__)}:{sys._getframe(1).f_lineno + offset}"

    def test_handlers_are_where_their_decorators_are(self):
        expected = [self.line(2), self.line(7), self.line(11)]

        @kopf.on.update(
            "kopfexamples",
        )
        def first(**_): ...

        @kopf.on.startup
        def second(**_):
            """Its decorator has no parentheses."""

        third = kopf.on.create("kopfexamples")
        third(first)
        self.assertEqual([each["place"] for each in kopf._handlers[self.before :]], expected)


class RefusedTest(unittest.TestCase):
    def test_no_attempt_would_have_it(self):
        for refused in (
            lambda: kopf.asyncio.run(kopf.execute(handlers=[])),
            lambda: kopf.Patch().fns,
            lambda: kopf.label({}, {}, nested=["spec.template"]),
            lambda: kopf.adopt({}, {}, nested="spec.template"),
            lambda: kopf._NoSettings().posting,
            lambda: setattr(kopf._NoSettings(), "scanning", 1),
            lambda: kopf.IndexedArguments,
        ):
            with self.assertRaises(kopf.Unsupported) as raised:
                refused()
            self.assertTrue(kopf._error(raised.exception)["permanent"])

    def test_filters_of_daemons_that_are_functions(self):
        with self.assertRaisesRegex(kopf.Unsupported, "test it in the daemon"):
            kopf.daemon("kopfexamples", when=lambda **_: True)(lambda **_: None)

    def test_mistakes_name_what_was_meant(self):
        for options, message in (({"retires": 3}, "the option retires is not supported: did you mean retries?"), ({"labels": "a"}, "labels must be a mapping"), ({"new": bool}, "new needs field")):
            with self.assertRaisesRegex(Exception, message):
                kopf.on.create("kopfexamples", **options)(lambda **_: None)


class OutsideTest(unittest.TestCase):
    def test_no_handler_runs(self):
        for function in (
            lambda: kopf.info({}, reason="a"),
            lambda: kopf.asyncio.run(kopf.execute(fns={})),
            lambda: kopf.subhandler()(print),
            lambda: kopf.adopt({}),
        ):
            with self.assertRaisesRegex(LookupError, "no handler runs here"):
                function()


class FiltersTest(unittest.TestCase):
    def meant(self, declared, **message):
        """Reports whether a handler is called that is declared by functions of kopf.on and their options."""
        before = len(kopf._handlers)
        self.addCleanup(lambda: kopf._handlers.__delitem__(slice(before, None)))

        def fn(**_): ...

        for decorator, options in declared:
            decorator("kopfexamples", **options)(fn)
        made = call(function=kopf._handlers[-1]["function"], **message)
        return made.is_meant(made.kwargs())

    def test_functions_get_the_arguments(self):
        for options, want in (
            ({"when": lambda name, **_: name == "n"}, True),
            ({"when": lambda name, **_: name == "other"}, False),
            ({"when": kopf.all_([lambda **_: True, kopf.not_(lambda **_: False)])}, True),
            ({"when": kopf.none_([lambda **_: False, lambda **_: True])}, False),
            ({"when": kopf.any_([lambda **_: False, lambda **_: True])}, True),
            ({"labels": {"a": lambda value, name, **_: (value, name) == ("b", "n")}}, True),
            ({"labels": {"none": lambda value, **_: value is not None}}, False),
            ({"annotations": {"none": lambda value, **_: value is None}, "when": lambda **_: False}, False),
            ({"field": "spec.size", "value": lambda value, **_: value == 1}, True),
            ({"field": "spec.size", "value": lambda value, **_: value == 3}, False),
            ({"field": ("spec", "size"), "old": lambda value, **_: value == 1, "new": lambda value, **_: value == 2}, True),
            ({"field": "spec.size", "new": lambda value, **_: value == 1}, False),
        ):
            field = {"/spec/size" if isinstance(options["field"], tuple) else options["field"]} if "field" in options else {None}
            message = {"kind": "change", "reason": "update", "old": 1, "new": 2, "name": "n", "field": field.pop()}
            self.assertEqual(self.meant([(kopf.on.update, options)], **message), want, options)

    def test_values_of_other_handlers_are_the_current_ones(self):
        body = {"metadata": {}, "spec": {"size": 2}}
        for kind, size, want in (("timer", 2, True), ("event", 1, False)):
            decorator = {"timer": kopf.timer, "event": kopf.on.event}[kind]
            options = {"field": "spec.size", "value": lambda value, size=size, **_: value == size}
            self.assertEqual(self.meant([(decorator, options)], kind=kind, object=body, field="spec.size"), want)

    def test_one_declaration_is_enough(self):
        no, yes = {"when": lambda **_: False}, {"when": lambda **_: True}
        for declared, want in (
            ([(kopf.on.create, no), (kopf.on.create, yes)], True),
            ([(kopf.on.create, no), (kopf.on.update, yes)], False),
            ([(kopf.on.update, no), (kopf.on.create, {})], True),
        ):
            self.assertEqual(self.meant(declared, kind="change", reason="create"), want)

    def test_a_handler_that_is_not_meant_succeeds(self):
        sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        kopf._send = sent.append
        made = call(function="f", kind="change", reason="create")
        kopf._functions["f"] = lambda **_: 1 / 0
        self.addCleanup(kopf._functions.pop, "f")
        kopf._conditions["f"] = [("create", None, [lambda kwargs: False])]
        self.addCleanup(kopf._conditions.pop, "f")
        kopf.asyncio.run(kopf._respond(made, None))
        self.assertEqual(sent, [{"type": "answer", "id": "1", "answer": {}}])


class IndicesTest(unittest.TestCase):
    def setUp(self):
        before = len(kopf._handlers)
        self.addCleanup(lambda: kopf._handlers.__delitem__(slice(before, None)))
        self.declared = lambda: kopf._handlers[before:]
        self.sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        kopf._send = self.sent.append

    def answer(self, fn, **message):
        """Returns the answer of a call of a handler."""

        async def call_it(**kwargs):
            return fn(**kwargs)

        kopf._functions["f"] = call_it
        self.addCleanup(kopf._functions.pop, "f", None)
        kopf.asyncio.run(kopf._respond(call(function="f", **message), None))
        return self.sent[-1]["answer"]

    def read_again(self, result):
        """Returns an index with what a function has returned for one object."""
        answer = json.loads(json.dumps(self.answer(lambda **_: result, kind="index")))
        entries = [{"key": each["key"], "values": [each["value"]]} for each in answer["index"]]
        return call(indices={"it": entries}).kwargs()["it"]

    def test_dictionaries_have_keys(self):
        answer = self.answer(lambda **_: {"a": 1, ("ns", ("n", 2)): {"b": [None]}, None: None}, kind="index")
        self.assertEqual(answer, {"index": [{"key": "a", "value": 1}, {"key": ["ns", ["n", 2]], "value": {"b": [None]}}, {"key": None, "value": None}]})

    def test_all_else_has_the_key_none(self):
        for result in ("text", 0, [1, 2], ("ns", "n"), {1, 2}, frozenset({1}), kopf.Body({"spec": {"a": 1}}), kopf.Memo(a=1), False):
            index = self.read_again(result)
            self.assertEqual((list(index), list(index[None])), ([None], [result]), result)
        self.assertEqual(self.read_again(kopf.Body({"spec": {"a": 1}}))[None]._values[0].spec, {"a": 1})

    def test_values_are_as_they_were(self):
        for value in ({"$set": [1]}, {"$dict": {"$set": [1]}}, {"a": {("b", 1)}, "c": ("d",)}, [{"$body": {}}], {}, {"$set": 1, "b": 2}):
            self.assertEqual(list(self.read_again({("k", 1): value})[("k", 1)]), [value], value)

    def test_nothing_keeps_what_is_there(self):
        self.assertEqual(self.answer(lambda **_: None, kind="index"), {})
        self.assertEqual(self.answer(lambda **_: {}, kind="index"), {"index": []})

    def test_patches_of_indices_are_not_written(self):
        def fn(patch, **_):
            patch.status["seen"] = True
            return 1

        self.assertEqual(self.answer(fn, kind="index"), {"index": [{"key": None, "value": 1}]})

    def test_what_json_does_not_have_is_an_error(self):
        for result, message in ((object(), "object is not JSON serializable"), ({object(): 1}, "a key of an index must be a text"), ({"a": float("nan")}, "not JSON compliant")):
            self.assertIn(message, self.answer(lambda **_: result, kind="index")["error"]["message"])

    def test_an_index_is_a_mapping(self):
        entries = [{"key": ["ns", "a"], "values": [True, False]}, {"key": None, "values": ["x"]}]
        index = call(indices={"it": entries}).kwargs()["it"]
        self.assertIsInstance(index, kopf.Index)
        self.assertIsInstance(index[None], kopf.Store)
        self.assertEqual((len(index), set(index), bool(index), ("ns", "a") in index, "b" in index), (2, {("ns", "a"), None}, True, True, False))
        self.assertEqual((list(index[("ns", "a")]), len(index[None]), "x" in index[None], list(index.get("b", []))), ([True, False], 1, True, []))
        self.assertEqual(repr(index), "{('ns', 'a'): [True, False], None: ['x']}")
        with self.assertRaises(TypeError):
            index["b"] = []
        self.assertFalse(call(indices={"it": []}).kwargs()["it"])

    def test_an_index_comes_before_other_arguments(self):
        self.assertEqual(dict(call(indices={"spec": []}).kwargs()["spec"]), {})

    def test_parameters_ask_for_indices(self):
        @kopf.timer("kopfexamples", interval=1)  # before the indices
        def tick(second: kopf.Index[str, int], spec, *, first=None, **_): ...

        @kopf.index("pods")
        def first(**_): ...

        @kopf.index("pods", id="second")
        def other(first, **_): ...

        @kopf.on.create("kopfexamples", when=kopf.any_([kopf.not_(lambda second, **_: True)]))
        @kopf.on.update("kopfexamples", labels={"a": lambda value, first, **_: True})
        def change(**kwargs): ...

        @kopf.on.probe()
        def probe(**kwargs): ...

        bound = functools.partial(lambda item, first, **_: None, item=1)
        kopf.on.resume("kopfexamples", id="bound")(bound)
        output = io.StringIO()
        self.addCleanup(setattr, kopf, "_output", kopf._output)
        kopf._greet(output)
        self.assertEqual(
            [each.get("indices") for each in self.declared()],
            [["first", "second"], None, ["first"], ["first", "second"], ["first", "second"], None, ["first"]],
        )
        made = call()
        token = kopf._call.set(made)
        self.addCleanup(kopf._call.reset, token)
        kopf.register(lambda first, **_: None, id="part")
        kopf.register(lambda **_: None, id="other")
        self.assertEqual([each.get("indices") for each in made.subhandlers], [["first"], None])

    def test_filters_remove_objects(self):
        @kopf.index("pods", when=lambda name, **_: name == "other")
        def it(**_):
            return 1

        declaration = self.declared()[0]
        kopf.asyncio.run(kopf._respond(call(function=declaration["function"], kind="index", name="n"), None))
        self.assertEqual(self.sent[-1]["answer"], {"index": []})


class CancellationTest(unittest.TestCase):
    def cancel(self, fn, busy=False):
        """Cancels a call after it has begun, or while all threads are busy, and returns its answer."""
        sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        kopf._send = sent.append
        made = call(function="f", kind="change", reason="create")
        kopf._functions["f"] = fn
        self.addCleanup(kopf._functions.pop, "f")
        self.begun, self.canceled = threading.Event(), threading.Event()

        async def run():
            with futures.ThreadPoolExecutor(max_workers=1) as pool:
                if busy:
                    pool.submit(self.canceled.wait, 10)
                task = kopf.asyncio.create_task(kopf._respond(made, pool))
                await kopf.asyncio.sleep(0)
                if not busy:
                    await kopf.asyncio.to_thread(self.begun.wait, 10)
                task.cancel()
                await kopf.asyncio.sleep(0)
                self.assertEqual(task.done(), sent != [])
                self.canceled.set()
                await task

        kopf.asyncio.run(run())
        (answer,) = sent
        return answer["answer"]

    def test_a_thread_is_waited_for(self):
        def fn(patch, **_):
            self.begun.set()
            self.canceled.wait(10)
            patch.status["ended"] = True
            return "done"

        self.assertEqual(self.cancel(fn), {"result": "done", "patch": {"status": {"ended": True}}})

    def test_a_thread_can_fail(self):
        def fn(**_):
            self.begun.set()
            self.canceled.wait(10)
            raise kopf.TemporaryError("later", delay=5)

        self.assertEqual(self.cancel(fn), {"error": {"message": "later", "delay": 5}})

    def test_what_waits_for_a_thread_is_not_begun(self):
        answer = self.cancel(lambda **_: self.fail("it must not be called"), busy=True)
        self.assertEqual(answer["error"]["message"], "the call was canceled")


class WorkerTest(unittest.TestCase):
    def answers(self, handlers, *messages, then=(), threads=200):
        """Runs a worker with handlers, sends it messages, and others after its first answer. Returns its answers and its errors."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "handlers.py")
            with open(path, "w") as file:
                file.write("import asyncio, subprocess, sys\n\nimport kopf\n\n" + handlers)
            pipe = subprocess.PIPE
            with subprocess.Popen([sys.executable, "-B", kopf.__file__, path], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, "KOPF_THREADS": str(threads)}) as worker:
                self.addCleanup(worker.kill)

                def send(messages):
                    worker.stdin.write("".join(json.dumps(each) + "\n" for each in messages))
                    worker.stdin.flush()

                self.assertEqual(json.loads(worker.stdout.readline())["type"], "hello")
                send(messages)
                answers, self.others = {}, []
                while len(answers) < sum(each["type"] == "call" for each in messages):
                    message = json.loads(worker.stdout.readline())
                    if message["type"] == "answer":
                        answers[message["id"]] = message["answer"]
                        send(then)
                        then = ()
                    else:
                        self.others.append(message)
                worker.stdin.close()
                return answers, worker.stderr.read()

    def message(self, id, function):
        made = {"id": id, "function": f"handlers.{function}", "kind": "startup", "retry": 0, "runtime": 0}
        return {"type": "call", "id": id, "call": made}

    def test_child_processes_have_other_pipes(self):
        answers, log = self.answers(
            """
@kopf.on.startup()
def speak(**_):
    subprocess.run(["echo", "from a child"], check=True)
    print("from a handler")
    return subprocess.run(["cat"], check=True, stderr=subprocess.PIPE).returncode

@kopf.on.startup()
def listen(**_):
    return [subprocess.check_output(["cat"], text=True), sys.stdin.read()]
""",
            *(self.message(str(id), function) for id, function in enumerate(("speak", "listen", "listen"))),
        )
        self.assertEqual(answers, {"0": {"result": 0}, "1": {"result": ["", ""]}, "2": {"result": ["", ""]}})
        self.assertEqual(log, "from a child\nfrom a handler\n")

    def test_lines_can_be_logged_while_handlers_are_imported(self):
        handlers = "import logging\n\nlogging.warning('It begins.')\n\n@kopf.on.startup()\ndef begin(**_): ...\n"
        answers, log = self.answers(handlers, self.message("1", "begin"))
        self.assertEqual((answers, log), ({"1": {}}, "It begins.\n"))

    def test_daemons_have_threads_of_their_own(self):
        daemon = self.message("1", "wait")
        daemon["call"]["kind"] = "daemon"
        stop = {"type": "stop", "id": "1", "reason": "deleted|signaled"}
        handlers = """
import threading

busy = threading.Event()

@kopf.daemon("kopfexamples")
def wait(stopped, **_):
    busy.set()
    stopped.wait()
    return busy.ended

@kopf.on.startup()
def other(**_):
    busy.wait()
    busy.ended = True
"""
        answers, _ = self.answers(handlers, daemon, self.message("2", "other"), then=[stop], threads=1)
        self.assertEqual(answers, {"2": {}, "1": {"result": True}})

    def test_a_configuration_of_logging_silences_no_object(self):
        handlers = """
import logging.config

@kopf.on.startup()
def begin(logger, **_):
    logger.info("before")
    logging.config.dictConfig({"version": 1, "root": {"handlers": ["it"]}, "handlers": {"it": {"class": "logging.StreamHandler"}}})
    logger.debug("after")
    logging.getLogger("other").warning("from another")
"""
        _, log = self.answers(handlers, self.message("1", "begin"))
        lines = [(each.get("id"), each["level"], each["message"]) for each in self.others if each["type"] == "log"]
        self.assertEqual(lines, [("1", "info", "before"), ("1", "debug", "after")])
        self.assertEqual(log.split("\n"), ["after", "from another", ""])

    def test_a_call_that_is_canceled_at_once_is_answered(self):
        answers, _ = self.answers("@kopf.on.startup()\nasync def wait(**_):\n    await asyncio.sleep(100)\n", self.message("1", "wait"), {"type": "cancel", "id": "1"})
        self.assertEqual(answers["1"]["error"]["message"], "the call was canceled")


class SubhandlersTest(unittest.TestCase):
    def execute(self, error):
        """Runs a handler that executes sub-handlers, and returns what it has sent."""
        sent = []
        self.addCleanup(setattr, kopf, "_send", kopf._send)
        made = call(function="f", kind="change", reason="create")

        def send(message):
            sent.append({key: value for key, value in message.items() if key != "id"})
            if message["type"] == "execute":
                made.executed.set_result(error)

        def part(item, **_): ...

        async def handler(patch, **_):
            patch.status["begun"] = True
            try:
                await kopf.execute(fns={"a": functools.partial(part, item=1), "b": part})
                await kopf.execute()  # there is nothing new
                kopf.register(functools.partial(part, item=2))
            except Exception:
                self.fail("the handler must not be able to continue")
            return "done"

        kopf._send = send
        kopf._functions["f"] = handler
        self.addCleanup(kopf._functions.pop, "f")
        kopf.asyncio.run(kopf._respond(made, None))
        for each in sent:
            for declared in each.get("subhandlers", []) + each.get("answer", {}).get("subhandlers", []):
                declared.pop("place")
        return sent

    def test_a_handler_continues_when_they_have_ended(self):
        declared = [{"id": "a", "function": "a"}, {"id": "b", "function": "b"}]
        later = {"result": "done", "subhandlers": [{"id": "part", "function": "part"}], "patch": {"status": {"begun": True}}}
        self.assertEqual(self.execute(None), [{"type": "execute", "subhandlers": declared}, {"type": "answer", "answer": later}])

    def test_a_handler_ends_while_they_have_not(self):
        answer = self.execute({"message": "not yet"})[-1]["answer"]
        self.assertEqual(answer["patch"], {"status": {"begun": True}})
        self.assertNotIn("result", answer)


class ChildrenTest(unittest.TestCase):
    def test_names_are_given_as_asked(self):
        owner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}}
        for options, name in (({}, {"generateName": "n-"}), ({"strict": True}, {"name": "n"})):
            child = {}
            kopf.adopt(child, owner, **options)
            self.assertEqual({key: child["metadata"].get(key) for key in name}, name)
            self.assertEqual(child["metadata"]["labels"], {"a": "b"})
            self.assertEqual(child["metadata"]["ownerReferences"][0]["uid"], "u")


if __name__ == "__main__":
    unittest.main()
