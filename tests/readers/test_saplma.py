from dualread.readers import saplma
from dualread.readers._network import probe_log_odds
from dualread.readers.calibration.temperature import fit_temperature
from tests.readers import synthetic


def test_the_network_has_the_papers_widths_and_reads_the_middle_layer():
    examples = synthetic.examples()
    weights = saplma.fit(
        examples, saplma.Settings(**{**synthetic.PSR, "hidden": [256, 128, 64], "max_epochs": 1}), {}, 17
    )
    shapes = [weights.tensors[f"weight_{layer}"].shape for layer in range(4)]
    assert shapes == [(256, synthetic.D), (128, 256), (64, 128), (1, 64)]
    states = examples.partition("fit").answers.features("h_mid").astype(float)
    assert abs(weights.tensors["mean"] - states.mean(axis=0)).max() < 1e-12
    found = saplma.score(synthetic.reader("readers.saplma", weights), examples.answers).score
    assert (found == probe_log_odds(weights.tensors, examples.answers.features("h_mid"))).all()


def test_the_temperature_is_fitted_on_calibration_and_nothing_else_is():
    examples = synthetic.examples()
    partitions = {role: examples.partition(role) for role in ("fit", "stop", "calibration")}
    settings = saplma.Settings(**{**synthetic.PSR, "max_epochs": 2})
    weights = saplma.fit(examples, settings, {}, 17)
    values = {
        role: fit_temperature(probe_log_odds(weights.tensors, of.answers.features("h_mid")), of.correct).value
        for role, of in partitions.items()
    }
    assert [role for role, value in values.items() if value == weights.notes["temperature"]] == ["calibration"]
