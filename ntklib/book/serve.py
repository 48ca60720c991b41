"""Serve a folder on this machine only: `python ntklib/book/serve.py _build/html [port]`."""
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Quiet, and never a stale page: the browser asks again each time."""

    def log_message(self, *args):
        """Say nothing."""

    def end_headers(self):
        """Add the one header that matters while a book is being written."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def serve(folder, port: int = 0) -> ThreadingHTTPServer:
    """A server of `folder` on 127.0.0.1, on `port` or, if that is taken, on a free one; not yet running."""
    handler = partial(Handler, directory=str(folder))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


if __name__ == "__main__":
    server = serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8000)
    print(f"The book: http://127.0.0.1:{server.server_port}/   (Ctrl-C stops)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
