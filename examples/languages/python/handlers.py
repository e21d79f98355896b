# Handlers that are written for Kopf, and run by "kopf serve" as they are.
import asyncio

import kopf


@kopf.on.create("kopfexamples", retries=5)
@kopf.on.resume("kopfexamples")
def create_fn(spec, name, retry, logger, patch, **_):
    logger.info(f"{name} has {len(spec.get('items', []))} items.")
    if retry == 0:
        raise kopf.TemporaryError("The first attempt fails.", delay=0.1)
    patch.status["greeting"] = "hello"

    for item in spec.get("items", []):

        @kopf.subhandler(id=item)
        async def prepare(logger, item=item, **_):
            await asyncio.sleep(0.01)
            logger.info(f"The item {item} is prepared.")
            return {"prepared": item}

    return {"retries": retry}


@kopf.on.update("kopfexamples", id="update")
def update_fn(diff, body, **_):
    kopf.info(body, reason="Changed", message=f"{len(diff)} fields have changed.")
    print("Standard output is free for people.")


@kopf.on.field("kopfexamples", field="spec.size", new=kopf.PRESENT)
def resize(old, new, **_):
    return {"from": old, "to": new}


@kopf.on.delete("kopfexamples")
async def delete_fn(logger, **_):
    logger.info("Deleted.")


@kopf.timer("kopfexamples", interval=1, labels={"timed": kopf.PRESENT})
async def tick(patch, status, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.daemon("kopfexamples", labels={"guarded": "yes"})
def guard(stopped, logger, **_):
    while not stopped:
        stopped.wait(1)
    logger.info(f"The daemon ends: {stopped.reason}.")
