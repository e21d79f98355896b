"""The operator of test/swap for Kopf, and for kopf serve: the same handlers as in operator/main.go."""
import asyncio
import json
import os
import urllib.request

import kopf


def report(**entry):
    entry["process"] = int(os.environ["SWAP_PROCESS"])
    request = urllib.request.Request(os.environ["SWAP_JOURNAL"], data=json.dumps(entry).encode())
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()


def step_of(value):
    if isinstance(value, (dict, kopf.Body)) or hasattr(value, "get"):
        value = (value.get("spec") or {}).get("step")
    return value if isinstance(value, int) else None


async def follow(handler, body, uid, name, reason, retry, old, new, spec):
    entry = dict(
        handler=handler, uid=uid, name=name, reason=str(getattr(reason, "value", reason)), retry=retry,
        version=body["metadata"]["resourceVersion"], step=spec["step"], old=step_of(old), new=step_of(new),
    )
    report(phase="start", **entry)
    plan = json.loads(spec["plan"].get(handler, "{}"))
    await asyncio.sleep(plan.get("takes", 0) / 1000)
    outcome = plan.get("with") or "temporary" if retry < plan.get("fails", 0) else "success"
    report(phase="end", outcome=outcome, **entry)
    if outcome == "temporary":
        raise kopf.TemporaryError("later", delay=plan["delay"] / 1000)
    if outcome == "error":
        raise ValueError("an error")
    if outcome == "permanent":
        raise kopf.PermanentError("never")
    return {"step": spec["step"]} if plan.get("result") else None


def following(handler):
    async def fn(body, uid, name, reason, retry, old, new, spec, **_):
        return await follow(handler, body, uid, name, reason, retry, old, new, spec)
    return fn


@kopf.on.startup()
def ready(**_):
    report(phase="ready")


resource = ("kopf.dev", "v1", "kopfexamples")
backoff = 0.3
kopf.on.create(*resource, id="create_one", backoff=backoff)(following("create_one"))
kopf.on.create(*resource, id="create_two", backoff=backoff)(following("create_two"))
kopf.on.update(*resource, id="update", backoff=backoff)(following("update"))
both = following("both")  # one function, because it is one handler
kopf.on.create(*resource, id="both", backoff=backoff)(both)
kopf.on.update(*resource, id="both", backoff=backoff)(both)
kopf.on.field(*resource, field="spec.a", id="field", backoff=backoff)(following("field/spec.a"))
kopf.on.resume(*resource, id="resumed", backoff=backoff)(following("resumed"))
kopf.on.delete(*resource, id="delete_one", backoff=backoff)(following("delete_one"))
kopf.on.delete(*resource, id="delete_two", backoff=backoff)(following("delete_two"))

# Kopf knows no order, and no schedule.
for each in ("again", "rescue", "second", "first"):
    fn = following(each)
    kopf.on.create(*resource, id=each, backoff=backoff)(fn)
    kopf.on.update(*resource, id=each, backoff=backoff)(fn)


@kopf.on.create(*resource, id="parent", backoff=backoff)
@kopf.on.update(*resource, id="parent", backoff=backoff)
async def parent(body, uid, name, reason, retry, old, new, spec, **_):
    for item in spec.get("items", []):
        kopf.subhandler(id=item, backoff=backoff)(following("parent/" + item))
    return await follow("parent", body, uid, name, reason, retry, old, new, spec)
