# The Geometry of ReLU. Plain POSIX shell and GNU make 3.81, so that it runs on macOS as on Debian.
#   PYTHON=python3.12  picks the interpreter        PORT=8000  picks the port of `make book`
#   SERVE=0            builds without serving       ARGS="-k angles"  goes to pytest in `make test`

PYTHON  ?=
PORT    ?= 8000
SERVE   ?= 1
ARGS    ?=
WORKERS ?= 2
NBVAL   := --nbval --nbval-current-env --nbval-cell-timeout 60 --nbval-sanitize-with tests/nbval_sanitize.cfg
ROOT    := $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)
BIN     := .venv/bin
READY   := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help venv book test lab bench clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

venv: $(READY) ## create .venv with everything pinned in requirements.txt

book: $(READY) ## build the book into _build/html and serve it on this machine (SERVE=0 only builds)
	@echo "Building the book: minutes the first time, seconds when nothing has changed"
	@$(BIN)/jupyter-book build -W --keep-going -q .
	@echo "Built: _build/html (open _build/html/index.html, or copy the folder to any web server)"
	@[ "$(SERVE)" = 0 ] || $(BIN)/python ntklib/book/serve.py _build/html "$(PORT)"

test: $(READY) ## run every test: library, claims, notebooks, pages in a browser
	@$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist loadgroup $(NBVAL) tests ntklib chapters $(ARGS)

lab: $(READY) ## open the chapters in JupyterLab
	@$(BIN)/jupyter lab $(ROOT) --ServerApp.root_dir="$(CURDIR)/chapters"

bench: $(READY) ## run the slow checks, and time ntklib against its peers (minutes)
	@$(BIN)/python -m pytest -m slow $(ARGS)
	@$(BIN)/python -m benchmarks

clean: ## delete what was built, keep .venv
	rm -rf _build .hypothesis .ruff_cache .pytest_cache
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .venv -prune -o -name .ipynb_checkpoints -type d -prune -exec rm -rf {} +

distclean: clean ## delete .venv too
	rm -rf .venv ntklib.egg-info

# The first Python from 3.11 to 3.13 that can make virtual environments; one sentence where there is none.
define FIND_PYTHON
py=; why=; \
for p in $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 python); do \
  v=`"$$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null` || continue; \
  case $$v in \
    3.11|3.12|3.13) ;; \
    *) [ -n "$$why" ] || why="$$p is Python $$v"; continue;; \
  esac; \
  if "$$p" -c 'import ensurepip, venv' 2>/dev/null; then py=$$p; break; fi; \
  why="$$p (Python $$v) cannot make virtual environments: sudo apt install python$$v-venv"; \
done; \
if [ -z "$$py" ]; then \
  echo "make: this book needs Python 3.11, 3.12 or 3.13 with its venv module ($${why:-none found}). Debian, Ubuntu: sudo apt install python3-venv; macOS: brew install python@3.13; then run make again, or name one with PYTHON=/path/to/python3." >&2; \
  exit 1; \
fi
endef

# The stamp is made last: an interrupted install starts again where it stopped. JupyterLab's news pop-up is switched off.
$(READY): requirements.txt pyproject.toml
	@rm -f $@; $(FIND_PYTHON); \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  echo "Making .venv with $$py"; rm -rf .venv; "$$py" -m venv .venv || exit 1; \
	fi; \
	echo "Installing requirements.txt into .venv (about 1.5 GB and a few minutes, once)"; \
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt && \
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1 && touch $@
