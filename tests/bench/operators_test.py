#!/usr/bin/env python3
"""The networks of operators.txt are what they should be, and its table is sorted."""

import pathlib
import unittest

import numpy as np
import onnx.parser

import compare_peers
import operators

TEXT = (pathlib.Path(__file__).resolve().parent / "operators.txt").read_text(encoding="utf-8")
LEAST_NETWORKS = 250


def entry(milliseconds):
    return compare_peers.Entry([milliseconds], 0.0, True, [milliseconds])


class Networks(unittest.TestCase):
    def setUp(self):
        self.networks = list(operators.networks(TEXT))

    def test_there_are_enough_of_different_names(self):
        names = [network.name for network in self.networks]
        self.assertGreaterEqual(len(names), LEAST_NETWORKS)
        self.assertEqual(len(names), len(set(names)))

    def test_every_value_is_used_and_y_is_made(self):
        for network in self.networks:
            used = {name for node in network.nodes for name in node.input}
            self.assertEqual({value.name for value in network.values} - used, set(), network.name)
            made = {name for node in network.nodes for name in node.output}
            self.assertIn("y", made, network.name)
            self.assertEqual(used - made - {value.name for value in network.values} - {""}, set(), network.name)

    def test_variants_differ_in_what_they_are_called_for(self):
        for network in self.networks:
            floats = [v for v in network.values if v.dtype is np.float32]
            inputs = [v for v in network.values if not v.is_constant]
            if network.name.endswith("/half"):
                self.assertEqual(floats, [], network.name)
            if network.name.endswith("/batch"):
                self.assertIn(operators.BATCH, [v.sizes[0] for v in inputs], network.name)
            if network.name.endswith("/open"):
                self.assertIn(1, [v.sizes[0] for v in inputs], network.name)

    def test_values_are_read(self):
        value = operators.value_of("i:512,1:int64<4096>")
        array = value.array(np.random.default_rng(0))
        self.assertEqual((array.shape, array.dtype), ((512, 1), np.int64))
        self.assertTrue(0 <= array.min() and 3000 < array.max() < 4096)
        scales = operators.value_of("f!:4:=1,1,2,0.5")
        self.assertTrue(scales.is_constant)
        self.assertEqual(scales.array(None).tolist(), [1, 1, 2, 0.5])


class Table(unittest.TestCase):
    def test_the_slowest_beside_its_peer_comes_first(self):
        row = lambda ours, theirs: {1: {compare_peers.OURS: entry(ours), "onnxruntime": entry(theirs)}}
        found = [("fast", row(1.0, 3.0), {1: 0.5}), ("cliff", row(4.0, 1.0), {1: 1.0}), ("refused", "an operator", {})]
        lines = operators.table(found, 1, [compare_peers.OURS, "onnxruntime"]).splitlines()
        self.assertTrue(lines[2].startswith("| cliff |") and lines[2].endswith("| 25 % | 0.25 |"), lines)
        self.assertTrue(lines[3].startswith("| fast |") and lines[3].endswith("| 50 % | 3.00 |"), lines)
        self.assertEqual(lines[5], "2 networks, geometric mean 0.87, least 0.25, 1 below 0.95.")
        self.assertEqual(lines[6], "refused: not compiled: an operator")


if __name__ == "__main__":
    unittest.main()
