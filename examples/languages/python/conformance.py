# The handlers that "kopf conformance" calls, for the adapter in kopf.py:
#
#     kopf conformance -- python3 kopf.py conformance.py
import asyncio
import time

import kopf


def check(fn):
    return kopf.on.create("kopfexamples", id="conformance-" + fn.__name__)(fn)


@check
def echo(param, **_):
    return param


@check
async def sleep(param, **_):
    await asyncio.sleep(param["seconds"])
    return param["number"]


@check
def patch(patch, **_):
    patch.metadata.labels["conformance"] = "passed"


@check
def temporary(**_):
    raise kopf.TemporaryError("later", delay=5)


@check
def permanent(**_):
    raise kopf.PermanentError("never")


@check
def error(**_):
    raise RuntimeError("oops")


@check
def log(logger, body, **_):
    logger.info("hello")
    kopf.info(body, reason="Hello", message="an event")


@check
def subhandlers(**_):
    for part in ("a", "b"):
        kopf.register(lambda part=part, **_: part, id=part)


@check
async def execute(**_):
    await kopf.execute(fns={part: lambda part=part, **_: part for part in ("a", "b")})
    return "executed"


@check
async def wait(**_):
    await asyncio.sleep(1000)


@check
def finish(param, **_):
    time.sleep(param["seconds"])
    return "finished"


@kopf.daemon("kopfexamples", id="conformance-daemon")
def daemon(stopped, **_):
    stopped.wait()
    return "stopped"


@kopf.index("kopfexamples", id="conformance-index")
def index(param, namespace, name, **_):
    return {(namespace, name): param}


@check
def large(param, **_):
    return "x" * param
