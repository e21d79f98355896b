"""The hooks of a controller of Metacontroller: an object has pages, and each of them becomes a config map."""

import http.server
import json
import sys


def pages(parent):
    """Returns the config maps that the object should have, by their names."""
    found = {}
    for name, text in parent["spec"].get("pages", {}).items():
        name = f"{parent['metadata']['name']}-{name}"
        found[name] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
    return found


def sync(request):
    return {
        "status": {"pages": len(request["children"]["ConfigMap.v1"])},
        "children": list(pages(request["parent"]).values()),
    }


def finalize(request):
    """The pages go one by one, the last one first."""
    left = sorted(request["children"]["ConfigMap.v1"])
    print("These pages are left:", left, flush=True)
    wanted = pages(request["parent"])
    return {
        "status": {"pages": len(left)},
        "children": [wanted[name] for name in left[:-1] if name in wanted],
        "finalized": not left,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    hooks = {"/sync": sync, "/finalize": finalize}

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self.hooks[self.path](request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Requests are not logged."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("localhost", int(sys.argv[1])), Handler).serve_forever()
