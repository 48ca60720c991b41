"""What only the book needs: explorables, figures, exercises, claims, and the Sphinx extension that puts them on a page."""

from ntklib.book import claims
from ntklib.book.exercises import check, exercise, progress

__all__ = ["check", "claims", "exercise", "progress"]
