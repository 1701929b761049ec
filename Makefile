# What a newcomer and CI run. `make` alone lists the targets.
.PHONY: help install turn test mutants record life bench encoder clean

Q ?= And how much does the Lenovo LOQ 15 cost?
override Q := $(value Q)
export Q

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := demo/panda-system-docs

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

help:
	@echo 'make turn           go on with the demo store with a follow-up question, on a copy in demo/'
	@echo 'make turn Q="..."   answer another question'
	@echo 'make test           lint, types and tests: what CI runs'
	@echo 'make mutants FILE=panda/pipeline.py    break a file in small ways; which changes does no test notice? COUNT=10 SEED=1'
	@echo 'make life           ask ordinary questions; which answers are right, against floors; FILES="A.json" asks others'
	@echo 'make bench          all measurements, against floors; DATA=DIR adds saved dialogues'
	@echo 'make install        only set up $(VENV)'
	@echo 'make record         record the turns anew that the tests replay; refused if an answer is wrong'
	@echo 'make encoder        make the packaged encoder anew from its original weights: the same bytes'
	@echo 'make clean          remove $(VENV) and demo/'

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or later is needed, and none was found" >&2; \
		echo "fix: install it, or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Python 3.11 or later is needed; $(PYTHON) is $$("$(PYTHON)" -V 2>&1)" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV) || { echo "error: $(PYTHON) cannot make a virtual environment" >&2; \
		echo "fix: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "Installing into $(VENV); the first time this compiles llama.cpp, which takes some minutes." >&2
	@env -u MAKEFLAGS -u MAKELEVEL $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m compileall -q panda
	@touch $@

turn: $(STAMP)
	@rm -rf demo && mkdir demo
	@$(BIN)/panda init --demo --quiet --root $(DEMO)
	@$(BIN)/panda turn --root $(DEMO) --user demo --continue -- "$$Q"

test: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

mutants: $(STAMP)
	@$(BIN)/python -m tests.mutants $(FILE) --count $(or $(COUNT),10) --seed $(or $(SEED),1)

record: $(STAMP)
	$(BIN)/python -m tests.record_replays

encoder: $(STAMP)
	@$(BIN)/python encoder/convert.py

life: $(STAMP)
	@$(BIN)/python -m bench.life $(FILES)

bench: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check rank_bm25==0.2.2
	@$(BIN)/python bench/rebuilding.py
	@$(BIN)/python bench/synthesis.py
	@$(BIN)/python -m bench.turns
	@$(BIN)/python -m bench.tracing
	@$(BIN)/python -m bench.structure
	@$(BIN)/python -m bench.verdicts
	@$(BIN)/python -m bench.updates
	@$(BIN)/python -m bench.compression
	@$(BIN)/python bench/gathering.py --pairs bench/relevance_pairs.jsonl
	@test -z "$(DATA)" || { for part in importing recall gathering answers; do \
		$(BIN)/python bench/$$part.py "$(DATA)" || exit; done; }
	@$(BIN)/python -m bench.small_model
	@$(BIN)/python -m bench.evals
	@$(BIN)/python -m bench.life

clean:
	rm -rf $(VENV) demo
