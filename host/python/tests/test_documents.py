"""What the documents show is so."""

import doctest
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["hotcell.tools", "hotcell.host", "hotcell.agent"])
def test_examples_in_docstrings(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted and not done.failed


def test_examples_in_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted and not done.failed
