"""How exercises look: complete HTML, which static/exercise.js brings to life on a page and in JupyterLab."""
import html
import json
from pathlib import Path
from weakref import WeakSet

import anywidget
import traitlets

from ntklib.book import text
from ntklib.book.exercises.kinds import LETTERS, Choice, Exercise, Function, Multiple, Number

STATIC = Path(__file__).parent.parent / "static"
_shown: WeakSet = WeakSet()


class ExerciseWidget(anywidget.AnyWidget):
    """One exercise, or the line that counts them. The page marks answers by `spec`, without the kernel."""

    _esm, _css = STATIC / "exercise.js", STATIC / "exercise.css"
    html = traitlets.Unicode().tag(sync=True)
    spec = traitlets.Dict().tag(sync=True)
    solved = traitlets.Bool(False).tag(sync=True)       # set by `check`, for what only Python can mark

    def __init__(self, spec: dict, html: str, words: str):
        super().__init__(spec=spec, html=html)
        self._words = words
        _shown.add(self)

    def __repr__(self):
        return self._words

    def _repr_mimebundle_(self, **kw):
        bundle = super()._repr_mimebundle_(**kw)
        data, *metadata = bundle if isinstance(bundle, tuple) else (bundle,)
        data = {**(data or {}), "text/plain": self._words, "text/html": self.html}
        return (data, *metadata) if metadata else data


def tell(id: str, correct: bool) -> None:
    """Let the widgets of an exercise know that `check` found it solved."""
    for w in _shown:
        if correct and w.spec["id"] == id:
            w.solved = True


def widget(e: Exercise) -> ExerciseWidget:
    """The widget of an exercise."""
    spec, title = e.spec(), heading(e)
    body = [
        f'<div class="task-head"><h3 class="task-title">{html.escape(title)}</h3>'
        f'<span class="task-level">difficulty {e.difficulty} of 3</span>'
        '<span class="task-mark" data-mark>not solved yet</span></div>',
        f'<div class="task-question">{text.html(e.question)}</div>',
        f'<form class="task-form" autocomplete="off" novalidate>{_form(e)}</form>',
        '<div class="task-feedback" role="status" data-feedback></div>',
        f'<details class="task-fold"><summary>Hint 1</summary>{text.html(e.hints[0])}'
        f'<details class="task-fold"><summary>Hint 2</summary>{text.html(e.hints[1])}</details></details>',
        f'<details class="task-fold"><summary>Solution</summary>{text.html(e.solution)}</details>',
    ]
    return ExerciseWidget(spec, _section("exercise", e.id, title, spec, "".join(body)), _plain(e))


def progress(chapter: str, ids: list[str]) -> ExerciseWidget:
    """The line that counts what is solved, with its reset button."""
    spec = {"id": f"{chapter}.progress", "kind": "progress", "ids": ids}
    body = (f'<p class="task-count"><strong data-count>0 of {len(ids)}</strong> solved on this page</p>'
            f'<progress max="{len(ids)}" value="0" aria-label="solved exercises"></progress>'
            '<button type="button" data-clear disabled>Clear my answers</button>'
            '<span role="status" data-said></span>')
    words = f"{len(ids)} exercises: {', '.join(ids)}"
    return ExerciseWidget(spec, _section("exercise-progress", spec["id"], "Progress", spec, body), words)


def heading(e: Exercise) -> str:
    """"Exercise 3: How little one layer takes"."""
    return f"Exercise {e.id.partition('.ex')[2]}: {e.title}"


def _section(kind: str, id: str, label: str, spec: dict, body: str) -> str:
    data = json.dumps({"spec": spec}, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    anchor = f"ex-{id.replace('.', '-')}"
    return (f'<section class="{kind}" id="{anchor}" data-ntk="exercise.js" aria-label="{html.escape(label)}">'
            f'<script type="application/json">{data}</script>{body}</section>')


def _form(e: Exercise) -> str:
    check = ('<button type="submit" disabled>Check</button>'
             "<noscript><p>Checking needs JavaScript; the hints and the solution do not.</p></noscript>")
    match e:
        case Number():
            unit = f" in {e.unit}" if e.unit else ""
            return (f'<label>Your answer{html.escape(unit)} <input name="answer" type="text" size="12" '
                    f'spellcheck="false" autocapitalize="off"></label>{check}')
        case Choice() | Multiple():
            box, legend = (("radio", "Choose one answer") if isinstance(e, Choice)
                           else ("checkbox", "Tick every true statement"))
            boxes = "".join(f'<label class="task-option"><input type="{box}" name="answer" value="{i}">'
                            f"<span><b>{LETTERS[i]}.</b> {text.inline(o.text)}</span></label>"
                            for i, o in enumerate(e.options))
            return f"<fieldset><legend>{legend}</legend>{boxes}</fieldset>{check}"
        case Function():
            return ("<p>Python marks this one, in the notebook of this page (download it, or run "
                    "<code>make lab</code>): write the function there and run</p>"
                    f"<pre><code>{html.escape(e.starter())}</code></pre>"
                    '<button type="button" data-claim aria-pressed="false" disabled>'
                    "I solved it in the notebook</button>")


def _plain(e: Exercise) -> str:
    """The exercise for a terminal."""
    options = [f"{LETTERS[i]}. {text.plain(o.text)}" for i, o in enumerate(getattr(e, "options", ()))]
    how = e.starter() if isinstance(e, Function) else f'check("{e.id}", answer)'
    return "\n".join([heading(e), text.plain(e.question), *options, how])
