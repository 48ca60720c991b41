"""What the README shows of the library is what the library gives."""
import doctest
from pathlib import Path


def test_the_readmes_session_runs():
    result = doctest.testfile(str(Path(__file__).parents[1] / "README.md"), module_relative=False)
    assert result.attempted >= 5
    assert result.failed == 0
