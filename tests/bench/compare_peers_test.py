#!/usr/bin/env python3
"""The judgements and tables of compare_peers.py from made-up numbers, and its talk with a peer that is none."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import compare_peers
from compare_peers import Entry, ratio_of, root_mean_square_error, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from gcompile import peers  # noqa: E402  pylint: disable=wrong-import-position


def entry(*milliseconds, is_right=True):
    return Entry(list(milliseconds), 1e-7 if is_right else 2.5, is_right, [m + 1 for m in milliseconds])


class Judgement(unittest.TestCase):
    def test_error(self):
        expected = [np.array([3.0, -4.0]), np.array([[1, 2]])]
        self.assertEqual(root_mean_square_error(expected, expected), 0)
        self.assertEqual(root_mean_square_error([np.array([[3.0], [-4.0]]), np.array([1, 2])], expected), 0)
        self.assertAlmostEqual(root_mean_square_error([np.array([3.0, -3.0]), expected[1]], expected), 0.2)

    def test_what_cannot_be_right(self):
        expected = [np.array([1.0, np.nan])]
        self.assertEqual(root_mean_square_error(expected, expected), 0)
        for wrong in ([], [np.array([1.0])], [np.array([1.0, 2.0])], [np.array([1.0, np.inf])], [np.array([np.nan, np.nan])]):
            self.assertFalse(root_mean_square_error(wrong, expected) <= 0.1, wrong)
        self.assertFalse(root_mean_square_error([np.array([1e-4])], [np.zeros(1)]) <= 0.1)

    def test_values_as_good_as_zero(self):
        self.assertLess(root_mean_square_error([np.array([3e-9])], [np.array([1e-9])]), 1e-4)

    def test_ratio(self):
        row = {"gcompile": entry(4, 2), "onnxruntime": entry(5, 3), "openvino": entry(1, is_right=False), "ncnn": "no"}
        self.assertEqual(ratio_of(row), 1.5)
        self.assertIsNone(ratio_of({"gcompile": entry(4), "ncnn": "no"}))


class Table(unittest.TestCase):
    def test_rows(self):
        results = {"resnet18": {1: {"gcompile": entry(4, 2), "onnxruntime": entry(5, 3), "ncnn": "no layer for X"}},
                   "mcunet": {1: {"gcompile": entry(4), "onnxruntime": entry(1), "ncnn": entry(2, is_right=False)}},
                   "gpt2_4bit": "error: a | b"}
        lines = table(results, 1, ["gcompile", "onnxruntime", "ncnn"]).splitlines()
        self.assertEqual(lines[0], "| model | gcompile | ONNX Runtime | ncnn | error | ratio |")
        self.assertEqual(lines[2], "| resnet18 | 2.000 / 4.000 | 3.000 / 5.000 | no [1] | 1.0e-07 | 1.50 |")
        self.assertEqual(lines[3], "| mcunet | 4.000 / 5.000 | 1.000 / 2.000 | 2.000 / 3.000 (wrong: 2) | 1.0e-07 | 0.25 |")
        self.assertEqual(lines[4], "| gpt2_4bit | not compiled: error: a / b | | | | |")
        self.assertEqual(lines[6], "Geometric mean of the ratios: networks 1.50, least 1.50; main suite 0.25, least 0.25.")
        self.assertEqual(lines[7:], ["[1] ncnn: no layer for X."])


class Process(unittest.TestCase):
    def peer(self, folder):
        np.savez(folder / "inputs.npz", x=np.zeros(1, np.int64))
        return peers.Peer("ncnn", folder / "model.onnx", folder / "inputs.npz", 1, folder / "peer")

    def test_a_refusal_has_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(peers.Refused) as caught:
                self.peer(pathlib.Path(folder))
            self.assertRegex(str(caught.exception), "No module named 'ncnn'|inputs other than float32")

    def test_a_process_that_ends(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(compare_peers.peers.sys, "executable",
                                                                                 "/bin/false"):
            with self.assertRaisesRegex(peers.Refused, "ended with status 1"):
                self.peer(pathlib.Path(folder))


if __name__ == "__main__":
    unittest.main()
