"""What the tests share: the built book on a local server, a browser that sees nothing else, a JupyterLab.

BOOK_ROOT=/some/folder tests another book (a folder with _config.yml and _toc.yml) than the repository's.
"""
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:     # before torch is loaded; the notebooks' kernels and the book's build inherit it
    os.environ.setdefault("OMP_NUM_THREADS", "1")   # two workers of two threads each, on two cores, wait for each other: 10 s become 200

from ntklib.book.chapters import CHAPTERS
from ntklib.book.serve import serve

REPO = Path(__file__).parents[1]
ROOT = Path(os.environ.get("BOOK_ROOT", REPO))
HTML = ROOT / "_build" / "html"
NOTEBOOK_LIMIT = 60             # seconds that a reader waits for a whole notebook
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
            "/Applications/Chromium.app/Contents/MacOS/Chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]


def pytest_configure(config):
    config.pluginmanager.register(NotebookLimit())


@pytest.hookimpl(tryfirst=True)         # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """One worker for all tests of a file (a notebook's cells share a kernel), though pages may part. One of them builds
    the book at once, while the others do what needs no book."""
    groups = {}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        page = params.get("page_name") or params.get("spot", ("",))[0]
        name = f"{item.path}:{page}"
        item.add_marker(pytest.mark.xdist_group(name))
        groups.setdefault(name, []).append(item)

    def needs_book(group):
        return any("book" in getattr(item, "fixturenames", ()) for item in group)

    builder = next(filter(needs_book, groups.values()), None)
    items[:] = [item for group in sorted(groups.values(), key=lambda g: g is not builder and 1 + needs_book(g)) for item in group]


class NotebookLimit:
    """Fails the cell at which a notebook has run too long. A plugin: notebooks do not lie below tests/."""

    def __init__(self):
        self.spent = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call" and item.path.suffix == ".ipynb":
            self.spent[item.path] += call.duration
            if report.passed and self.spent[item.path] > NOTEBOOK_LIMIT:
                report.outcome = "failed"
                report.longrepr = (f"{item.path.name} has run for {self.spent[item.path]:.0f} s, more than "
                                   f"{NOTEBOOK_LIMIT}: record the long part, or move it to `make bench`")
        return report


def beside_chapters(name: str) -> dict:
    """What the chapters' own test modules, test_chapter_*.py, give the tests of all chapters under this name: SABOTAGE to
    test_claims.py, STUDENTS and CORRECT to test_exercises.py."""
    found = [f"test_chapter_{c}" for c in CHAPTERS if (Path(__file__).parent / f"test_chapter_{c}.py").exists()]
    return {id: case for module in found for id, case in getattr(import_module(module), name, {}).items()}


# ---- the book ------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the book's HTML, built once a run: by the first worker that asks, while others wait."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}-{time.time()}")
    HTML.parent.mkdir(exist_ok=True)
    with open(HTML.parent / ".tests.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        done = json.loads(lock.read() or "{}")
        if done.get("run") != run:
            builder = Path(sys.executable).with_name("jupyter-book")
            made = subprocess.run([builder, "build", "-W", "--keep-going", "-q", ROOT],
                                  capture_output=True, text=True)
            done = {"run": run, "code": made.returncode, "log": made.stderr[-4000:]}
            lock.truncate(0)
            lock.write(json.dumps(done))
    if done["code"]:
        pytest.fail(f"the book does not build:\n{done['log']}", pytrace=False)
    return HTML


@pytest.fixture(scope="session")
def site(book):
    """The address of the built book on this machine, e.g. http://127.0.0.1:41234."""
    server = serve(book)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


# ---- the browser ---------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def browser():
    """Chromium or Chrome of the system, else Playwright's own; without any: a skip, or in CI a failure."""
    from playwright.sync_api import Error, sync_playwright
    found = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except Error as e:
            say = ("no browser: install chromium (Debian: sudo apt install chromium), or run "
                   f"`.venv/bin/playwright install chromium` ({e.message.splitlines()[0]})")
            (pytest.fail if os.environ.get("CI") else pytest.skip)(say)
        yield chromium
        chromium.close()


class Visit:
    """A page under watch, in a fresh profile: other hosts are refused, and all that goes wrong is kept."""

    def __init__(self, browser, url: str | None = None, settle=True, **options):
        self.external, self.console, self.failed = [], [], []
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**usual | options)
        self.context.route("**/*", self._gate)
        self.context.route_web_socket("**/*", self._gate_socket)
        self.context.add_init_script("""{ const keep = window.layoutShifts = [];
            const name = node => (node?.outerHTML ?? node?.textContent ?? "?").slice(0, 90);
            new PerformanceObserver(list => list.getEntries().forEach(e => e.hadRecentInput ||
                keep.push({ value: e.value, moved: e.sources.map(s => name(s.node)) })))
                .observe({ type: "layout-shift", buffered: true }); }""")
        self.page = page = self.context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and self.console.append(m.text))
        page.on("pageerror", lambda e: self.console.append(f"uncaught: {e}"))
        page.on("response", lambda r: r.status >= 400 and self.failed.append(f"{r.status} {r.url}"))
        page.on("requestfailed", self._lost)
        if url:
            page.goto(url, wait_until="load")
            if settle and options.get("java_script_enabled", True):
                self.settle()

    def _gate(self, route):
        if urlsplit(route.request.url).hostname in (None, "", "127.0.0.1"):     # ours, file:, data:, blob:
            route.continue_()
        else:
            self.external.append(route.request.url)
            route.abort()

    def _gate_socket(self, socket):
        if urlsplit(socket.url).hostname == "127.0.0.1":
            socket.connect_to_server()
        else:
            self.external.append(socket.url)

    def _lost(self, request):
        left = request.failure == "net::ERR_ABORTED"            # the page was left before it had come
        if not left and request.url not in self.external:
            self.failed.append(f"{request.failure} {request.url}")

    def problems(self) -> list[str]:
        """Requests to other hosts, requests that failed, console errors and warnings, uncaught exceptions."""
        return [f"another host: {u}" for u in self.external] + self.failed + self.console

    def shifts(self) -> list[dict]:
        """What moved without the reader's doing since the page was opened; the values add up to CLS."""
        return self.page.evaluate("window.layoutShifts")

    def settle(self):
        """Scroll to the end and back, so that everything loads; wait for fonts, formulas and widgets."""
        self.page.evaluate("""async () => {
            const wait = ms => new Promise(done => setTimeout(done, ms));
            await window.MathJax?.startup?.promise;
            const end = document.body.scrollHeight;
            for (let y = 0; y < end; y += innerHeight) { scrollTo(0, y); await wait(30); }
            const waiting = () => document.querySelector("[data-ntk]:not([data-ready])");
            for (let t = 0; t < 200 && waiting(); t++) await wait(50);
            await document.fonts.ready;
            scrollTo(0, 0); await wait(50);
        }""")
        return self


@pytest.fixture
def visit(browser):
    """`visit(url, **options of browser.new_context)` opens a page under watch; see `Visit`."""
    opened = []

    def go(url: str | None = None, **options) -> Visit:
        opened.append(Visit(browser, url, **options))
        return opened[-1]
    yield go
    for seen in opened:
        seen.context.close()


@pytest.fixture
def page(visit):
    """A blank page of 1280 x 800 in which every other host is refused (`visit` gives more than the page)."""
    return visit().page


# ---- JupyterLab ----------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """The address of a live JupyterLab on a copy of chapters/: no token, this machine only, no settings."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "chapters", home / "chapters", ignore=shutil.ignore_patterns(".ipynb_*"))
    own = {f"JUPYTER_{k}_DIR": str(home / k.lower()) for k in ("CONFIG", "DATA", "RUNTIME")}
    own |= {f"JUPYTERLAB_{k}_DIR": str(home / k.lower()) for k in ("SETTINGS", "WORKSPACES")}
    port = free_port()
    command = [Path(sys.executable).with_name("jupyter-lab"), "--no-browser", "--allow-root",
               "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
               "--IdentityProvider.token=", f"--ServerApp.root_dir={home / 'chapters'}",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        if not answers(f"{url}/api/status", server, seconds=60):
            pytest.fail(f"JupyterLab did not start:\n{(home / 'log').read_text()[-3000:]}", pytrace=False)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(url: str, server: subprocess.Popen, seconds: float) -> bool:
    """Does `url` answer before the time is over or the server has died?"""
    end = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return True
        except OSError:
            time.sleep(0.2)
    return False
