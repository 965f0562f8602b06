"""A hub on this machine: it answers the requests with which huggingface_hub downloads and uploads a repository."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


@contextmanager
def serving(repositories: dict[str, dict[str, Path]]) -> Iterator[str]:
    """Yield the address of a hub with some repositories: by revision, the folder that the commit holds.

    Whoever has the token "mine" may make repositories that are not there yet, if they are private, and commit files to
    their revision "main"; "reader" may look at them. Nothing else can be asked, such as another privacy.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(with_body=False)

        def do_GET(self):
            self.answer(with_body=True)

        def do_POST(self):
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            may = self.headers.get("Authorization")
            if may not in ("Bearer mine", "Bearer reader"):
                return self.refuse(401, "Invalid username or password.")
            repository = self.path.partition("?")[0].removeprefix("/api/models/").rpartition("/main")[0]
            if self.path == "/api/repos/create":
                new = json.loads(asked)
                name = f"{new['organization']}/{new['name']}"
                place = json.dumps({"url": f"http://{self.headers['Host']}/{name}"}).encode()
                if repositories[name]["main"].is_dir():
                    return self.send(place, "", True, status=409)
                repositories[name]["main"].mkdir()
                return self.send(place, "", True) if new["visibility"] == "private" else self.refuse(400, "not private")
            if self.path == "/api/validate-yaml":
                return self.send(b'{"errors": [], "warnings": []}', "", True)
            if repository.endswith("/preupload"):
                files = [{"path": file["path"]} for file in json.loads(asked)["files"]]
                plain = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                return self.send(json.dumps({"files": [{**file, **plain} for file in files]}).encode(), "", True)
            if may == "Bearer reader":
                return self.refuse(403, "Forbidden")
            folder = repositories[repository.removesuffix("/commit")]["main"]
            for line in map(json.loads, asked.splitlines()):
                place = folder / line["value"].get("path", "")
                if line["key"] == "deletedFile":
                    place.unlink()
                if line["key"] == "file":
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(base64.b64decode(line["value"]["content"]))
            commit = hashlib.sha1(b"main").hexdigest()
            place = f"http://{self.headers['Host']}/owner/mine/commit/{commit}"
            self.send(json.dumps({"commitOid": commit, "commitUrl": place}).encode(), "", True)

        def refuse(self, status: int, message: str):
            self.send_response(status)
            self.send_header("X-Error-Message", message)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def answer(self, with_body: bool):
            path = self.path.partition("?")[0]
            for repository, name, folder in commits:
                commit = hashlib.sha1(name.encode()).hexdigest()
                if path in [f"/api/models/{repository}/revision/{one}" for one in (name, commit)]:
                    return self.send(json.dumps({"id": repository, "sha": commit}).encode(), commit, with_body)
                if path in [f"/api/models/{repository}/tree/{one}" for one in (name, commit)]:
                    sizes = {
                        p.relative_to(folder).as_posix(): p.stat().st_size for p in folder.rglob("*") if p.is_file()
                    }
                    tree = [{"type": "file", "path": p, "size": size, "oid": p} for p, size in sizes.items()]
                    return self.send(json.dumps(tree).encode(), commit, with_body)
                for one in (name, commit):
                    start = f"/{repository}/resolve/{one}/"
                    if path.startswith(start) and (file := folder / path.removeprefix(start)).is_file():
                        return self.send(file.read_bytes(), commit, with_body)
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def send(self, content: bytes, commit: str, with_body: bool, status: int = 200):
            self.send_response(status)
            self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", commit)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    commits = [(name, revision, folder) for name, held in repositories.items() for revision, folder in held.items()]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
