"""Matching collectives with buckets."""

from wirebound.record.buckets import assign
from wirebound.record.models import Model, Slot
from wirebound.record.steps import Backward, Collective, Launch, Step

NUMELS = (4, 2, 3)


def model(index: int = 0) -> Model:
    """Three parameters in one bucket at first."""
    slots = [
        Slot(f"p{at}", 4 * numel, numel, "float32", index, at) for at, numel in enumerate(NUMELS)
    ]
    return Model(index, slots, ((0, 1, 2),), {})


def step(*numels: int, hint: int = 0) -> Step:
    """One backward pass with all-reduces of these sizes."""
    made = Step(0, 0)
    made.backwards.append(Backward(0, 9, range(0), communicated=True))
    made.collectives = [
        Collective("all_reduce", 4 * numel, numel, "float32", "0", 0, hint, 1) for numel in numels
    ]
    return made


def test_first_buckets() -> None:
    """Before DDP has rebuilt them."""
    made = step(9)
    assert assign(made, [model()]) == {(0, 0, 0): 0, (0, 0, 1): 0, (0, 0, 2): 0}
    assert [(one.model, one.bucket) for one in made.collectives] == [(0, 0)]


def test_rebuilt_buckets() -> None:
    """As DDP logs them."""
    known = model()
    known.learn("2 1, 0")
    assert assign(step(5, 4), [known]) == {(0, 0, 2): 0, (0, 0, 1): 0, (0, 0, 0): 1}


def test_foreign_collectives_in_between_are_left_alone() -> None:
    """Such as those of a synchronised normalisation."""
    known = model()
    known.learn("2 1, 0")
    made = step(5, 1, 4)
    assign(made, [known])
    assert [one.bucket for one in made.collectives] == [0, None, 1]


def test_what_does_not_match_whole_gets_no_bucket() -> None:
    """Rather none than a wrong one."""
    made = step(5)
    assert assign(made, [model()]) == {}
    assert [one.bucket for one in made.collectives] == [None]


def test_collectives_behind_another_models_gradient_are_not_mine() -> None:
    """Two models of one shape."""
    made = step(9, hint=1)
    assert assign(made, [model(0), model(1)]) == {(0, 1, at): 0 for at in range(3)}
    assert [one.model for one in made.collectives] == [1]


def test_launches_of_a_users_hook_decide() -> None:
    """What it sends has another size."""
    made = step()
    made.launches.append(Launch(0, 0, 9, 0))
    assert assign(made, [model()]) == {(0, 0, at): 0 for at in range(3)}


def test_log_that_makes_no_sense_is_not_believed() -> None:
    """A position that no parameter has."""
    known = model()
    known.learn("7, 0")
    assert known.rebuilt is None
