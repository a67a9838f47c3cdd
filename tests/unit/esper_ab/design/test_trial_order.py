from esper_ab.design.trial_order import draw_order


def test_every_four_trial_blocks_start_twice_with_each_arm():
    arms, order = draw_order(40, ("new", "old"), 7)
    blocks = [order[start : start + 2] for start in range(0, 80, 2)]
    assert set(arms) == {"new", "old"}
    assert set(blocks) == {"AB", "BA"}
    assert all(blocks[start : start + 4].count("AB") == 2 for start in range(0, 40, 4))


def test_the_trial_order_is_determined_by_its_seed():
    drawn_orders = {draw_order(20, ("new", "old"), seed) for seed in range(50)}
    assert draw_order(4, ("new", "old"), 3) == (("new", "old"), "ABBAABBA")
    assert len(drawn_orders) > 45
    assert {arms for arms, _ in drawn_orders} == {("new", "old"), ("old", "new")}


def test_an_odd_number_of_replicates_can_be_ordered():
    _, order = draw_order(7, ("new", "old"), 1)
    assert len(order) == 14
    assert order.count("A") == 7
