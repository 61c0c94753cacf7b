from accel_doctor.evidence import Unit, WrapPlan
from accel_doctor.reports.layout import Page
from accel_doctor.reports.plan import plan_lines

GIB = 2**30


def unit(name: str, kind: str, parameters: int) -> Unit:
    return Unit(name=name, class_name=kind, parameters=parameters, gathered_bytes=2 * parameters)


def plan(*units: Unit, error: str = "") -> WrapPlan:
    return WrapPlan(
        model="train.py:build",
        model_class="Llama",
        built_on="meta",
        fsdp_version=2,
        policy="TRANSFORMER_BASED_WRAP",
        state_dict_type="SHARDED_STATE_DICT",
        ranks=8,
        units=units,
        unit_count=len(units),
        total_parameters=sum(u.parameters for u in units),
        stored_bytes=4 * sum(u.parameters for u in units),
        error=error,
    )


def shown(made: WrapPlan, *, width: int = 100, verbose: bool = False) -> list[str]:
    page = Page(width, color=False)
    plan_lines(page, made, verbose=verbose)
    return str(page).splitlines()


LAYERS = [unit(f"model.layers.{i}", "Block", 40_000_000) for i in range(24)]


def test_alike_units_are_one_row_with_what_each_gathers() -> None:
    assert shown(plan(unit("", "Llama", 260_000_000), *LAYERS)) == [
        "plan    Llama (train.py:build), FSDP2, TRANSFORMER_BASED_WRAP, FULL_SHARD, 8 ranks: 25 units of 1.22",
        "        B parameters; at most 572 MiB gathered at once",
        "        (the model itself)  Llama  260 M parameters, 496 MiB gathered",
        "              model.layers.0-23  24 x Block  40 M parameters, 76.3 MiB gathered each",
    ]


def test_units_of_another_size_or_class_are_a_row_of_their_own() -> None:
    odd = [unit("model.layers.24", "Block", 50_000_000), unit("model.layers.25", "Head", 40_000_000)]
    rows = [row.split("  ")[-3:] for row in shown(plan(*LAYERS, *odd))[2:]]
    assert [row[0].strip() for row in rows] == ["model.layers.0-23", "model.layers.24", "model.layers.25"]


def test_units_that_are_missing_in_between_are_seen() -> None:
    assert "model.layers.0-3,6-23" in shown(plan(*(u for u in LAYERS if u.name[-2:] not in (".4", ".5"))))[-1]


def test_names_that_differ_in_two_numbers_are_not_run_together() -> None:
    experts = [unit(f"layers.{i}.experts.{j}", "Expert", 5) for i in range(2) for j in range(2)]
    assert "layers.0.experts.0 …  4 x Expert" in shown(plan(*experts))[-1]


def test_many_kinds_are_cut_and_all_there_with_verbose() -> None:
    kinds = [unit(f"part{chr(97 + i)}", f"Kind{i}", i + 1) for i in range(20)]
    assert shown(plan(*kinds), width=200)[-1].strip() == "and 8 kinds more (-v)"
    assert len(shown(plan(*kinds), width=200, verbose=True)) == 21


def test_what_the_model_raises_takes_the_place_of_units() -> None:
    text = " ".join(" ".join(shown(plan(error="ValueError: no such class"))).split())
    assert text.endswith("8 ranks: ValueError: no such class")
