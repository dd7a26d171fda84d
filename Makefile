# On a fresh machine: make demo, make test. The rest is for people who work on Plait (CONTRIBUTING.md).
.PHONY: all demo test test-deep bench format check clean

all:
	scripts/build release

demo:
	scripts/build program
	scripts/demo

test:
	scripts/test

test-deep:
	scripts/test-deep

bench: all
	scripts/bench

format:
	scripts/format

check:
	scripts/setup test
	scripts/check
	scripts/tidy

clean:
	rm -rf build
