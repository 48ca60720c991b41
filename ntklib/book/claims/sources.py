"""The sources that more than one chapter cites; `.at(where)` names the place in them."""
from ntklib.book.claims import Source

LIU = Source("Liu, Bi, Hui and Liu 2025", "", "arXiv 2305.08813v2", "https://arxiv.org/abs/2305.08813v2")
LIU_REPLY = Source("Reply to the reviewers of Liu et al.", "", "ICLR 2024 submission 4073")
CHEN = Source("Chen and Ge 2024", "", "arXiv 2305.15912v5", "https://arxiv.org/abs/2305.15912v5")
CHEN_REPLY = Source("Chen and Ge 2024", "answers to the reviewers", "OpenReview 7HFQfRjdcn",
                    "https://openreview.net/forum?id=7HFQfRjdcn")
CHEN_CODE = Source("Chen and Ge 2024", "released code", "commit 8b7b3c8",
                   "https://github.com/Wenlin-Chen/geometric-parameterization")
BOOK = Source("This book", "not in the papers")
