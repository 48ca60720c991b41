import html.parser
import inspect
import math
from importlib import import_module
from pathlib import Path

import pytest
import torch
from conftest import beside_chapters

from ntklib import angles
from ntklib.book import claims
from ntklib.book.claims import Chapter, Discrepancy, Source, claim, page
from ntklib.book.claims import angles as chapter1

CLAIMS = claims.all_claims()
CHAPTERS = Path(__file__).parents[1] / "chapters"
TEST = Chapter("test", "A test", "test/01_page")
ABOUT = {"statement": "$1=1$", "source": Source("nobody", "nowhere"), "derivation": "angles.angle_map",
         "measures": "error", "tolerance": 0.1}


# ---- each claim --------------------------------------------------------------------------------------
SLOW = [pytest.mark.slow]


@pytest.mark.parametrize("id", [pytest.param(i, marks=SLOW * c.slow) for i, c in CLAIMS.items()])
def test_a_claim_holds(id):
    assert 0 <= CLAIMS[id]() <= CLAIMS[id].tolerance


def scaled(f, factor):
    return lambda *args, **kw: factor * f(*args, **kw)


def clumsy_map(theta, slope=0.0):
    """The formula as printed: it has lost a small angle's digits."""
    return (((math.pi - theta) * theta.cos() + theta.sin()) / math.pi).clamp(max=1).arccos()


def swap(*pairs):
    """Names to replace: (module, name, wrong object)."""
    return pairs


MAP, DEFICIT = angles.angle_map, angles.angle_deficit
SABOTAGE = {        # for each claim, a falsehood that its check must notice
    "angles-layer-limit": swap((angles, "angle_map", scaled(MAP, 1 + 1e-9))),
    "angles-norm": swap((chapter1, "C_SIGMA", 1.0)),
    "angles-finite-width": swap((angles, "angle_map", scaled(MAP, 1.01))),
    "angles-range": swap((angles, "angle_map", lambda z: z / 2 + 1e-9)),
    "angles-increasing": swap((angles, "angle_map", lambda z: (z * (math.pi - z)) / 4)),
    "angles-below-identity": swap((angles, "angle_deficit", lambda z: z - clumsy_map(z))),
    "angles-near-identity": swap((angles, "angle_deficit", scaled(DEFICIT, 1 + 1e-9))),
    "angles-series": swap((chapter1, "exact", lambda z: z - z**2 / (3 * math.pi))),
    "angles-flat-at-pi": swap((chapter1, "exact", lambda z: z / 2)),
    "angles-collapse": swap((angles, "angle_map", lambda z: 0.9999 * z.clamp(max=1.0))),
    "angles-leaky": swap((angles, "angle_map", lambda z, a: MAP(z, 0.5 * a))),
    "angles-float32": swap((angles, "angle_between", lambda x, y: (x @ y).arccos())),
} | beside_chapters("SABOTAGE")


def test_every_claim_has_a_sabotage():
    assert set(SABOTAGE) == set(CLAIMS)


@pytest.mark.parametrize("id", SABOTAGE)
def test_a_check_notices_a_falsehood(id, monkeypatch):
    for module, name, wrong in SABOTAGE[id]:
        monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError, match=r"\d"):        # with figures
        CLAIMS[id]()


def test_a_wrong_constant_in_g_fails_the_claims(monkeypatch):
    """pi -> 3.1416 in the printed formula: what a typing error would do."""
    def typo(z, slope=0.0):
        return (((3.1416 - z) * z.cos() + z.sin()) / 3.1416).clamp(-1, 1).arccos()
    monkeypatch.setattr(angles, "angle_map", typo)
    failed = set()
    for id, c in CLAIMS.items():
        try:
            c()
        except AssertionError:
            failed.add(id)
    assert {"angles-layer-limit", "angles-range", "angles-increasing", "angles-leaky"} <= failed


def test_a_claim_names_its_page_its_derivation_and_itself():
    for id, c in CLAIMS.items():
        assert (CHAPTERS / f"{c.page}.ipynb").exists(), f"{id}: no page {c.page}"
        assert id.startswith(f"{c.chapter.name}-"), id
        module, _, name = c.derivation.rpartition(".")
        assert callable(getattr(import_module(f"ntklib.{module}"), name)), f"{id}: no ntklib.{c.derivation}"
        assert c.check.__doc__, f"{id}: say how it is checked"
        seeded = "SEED" in inspect.getsource(c.check)
        assert (c.seed is not None) == seeded, f"{id}: the seed is not what the check uses"


def test_the_chapter_shows_its_claims_and_links_to_the_ledger_exist():
    for c in CLAIMS.values():
        source = (CHAPTERS / f"{c.page}.ipynb").read_text().replace('\\"', '"')
        assert f'claims.table("{c.chapter.name}")' in source
    assert "claims.ledger()" in (CHAPTERS / "ledger.ipynb").read_text()
    assert "claims.errata()" in (CHAPTERS / "errata.ipynb").read_text()


# ---- the registry --------------------------------------------------------------------------------------
def made(error, **about):
    return claim("test-x", of=TEST, verdict="verified", **ABOUT | about)(lambda: error)


def test_a_claim_returns_its_error_or_raises_with_figures():
    assert made(0.05)() == 0.05
    assert made(torch.tensor(0.05))() == pytest.approx(0.05)
    with pytest.raises(AssertionError, match=r"test-x: the error is 0\.2, and 0\.1 is allowed"):
        made(0.2)()
    with pytest.raises(AssertionError, match="nan"):
        made(math.nan)()


def test_a_claim_is_measured_once_a_session():
    runs = []
    c = claim("test-x", of=TEST, verdict="verified", **ABOUT)(lambda: runs.append(1) or 0.0)
    assert c.measured == c.measured == 0.0
    assert len(runs) == 1


@pytest.mark.parametrize(("verdict", "about", "says"), [
    ("true", {}, "must be one of proved"), ("corrected", {}, "give the discrepancy"),
    ("refuted", {}, "give the discrepancy"), ("holds under", {}, "state them")])
def test_a_claim_that_says_too_little_is_refused(verdict, about, says):
    with pytest.raises(ValueError, match=says):
        claim("test-x", of=TEST, verdict=verdict, **ABOUT | about)(lambda: 0.0)


def test_an_unknown_chapter_is_refused_with_the_nearest():
    with pytest.raises(KeyError, match="did you mean 'angles'"):
        claims.table("angels")


# ---- the tables ----------------------------------------------------------------------------------------
class Reader(html.parser.HTMLParser):
    """Checks that tags nest, and collects tables: captions, scopes, ids, links, text."""

    VOID = ("br", "img", "input", "hr", "meta", "link")

    def __init__(self, source):
        super().__init__()
        self.open, self.ids, self.links, self.scopes, self.tags, self.words = [], [], [], [], [], []
        self.feed(source)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        if tag not in self.VOID and tag != "mspace":
            self.open.append(tag)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if tag == "a" else []
        self.scopes += [attrs.get("scope")] if tag == "th" else []

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


def shown(table):
    return Reader(table._repr_html_())


TABLES = [claims.table("angles"), claims.ledger(), claims.errata()]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.kind)
def test_a_table_is_complete_and_accessible(table):
    seen, words = shown(table), repr(table)
    assert "caption" in seen.tags
    assert set(seen.scopes) == {"col", "row"}
    assert [i for i in seen.ids if i.startswith("claim-")] == [f"claim-{c.id}" for c in table.claims]
    assert len(set(seen.ids)) == len(seen.ids)
    for c in table.claims:
        assert c.id in words
        assert c.verdict in words
        assert c.verdict in "".join(seen.words)             # in words, not by a sign or a colour alone
    assert "<" not in words.replace(" < ", "")
    assert "$" not in words


def test_the_ledger_has_every_claim_and_the_errata_every_discrepancy():
    assert [c.id for c in claims.ledger().claims] == list(CLAIMS)
    assert [c.id for c in claims.errata().claims] == [i for i, c in CLAIMS.items() if c.discrepancy]
    words = "".join(shown(claims.ledger()).words)
    assert all(meaning in words for _, meaning in claims.VERDICTS.values())


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("folder", "page_link"), [("", "angles/01_angle_map"), ("angles", "01_angle_map")])
def test_links_lead_from_every_page_to_every_other(static, folder, page_link, monkeypatch, tmp_path):
    """A copy of the book elsewhere (JupyterLab on a copy, another checkout) links within itself."""
    for name in ("angles/01_angle_map", "ledger", "errata"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.ipynb").touch()
    monkeypatch.chdir(tmp_path / folder)
    monkeypatch.setenv("NTKLIB_STATIC", "1") if static else monkeypatch.delenv("NTKLIB_STATIC", raising=False)
    ending, up = (".html" if static else ".ipynb"), ("../" if folder else "")
    assert f"{up}ledger{ending}#claim-angles-range" in shown(claims.table("angles")).links
    ledger = [link for link in shown(claims.ledger()).links if not link.startswith("https://")]
    assert f"{page_link}{ending}#claim-angles-range" in ledger
    assert f"{page_link}{ending}" in ledger                # the caption
    for link in ledger:
        target = link.partition("#")[0].replace(".html", ".ipynb")
        assert (Path.cwd() / target).resolve().is_relative_to(tmp_path)
        assert (Path.cwd() / target).exists(), link


def test_outside_the_book_there_are_no_broken_links(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert all(link.startswith("https://") for link in shown(claims.ledger()).links)


def test_a_slow_check_is_not_run_by_a_table():
    def minutes():
        raise RuntimeError("ran")
    c = claim("test-slow", of=TEST, verdict="verified", slow=True, **ABOUT)(minutes)
    assert "make bench" in page.Table("ledger", [c])._repr_html_()


def test_a_violated_claim_stops_the_page():
    c = claim("test-x", of=TEST, verdict="verified", **ABOUT)(lambda: 1.0)
    with pytest.raises(AssertionError, match=r"1, and 0\.1 is allowed"):
        page.Table("claims", [c])._repr_html_()


def test_texts_are_escaped():
    c = claim("test-x", of=TEST, verdict="corrected", discrepancy=Discrepancy("<b>a</b>", "b & c", "$a<b$"),
              **ABOUT | {"statement": "<script>1</script> $a<b$", "source": Source("A & B", "<i>")})(float)
    for kind in page.KINDS:
        source = page.Table(kind, [c])._repr_html_()
        Reader(source)
        assert "<script>" not in source
        assert "<b>a" not in source


@pytest.mark.parametrize(("x", "words"), [(0.0, "0"), (0.0209, "0.0209"), (1.1, "1.1"),
                                          (3e-16, "3·10<sup>−16</sup>"), (1e-12, "10<sup>−12</sup>")])
def test_figures_are_short(x, words):
    assert page._power(x) == words
