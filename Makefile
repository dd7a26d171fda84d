# Two commands on a fresh machine: make demo, make test. The rest is for those who work on Plait.
.PHONY: all demo test bench format check clean

all:
	scripts/build release

demo: all
	scripts/demo

test:
	scripts/test

bench: all
	scripts/bench

format:
	scripts/format

check:
	scripts/check

clean:
	rm -rf build
