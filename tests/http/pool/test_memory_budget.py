"""Who gives way to whom when models share memory."""

from dataclasses import dataclass

from lmwire_http.pool.memory_budget import Room


@dataclass(eq=False)
class Model:
    last_used: float
    idle: bool = True


def room_with(budget: int | None, *tenants: tuple[Model, int]) -> Room[Model]:
    room = Room[Model](budget)
    for tenant, need in tenants:
        assert room.take(tenant, need) == []
    return room


def test_what_fits_beside_the_others_moves_nobody() -> None:
    room = room_with(10, (old := Model(1), 4))
    assert room.take(new := Model(2), 6) == []
    assert room.tenants == [old, new]


def test_the_one_that_was_not_used_for_longest_gives_way_first_and_no_more_than_needed_do() -> None:
    room = room_with(10, (newer := Model(2), 3), (oldest := Model(1), 3), (Model(3), 3))
    assert room.take(Model(4), 4) == [oldest]
    assert room.take(Model(5), 3) is not None
    assert newer in room.tenants


def test_what_is_in_use_stays() -> None:
    room = room_with(10, (Model(1, idle=False), 4), (idle := Model(2), 4))
    assert room.take(Model(3), 6) == [idle]


def test_nobody_goes_where_that_would_not_be_enough() -> None:
    busy, idle = Model(1, idle=False), Model(2)
    room = room_with(10, (busy, 6), (idle, 4))
    assert room.take(Model(3), 6) is None
    assert room.tenants == [busy, idle]


def test_room_that_is_promised_is_not_given_to_another_while_its_tenants_still_leave() -> None:
    room = room_with(10, (leaving := Model(1), 10))
    assert room.take(Model(2, idle=False), 10) == [leaving]
    leaving.idle = False  # it is ending
    assert room.take(Model(3), 10) is None
    room.leave(leaving)
    assert room.take(Model(3), 10) is None


def test_a_worker_is_left_what_the_others_have_not() -> None:
    room = room_with(10, (a := Model(1), 3), (b := Model(2), 4))
    assert (room.left_to(a), room.left_to(b)) == (6, 7)
    room.measured(a, 5)
    assert room.left_to(b) == 5
    room.measured(a, 12)
    assert room.left_to(b) == 1
    assert Room[Model](None).left_to(a) is None


def test_a_crowded_machine_needs_one_to_go_whatever_the_figures_say() -> None:
    for budget in (100, None):
        room = room_with(budget, (older := Model(1), 1), (newer := Model(2), 1))
        assert room.take(Model(3, idle=False), 1, crowded=True) == [older]
        older.idle = newer.idle = False
        assert room.take(Model(4, idle=False), 1, crowded=True) is None


def test_without_a_budget_everything_fits_until_a_worker_says_otherwise() -> None:
    room = room_with(None, (Model(1), 10**15))
    assert room.take(Model(2), 10**15) == []
    assert room.surplus() == []


def test_who_would_leave_can_be_asked_without_taking_anything() -> None:
    room = room_with(10, (old := Model(1), 10))
    assert room.leaving(4) == room.leaving(4) == [old]
    assert room.tenants == [old]


def test_those_that_others_have_outgrown_go_the_oldest_first() -> None:
    room = room_with(10, (old := Model(1), 2), (new := Model(2), 2), (busy := Model(0, idle=False), 2))
    assert room.surplus() == []
    room.measured(busy, 7)
    assert room.surplus() == [old]
    room.measured(busy, 20)
    assert room.surplus() == [old, new]


def test_the_last_one_stays_whatever_it_has() -> None:
    room = room_with(10, (old := Model(1), 5), (new := Model(2), 5))
    room.measured(new, 11)
    assert room.surplus() == [old]
    room.leave(old)
    assert room.surplus() == []
