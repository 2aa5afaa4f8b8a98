"""The choice of models to unload when models share memory."""

from dataclasses import dataclass

from lmwire_http.pool.memory_budget import MemoryBudget


@dataclass(eq=False)
class Model:
    last_used: float
    is_idle: bool = True
    is_unloading: bool = False

    def unload(self) -> None:
        self.is_idle, self.is_unloading = False, True


def budget_with(limit: int | None, *holders: tuple[Model, int]) -> MemoryBudget[Model]:
    budget = MemoryBudget[Model](limit)
    for holder, need in holders:
        assert budget.reserve(holder, need) == []
    return budget


def test_a_model_that_fits_unloads_no_other() -> None:
    budget = budget_with(10, (old := Model(1), 4))
    assert budget.reserve(new := Model(2), 6) == []
    assert budget.holders == [old, new]


def test_the_least_recently_used_models_are_unloaded_first() -> None:
    budget = budget_with(10, (newer := Model(2), 3), (oldest := Model(1), 3), (Model(3), 3))
    assert budget.reserve(Model(4), 4) == [oldest]
    assert budget.reserve(Model(5), 3) is not None
    assert newer in budget.holders


def test_a_model_in_use_is_not_unloaded() -> None:
    budget = budget_with(10, (Model(1, is_idle=False), 4), (idle := Model(2), 4))
    assert budget.reserve(Model(3), 6) == [idle]


def test_no_model_is_unloaded_if_that_would_not_free_enough() -> None:
    busy, idle = Model(1, is_idle=False), Model(2)
    budget = budget_with(10, (busy, 6), (idle, 4))
    assert budget.reserve(Model(3), 6) is None
    assert budget.holders == [busy, idle]


def test_memory_that_is_reserved_is_not_given_to_another_while_its_holders_still_exit() -> None:
    budget = budget_with(10, (leaving := Model(1), 10))
    assert budget.reserve(Model(2, is_idle=False), 10) == [leaving]
    leaving.unload()
    assert budget.reserve(Model(3), 10) is None
    budget.release(leaving)
    assert budget.reserve(Model(3), 10) is None


def test_a_worker_gets_the_memory_that_the_others_do_not_use() -> None:
    budget = budget_with(10, (a := Model(1), 3), (b := Model(2), 4))
    assert (budget.available_to(a), budget.available_to(b)) == (6, 7)
    budget.set_measured(a, 5)
    assert budget.available_to(b) == 5
    budget.set_measured(a, 12)
    assert budget.available_to(b) == 1
    assert MemoryBudget[Model](None).available_to(a) is None


def test_if_a_worker_finds_no_memory_a_model_is_unloaded_in_spite_of_the_budget() -> None:
    for limit in (100, None):
        budget = budget_with(limit, (older := Model(1), 1), (newer := Model(2), 1))
        assert budget.reserve(Model(3, is_idle=False), 1, crowded=True) == [older]
        older.is_idle = newer.is_idle = False
        assert budget.reserve(Model(4, is_idle=False), 1, crowded=True) is None


def test_without_a_budget_everything_fits_until_a_worker_says_otherwise() -> None:
    budget = budget_with(None, (Model(1), 10**15))
    assert budget.reserve(Model(2), 10**15) == []
    assert budget.surplus() == []


def test_evictable_models_are_listed_without_a_reservation() -> None:
    budget = budget_with(10, (old := Model(1), 10))
    assert budget.evictable(4) == budget.evictable(4) == [old]
    assert budget.holders == [old]


def test_if_models_outgrow_the_budget_the_oldest_are_surplus() -> None:
    budget = budget_with(10, (old := Model(1), 2), (new := Model(2), 2), (busy := Model(0, is_idle=False), 2))
    assert budget.surplus() == []
    budget.set_measured(busy, 7)
    assert budget.surplus() == [old]
    budget.set_measured(busy, 20)
    assert budget.surplus() == [old, new]


def test_the_last_model_stays_in_memory_above_the_budget() -> None:
    budget = budget_with(10, (old := Model(1), 5), (new := Model(2), 5))
    budget.set_measured(new, 11)
    assert budget.surplus() == [old]
    budget.release(old)
    assert budget.surplus() == []


def test_an_idle_model_stays_if_one_that_is_being_unloaded_frees_enough() -> None:
    budget = budget_with(10, (idle := Model(1), 3), (leaving := Model(2), 5))
    leaving.unload()
    assert budget.evictable(5) == [leaving], "the newcomer waits for its exit"
    assert budget.evictable(8) == [leaving, idle]
    assert budget.evictable(2) == [], "the newcomer need not wait for it"
    budget.set_measured(idle, 6)
    assert budget.surplus() == [leaving]


def test_the_last_model_stays_while_another_is_being_unloaded() -> None:
    budget = budget_with(10, (Model(1), 5), (leaving := Model(2), 5))
    leaving.unload()
    budget.set_measured(leaving, 20)
    assert budget.surplus() == [leaving]


def test_a_shortage_unloads_as_many_idle_models_as_needed() -> None:
    budget = budget_with(100, (old := Model(1), 3), (new := Model(2), 3), (Model(0, is_idle=False), 3))
    assert budget.evictable(1, shortage=3) == [old]
    assert budget.evictable(1, shortage=4) == [old, new]
    assert budget.evictable(1, shortage=50) == [old, new]
