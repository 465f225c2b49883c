#!/usr/bin/env python3
"""What follows NonMaxSuppression in exported detectors: heads as exporters spell them, on inputs that give none, some and the
most results.

    detectors.py --gcompile GCOMPILE [CASE...]

Boxes have whole numbers as corners, so that no overlap is near a threshold. Where ONNX Runtime is installed, it is asked
as well.
"""

from support import Skip, equal, manifest, read_npy, run_main, write_npy

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
LIMITS = "int64[1] most = {%d}, float[1] share = {0.5}, float[1] least = {%s}"
# batched_nms of torchvision behind a threshold of scores: boxes of other classes lie elsewhere, and one class is suppressed.
TORCHVISION = HEAD + """torchvision (float[8,4] boxes, float[8] scores, int64[8] labels)
    => (float[n,4] kept_boxes, float[n] kept_scores, int64[n] kept_labels)
<int64[1] a0 = {0}, int64[1] a1 = {1}, int64[2] a01 = {0, 1}, float above = {0.05}, float one = {1},
 int64 most = {9223372036854775807}, float share = {0.5}, int64[1] column = {2}, int64[1] zero = {0}, int64[1] all = {100}> {
  high = Greater(scores, above)
  where = NonZero(high)
  at = Squeeze(where, a0)
  b = Gather<axis = 0>(boxes, at)
  s = Gather<axis = 0>(scores, at)
  l = Gather<axis = 0>(labels, at)
  largest = ReduceMax<keepdims = 0>(b)
  step = Add(largest, one)
  class = Cast<to = 1>(l)
  offset = Mul(class, step)
  offsets = Unsqueeze(offset, a1)
  apart = Add(b, offsets)
  b3 = Unsqueeze(apart, a0)
  s3 = Unsqueeze(s, a01)
  selected = NonMaxSuppression(b3, s3, most, share)
  positions = Gather<axis = 1>(selected, column)
  every = Squeeze(positions, a1)
  kept = Slice(every, zero, all, zero)
  kept_boxes = Gather<axis = 0>(b, kept)
  kept_scores = Gather<axis = 0>(s, kept)
  kept_labels = Gather<axis = 0>(l, kept)
}
"""
# The end of YOLO as its exporters write it: centres and sizes, then rows of image, box, class and score.
YOLO = HEAD + "yolo (float[2,6,8] head) => (float[n,7] rows)\n<" + LIMITS % (5, "0.25") + """,
 int64[1] zero = {0}, int64[1] four = {4}, int64[1] six = {6}, int64[1] a1 = {1}, int64[1] a2 = {2}, int64[2] place = {0, 2},
 int64[1] class_from = {1}, int64[1] class_to = {2}> {
  turned = Transpose<perm = [0, 2, 1]>(head)
  boxes = Slice(turned, zero, four, a2)
  points = Slice(turned, four, six, a2)
  scores = Transpose<perm = [0, 2, 1]>(points)
  selected = NonMaxSuppression<center_point_box = 1>(boxes, scores, most, share, least)
  places = Gather<axis = 1>(selected, place)
  chosen = GatherND(boxes, places)
  image_place = Slice(selected, zero, a1, a1)
  image = Cast<to = 1>(image_place)
  class_place = Slice(selected, class_from, class_to, a1)
  class = Cast<to = 1>(class_place)
  score = GatherND(scores, selected)
  score_column = Unsqueeze(score, a1)
  rows = Concat<axis = 1>(image, chosen, class, score_column)
}
"""
# Several classes, as TensorFlow's SSD: the best of all classes together, as many as there are, at most 4.
SSD = HEAD + "ssd (float[1,8,4] boxes, float[1,3,8] scores) => (float[n,4] best_boxes, float[n] best, int64[n] classes, int64[1] found)\n<" \
    + LIMITS % (3, "0.3") + """, int64[1] limit = {4}, int64 one = {1}, int64[2] place = {0, 2}> {
  selected = NonMaxSuppression(boxes, scores, most, share, least)
  all_scores = GatherND(scores, selected)
  places = Gather<axis = 1>(selected, place)
  all_boxes = GatherND(boxes, places)
  all_classes = Gather<axis = 1>(selected, one)
  found = Shape(all_scores)
  narrow = Cast<to = 6>(found)
  narrow_limit = Cast<to = 6>(limit)
  fewer = Min(narrow, narrow_limit)
  k = Cast<to = 7>(fewer)
  best, order = TopK<axis = 0>(all_scores, k)
  best_boxes = Gather<axis = 0>(all_boxes, order)
  classes = Gather<axis = 0>(all_classes, order)
}
"""
# Results of one size, as EfficientNMS gives them: what is missing has the score 0 and a box of zeros.
PADDED = HEAD + "padded (float[1,8,4] boxes, float[1,2,8] scores) => (int64 number, float[6,4] top_boxes, float[6] top, int64[6] classes)\n<" \
    + LIMITS % (3, "0.3") + """, int64[1] six = {6}, int64 one = {1}, int64[2] place = {0, 2},
 float[6,4] no_boxes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
 float[6] none = {0, 0, 0, 0, 0, 0}, int64[6] no_classes = {0, 0, 0, 0, 0, 0}, float least_score = {0}> {
  selected = NonMaxSuppression(boxes, scores, most, share, least)
  all_scores = GatherND(scores, selected)
  places = Gather<axis = 1>(selected, place)
  all_boxes = GatherND(boxes, places)
  all_classes = Gather<axis = 1>(selected, one)
  more_scores = Concat<axis = 0>(all_scores, none)
  more_boxes = Concat<axis = 0>(all_boxes, no_boxes)
  more_classes = Concat<axis = 0>(all_classes, no_classes)
  top, order = TopK<axis = 0>(more_scores, six)
  top_boxes = Gather<axis = 0>(more_boxes, order)
  classes = Gather<axis = 0>(more_classes, order)
  there = Greater(top, least_score)
  counts = Cast<to = 7>(there)
  number = ReduceSum<keepdims = 0>(counts)
}
"""
# Thresholds and the largest number of boxes are the run's.
LIMITS_OF_A_RUN = HEAD + """limits_of_a_run (float[1,8,4] boxes, float[1,2,8] scores, int64[1] most, float[1] share, float[1] least)
    => (int64[n,3] selected, float highest) {
  selected = NonMaxSuppression(boxes, scores, most, share, least)
  chosen = GatherND(scores, selected)
  highest = ReduceMax<keepdims = 0>(chosen)
}
"""
# Two levels of a pyramid, whose regions are pooled each by its own and put back where they were among those with high scores.
LEVEL = """
  is_@ = Equal(level, l@)
  found_@ = NonZero(is_@)
  at_@ = Squeeze(found_@, a0)
  own_@ = Gather<axis = 0>(regions, at_@)
  number_@ = Shape(at_@)
  images_@ = ConstantOfShape<value = int64[1] {0}>(number_@)
  pooled_@ = RoiAlign<sampling_ratio = 2, output_height = 3, output_width = 3>(features_@, own_@, images_@)
  column_@ = Reshape(at_@, as_column)
  size_@ = Shape(pooled_@)
  places_@ = Expand(column_@, size_@)"""
LEVELS = HEAD + """levels (float[1,2,16,16] features_0, float[1,2,8,8] features_1, float[6,4] all, int64[6] level_of_all, float[6] scores,
    float[18,5] weights) => (float[n,5] y)
<float above = {0.3}, int64[3] tail = {2, 3, 3}, int64[2] flat = {-1, 18}, int64[1] a0 = {0}, int64 l0 = {0}, int64 l1 = {1},
 int64[4] as_column = {-1, 1, 1, 1}> {
  high = Greater(scores, above)
  where = NonZero(high)
  chosen = Squeeze(where, a0)
  regions = Gather<axis = 0>(all, chosen)
  level = Gather<axis = 0>(level_of_all, chosen)
  number = Shape(chosen)
  size = Concat<axis = 0>(number, tail)
  nothing = ConstantOfShape(size)""" + LEVEL.replace("@", "0") + LEVEL.replace("@", "1") + """
  first = ScatterElements<axis = 0>(nothing, places_0, pooled_0)
  both = ScatterElements<axis = 0>(first, places_1, pooled_1)
  rows = Reshape(both, flat)
  y = MatMul(rows, weights)
}
"""
MODELS = {"torchvision": TORCHVISION, "yolo": YOLO, "ssd": SSD, "padded": PADDED, "limits_of_a_run": LIMITS_OF_A_RUN}

# Eight boxes in three heaps; of which the first overlap each other, and eight that do not.
HEAPS = [[0, 0, 10, 10], [1, 0, 11, 10], [0, 1, 10, 11], [30, 30, 40, 40], [31, 30, 41, 40], [60, 0, 70, 10], [90, 90, 95, 95],
         [60, 1, 70, 11]]
APART = [[20 * i, 0, 20 * i + 10, 10] for i in range(8)]
HIGH = [0.875, 0.75, 0.9375, 0.5, 0.625, 0.8125, 0.6875, 0.5625]
LOW = [0.03125 * (i % 2) for i in range(8)]
RUNS = {"none": (HEAPS, LOW), "some": (HEAPS, [HIGH[i] if i % 3 else LOW[i] for i in range(8)]), "ties": (HEAPS, [0.5] * 8),
        "heaps": (HEAPS, HIGH), "most": (APART, HIGH)}


def kept(boxes, scores, most, least):
    """Positions of what is left of one class, by the definition."""
    def overlap(a, b):
        sides = [min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1)]
        common = max(0, sides[0]) * max(0, sides[1])
        area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
        return common / (sum(area) - common)
    out = []
    for i in sorted(range(len(scores)), key=lambda at: -scores[at]):
        if scores[i] > least and len(out) < most and all(overlap(boxes[i], boxes[k]) <= 0.5 for k in out):
            out.append(i)
    return out


def classes_of(scores, count):
    """Scores of several classes: those of the others are lower, and in another order."""
    return [scores, [value / 2 for value in reversed(scores)], [value / 4 for value in scores]][:count]


def flat(rows):
    return [value for row in rows for value in row]


def torchvision(boxes, scores):
    labels = [i % 2 for i in range(8)]
    high = [i for i in range(8) if scores[i] > 0.05]
    both = [at for label in (0, 1) for at in
            (lambda own: [own[k] for k in kept([boxes[i] for i in own], [scores[i] for i in own], 100, 0)])(
                [i for i in high if labels[i] == label])]
    order = sorted(both, key=lambda i: (-scores[i], i))
    inputs = {"boxes": ("float32", [8, 4], flat(boxes)), "scores": ("float32", [8], scores), "labels": ("int64", [8], labels)}
    return inputs, [flat(boxes[i] for i in order), [scores[i] for i in order], [labels[i] for i in order]]


def yolo(boxes, scores):
    points = classes_of(scores, 2)
    centred = [[(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]] for b in boxes]
    image = flat([box[k] for box in centred] for k in range(4)) + flat(points)
    rows = [[n, *centred[i], c, points[c][i]] for n in (0, 1) for c in (0, 1) for i in kept(boxes, points[c], 5, 0.25)]
    return {"head": ("float32", [2, 6, 8], image * 2)}, [flat(rows)]


def selected_of(boxes, scores, count, most, least):
    points = classes_of(scores, count)
    inputs = {"boxes": ("float32", [1, 8, 4], flat(boxes)), "scores": ("float32", [1, count, 8], flat(points))}
    return inputs, [(points[c][i], i, c) for c in range(count) for i in kept(boxes, points[c], most, least)]


def ssd(boxes, scores):
    inputs, found = selected_of(boxes, scores, 3, 3, 0.3)
    best = sorted(found, key=lambda each: -each[0])[:4]
    return inputs, [flat(boxes[i] for _, i, _ in best), [score for score, _, _ in best], [c for _, _, c in best], [len(found)]]


def padded(boxes, scores):
    inputs, found = selected_of(boxes, scores, 2, 3, 0.3)
    best = sorted(found, key=lambda each: -each[0])[:6]
    missing = 6 - len(best)
    return inputs, [[len(best)], flat(boxes[i] for _, i, _ in best) + [0] * 4 * missing,
                    [score for score, _, _ in best] + [0] * missing, [c for _, _, c in best] + [0] * missing]


def limits_of_a_run(boxes, scores):
    inputs, found = selected_of(boxes, scores, 2, 2, 0.25)
    inputs.update({"most": ("int64", [1], [2]), "share": ("float32", [1], [0.5]), "least": ("float32", [1], [0.25])})
    return inputs, [flat([0, c, i] for _, i, c in found), [max([score for score, _, _ in found], default=float("-inf"))]]


def written(world, name):
    path = world.path(f"{name}.onnxtxt")
    path.write_text(MODELS[name])
    return path


def head_case(world, name):
    world.compile(written(world, name), world.path(name), "--name", name)
    runner = world.runner(world.path(name), name)
    outputs = [each["name"] for each in manifest(world.path(name), name)["outputs"]]
    for what, (boxes, scores) in RUNS.items():
        inputs, expected = globals()[name](boxes, scores)
        files = [write_npy(world.path(f"{key}.npy"), *value) for key, value in inputs.items()]
        world.run([runner, *files, "--output-dir", world.path("out")])
        for index, values in enumerate(expected):
            found = list(read_npy(world.path("out") / f"{index}_{outputs[index]}.npy"))
            equal(found, [type(f)(v) for f, v in zip(found, values)] if len(found) == len(values) else values,
                  f"{outputs[index]} of {what}")
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        world.run([world.gcompile, "verify", written(world, name), "-q", *target])


def case_torchvision(world):
    head_case(world, "torchvision")


def case_yolo(world):
    head_case(world, "yolo")


def case_ssd(world):
    head_case(world, "ssd")


def case_padded(world):
    head_case(world, "padded")


def case_limits_of_a_run(world):
    head_case(world, "limits_of_a_run")


def case_levels(world):
    path = world.path("levels.onnxtxt")
    path.write_text(LEVELS)
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        world.run([world.gcompile, "verify", path, "-q", *target])


def case_onnxruntime(world):
    """The expected results above are those of ONNX Runtime."""
    try:
        import numpy as np
        import onnx
        import onnxruntime
    except ImportError as error:
        raise Skip(str(error)) from error
    for name, text in MODELS.items():
        model = onnx.parser.parse_model(text)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for what, run in RUNS.items():
            inputs, expected = globals()[name](*run)
            if what == "none" and name == "limits_of_a_run":
                continue  # ONNX Runtime takes no largest element of nothing
            values = {key: np.array(numbers, element).reshape(shape) for key, (element, shape, numbers) in inputs.items()}
            for found, numbers in zip(session.run(None, values), expected):
                equal(found.ravel().tolist(), [type(f)(v) for f, v in zip(found.ravel().tolist(), numbers)], f"{name} of {what}")
                equal(found.size, len(numbers), f"elements of {name} of {what}")


if __name__ == "__main__":
    run_main(globals())
