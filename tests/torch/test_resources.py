# SPDX-License-Identifier: BSD-3-Clause
"""Groups come and go and leave nothing."""

import pytest
import ranks
import resources

# After the first cycles, which make pools. Memory: the allocator's own, page by page.
SLACK = {"descriptors": 2, "threads": 0, "mappings": 12, "kilobytes": 3000}


def flat(seen: list[dict[str, int]]) -> None:
    first, last = seen[0], seen[-1]
    for what, slack in SLACK.items():
        assert last[what] <= first[what] + slack, (what, [each[what] for each in seen])


@pytest.mark.parametrize("size", [2, 3])
def test_groups_leave_nothing(size):
    for seen in ranks.team(size).run(resources.cycles, 40, 10):
        flat(seen)


@pytest.mark.full
def test_two_hundred_groups_leave_nothing():
    for seen in ranks.team(2).run(resources.cycles, 200, 20, seconds=300):
        flat(seen)


def test_no_keys_are_left():
    assert ranks.team(3).run(resources.keys_left) == [0, 0, 0]
