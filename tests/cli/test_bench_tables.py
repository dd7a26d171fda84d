"""scripts/bench-tables: docs/performance.md shows what bench/measured has."""

import pathlib
import shutil
import subprocess
import sys

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def tables(*arguments):
    return subprocess.run([sys.executable, CHECKOUT / "scripts/bench-tables", *map(str, arguments)],
                          capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """The page and the measurements, to be changed."""
    page, measured = tmp_path / "performance.md", tmp_path / "measured"
    shutil.copy(CHECKOUT / "docs/performance.md", page)
    shutil.copytree(CHECKOUT / "bench/measured", measured)
    return page, measured


def check(page, measured):
    return tables("--check", "--page", page, "--measured", measured)


def replace(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))


def test_page_is_as_measured():
    done = tables("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_edited_figure_is_named(copy):
    page, measured = copy
    before = page.read_text()
    replace(page, "| 45.8 (44.2 - 46.6) |", "| 15.8 (44.2 - 46.6) |")
    done = check(*copy)
    assert done.returncode == 1
    assert "-| products 16 | 15.8" in done.stderr and "+| products 16 | 45.8" in done.stderr
    assert tables("--page", page, "--measured", measured).returncode == 0
    assert page.read_text() == before


def test_lost_measurement_is_named(copy):
    page, measured = copy
    file = measured / "link-4.json"
    first, *rest = file.read_text().splitlines(keepends=True)
    file.write_text("".join(rest))
    for done in (check(*copy), tables("--page", page, "--measured", measured)):
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
        assert 'table link: no link {"gpus": 4, "block_mib": 4, "way": "ring"}' in done.stderr
    file.write_text(first.replace('"median_gb_s"', '"median"') + "".join(rest))
    assert "no median_gb_s of link" in check(*copy).stderr


def test_ratios_and_means_follow(copy):
    page, measured = copy
    replace(measured / "spmm.json", '"median_ms": 13.0', '"median_ms": 26.0')
    assert tables("--page", page, "--measured", measured).returncode == 0
    assert "| 26.0 (12.5 - 14.4) | 3.13 |" in page.read_text()
    assert "The geometric mean is 3.20." in page.read_text()


def test_lost_marker_is_named(copy):
    replace(copy[0], "<!-- table width -->", "<!-- table height -->")
    done = check(*copy)
    assert done.returncode == 1
    assert "no table 'height'" in done.stderr and "place for table 'width'" in done.stderr
