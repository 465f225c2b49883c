"""A streaming denoiser for tones in white noise: learned filters, a GRU that steers a mask, all state explicit.

One call takes a frame of 128 samples at 8 kHz, the GRU's state and the last 96 samples that came before, and returns
the cleaned frame and both states for the next call. No look-ahead: the delay is the frame itself.
"""

import numpy as np

from . import onnx_files as onnx_out
from . import tape

RATE = 8000
FRAME = 128
HOP = 32
WINDOW = 128
HISTORY = WINDOW - HOP
FILTERS = 64
HIDDEN = 64
FLOOR = 1e-3


def signals(random, count, samples):
    """(clean, noisy), each (count, samples): one to three tones that start, stop and swell; noise at -3 to 9 dB."""
    time = np.arange(samples) / RATE
    clean = np.zeros((count, samples))
    for _ in range(3):
        frequency = np.exp(random.uniform(np.log(150), np.log(3000), (count, 1)))
        phase = random.uniform(0, 2 * np.pi, (count, 1))
        swell = np.sin(2 * np.pi * random.uniform(0.5, 4, (count, 1)) * time + random.uniform(0, 2 * np.pi, (count, 1)))
        loudness = random.uniform(0.2, 1, (count, 1)) * np.clip(0.5 + 1.5 * swell, 0, 1)
        clean += loudness * (random.uniform(0, 1, (count, 1)) < 0.6) * np.sin(2 * np.pi * frequency * time + phase)
    power = (clean * clean).mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.maximum(power, 0.02) * 10 ** (-random.uniform(-3, 9, (count, 1)) / 10))
    return clean.astype(np.float32), (clean + deviation * random.normal(0, 1, clean.shape)).astype(np.float32)


def windows(history, samples):
    """Every window of the stream (count, HISTORY + samples), in order: (windows, count, WINDOW)."""
    stream = np.concatenate([history, samples], axis=1)
    steps = samples.shape[1] // HOP
    return np.stack([stream[:, t * HOP:t * HOP + WINDOW] for t in range(steps)])


class Network:
    """Parameters and the forward pass."""

    def __init__(self, random):
        # Pairs of cosine and sine under a window that rises towards the newest samples, which are the ones to clean.
        since = np.arange(WINDOW)[:, None] - (WINDOW - HOP)
        frequency = np.linspace(100, 3200, FILTERS // 2) / RATE
        rise = np.sin(np.pi / 2 * (np.arange(WINDOW)[:, None] + 0.5) / WINDOW) ** 2
        encoder = np.concatenate([wave(2 * np.pi * frequency * since) * rise for wave in (np.cos, np.sin)], axis=1)
        encoder *= 4 / WINDOW
        # The decoder starts as the ridge inverse of the encoder on the last HOP samples; the mask starts at one half.
        covariance = encoder.T @ encoder
        decoder = 2 * np.linalg.solve(covariance + 0.05 * covariance[0, 0] * np.eye(FILTERS), encoder[-HOP:].T)
        values = {
            "encoder.weight": encoder,
            "encoder.bias": np.zeros(FILTERS),
            "gru.input": random.normal(0, FILTERS**-0.5, (FILTERS, 3 * HIDDEN)),
            "gru.hidden": random.normal(0, HIDDEN**-0.5, (HIDDEN, 3 * HIDDEN)),
            "gru.input_bias": np.zeros(3 * HIDDEN),
            "gru.hidden_bias": np.zeros(3 * HIDDEN),
            "mask.weight": random.normal(0, HIDDEN**-0.5, (HIDDEN, FILTERS)),
            "mask.bias": np.zeros(FILTERS),
            "decoder.weight": decoder,
        }
        self.parameters = {k: tape.Tensor(v.astype(np.float32)) for k, v in values.items()}

    def run(self, frames, state):
        """frames (steps, count, WINDOW), state (count, HIDDEN): samples (steps, count, HOP) and the state after them."""
        p = self.parameters
        coefficients = tape.constant(frames) @ p["encoder.weight"] + p["encoder.bias"]
        energy = tape.log_energy(coefficients, FLOOR)
        # The gates are in ONNX's order: update, reset, new.
        projected = energy @ p["gru.input"] + p["gru.input_bias"]
        h = tape.constant(state)
        states = []
        for step in tape.unstack(projected):
            h = tape.gru_cell(step, h @ p["gru.hidden"] + p["gru.hidden_bias"], h)
            states.append(h)
        mask = tape.sigmoid(tape.stack(states) @ p["mask.weight"] + p["mask.bias"])
        return coefficients * mask @ p["decoder.weight"], h.value

    def frame64(self, frame, state, history):
        """One call of the model in float64: (frame, state, history)."""
        samples, after = tape.in_float64(self).run(windows(history, frame), state)
        return samples.value[:, 0].reshape(1, FRAME), after, np.concatenate([history, frame], axis=1)[:, -HISTORY:]


def quiet(count, width, dtype=np.float32):
    return np.zeros((count, width), dtype)


def signal_to_noise(clean, estimate):
    """Decibels over all streams together."""
    return 10 * np.log10((clean * clean).sum() / ((clean - estimate) ** 2).sum())


def gain(network):
    """(before, after) in dB on held-out streams of four seconds."""
    clean, noisy = signals(np.random.default_rng(31), 24, 4 * RATE)
    samples, _ = network.run(windows(quiet(24, HISTORY), noisy), quiet(24, HIDDEN))
    estimate = samples.value.transpose(1, 0, 2).reshape(clean.shape)
    return signal_to_noise(clean, noisy), signal_to_noise(clean, estimate)


def train(steps=800, count=24, samples=64 * HOP):
    """The trained network; prints the gain in signal-to-noise ratio on streams that it has not seen."""
    random = np.random.default_rng(30)
    network = Network(random)
    optimiser = tape.Adam(network.parameters, 5e-3, steps)
    for step in range(steps):
        clean, noisy = signals(random, count, samples)
        estimate, _ = network.run(windows(quiet(count, HISTORY), noisy), quiet(count, HIDDEN))
        target = clean.reshape(count, -1, HOP).transpose(1, 0, 2)
        loss = tape.mean_square(estimate + tape.constant(-target))
        tape.backward(loss)
        optimiser.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {float(loss.value):.4f}", flush=True)
    before, after = gain(network)
    print(f"  held-out signal-to-noise ratio {before:.1f} dB -> {after:.1f} dB, gain {after - before:.1f} dB")
    if after - before < 5:
        raise SystemExit("streaming_denoiser: training did not reach a gain of 5 dB")
    return network


def graph(network):
    """The network as ONNX: frame, h_in, cache_in -> clean, h_out, cache_out."""
    writer = onnx_out.GraphWriter("streaming_denoiser")
    weights = {name: p.value for name, p in network.parameters.items()}
    frame = writer.input("frame", np.float32, (1, 1, FRAME))
    state = writer.input("h_in", np.float32, (1, 1, HIDDEN))
    cache = writer.input("cache_in", np.float32, (1, 1, HISTORY))

    stream = writer.node("Concat", [cache, frame], "stream", axis=2)
    bounds = [writer.constant("cache." + name, np.array([value], np.int64))
              for name, value in (("from", FRAME), ("to", FRAME + HISTORY), ("axis", 2))]
    cache = writer.node("Slice", [stream] + bounds, "cache_out")
    coefficients = writer.node("Conv", [stream, writer.constant("encoder.weight", weights["encoder.weight"].T[:, None]),
                                        writer.constant("encoder.bias", weights["encoder.bias"])],
                               "coefficients", kernel_shape=[WINDOW], strides=[HOP])
    energy = writer.node("Mul", [coefficients, coefficients], "energy")
    energy = writer.node("Add", [energy, writer.constant("energy.floor", np.array(FLOOR, np.float32))], "energy.floored")
    energy = writer.node("Log", [energy], "energy.log")
    energy = writer.node("Transpose", [energy], "energy.steps", perm=[2, 0, 1])

    biases = np.concatenate([weights["gru.input_bias"], weights["gru.hidden_bias"]])
    operands = [writer.constant(name, value[None]) for name, value in
                (("gru.W", weights["gru.input"].T), ("gru.R", weights["gru.hidden"].T), ("gru.B", biases))]
    steps, state = writer.node("GRU", [energy] + operands + ["", state], ["gru.steps", "h_out"], hidden_size=HIDDEN,
                               linear_before_reset=1)
    mask = writer.node("Squeeze", [steps, writer.constant("gru.direction", np.array([1], np.int64))], "gru.hidden")
    mask = writer.node("MatMul", [mask, writer.constant("mask.weight", weights["mask.weight"])], "mask.linear")
    mask = writer.node("Add", [mask, writer.constant("mask.bias", weights["mask.bias"])], "mask.biased")
    mask = writer.node("Sigmoid", [mask], "mask.steps")
    mask = writer.node("Transpose", [mask], "mask", perm=[1, 2, 0])
    masked = writer.node("Mul", [coefficients, mask], "masked")
    clean = writer.node("ConvTranspose", [masked, writer.constant("decoder.weight", weights["decoder.weight"][:, None])],
                        "clean", kernel_shape=[HOP], strides=[HOP])
    writer.output(clean, np.float32, (1, 1, FRAME))
    writer.output(state, np.float32, (1, 1, HIDDEN))
    writer.output(cache, np.float32, (1, 1, HISTORY))
    return writer.model()


def test_sets(network, frames=4):
    """The first frames of one stream, each starting from the states that the one before it returned."""
    _, noisy = signals(np.random.default_rng(33), 1, frames * FRAME)
    state, history = quiet(1, HIDDEN), quiet(1, HISTORY)
    for index in range(frames):
        frame = noisy[:, index * FRAME:(index + 1) * FRAME]
        answers = network.frame64(*(value.astype(np.float64) for value in (frame, state, history)))
        answers = [value.astype(np.float32) for value in answers]
        yield ([(name, value[None]) for name, value in zip(("frame", "h_in", "cache_in"), (frame, state, history))],
               [(name, value[None]) for name, value in zip(("clean", "h_out", "cache_out"), answers)])
        state, history = answers[1:]


def make(folder):
    network = train()
    onnx_out.save(folder, graph(network), test_sets(network))
