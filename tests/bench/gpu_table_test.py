#!/usr/bin/env python3
"""The tables of gpu_table.py from made-up numbers, and the document that they go into."""

import json
import pathlib
import tempfile
import unittest
import unittest.mock

import gpu_table
import peers_on_gpu

DEVICE = {"date": "2030-01-02", "name": "A GPU", "clock": "1980 MHz (most 1980 MHz)", "memory_clock": "2619 MHz",
          "driver": "600.1", "cuda": "13.0", "torch": "torch 2.11"}
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def row(peer, least, median, model="bert_base", batch=1, precision="fp16"):
    return {"model": model, "batch": batch, "precision": precision, "peer": peer, "min_ms": least, "median_ms": median}


class Table(unittest.TestCase):
    def test_nothing_was_measured(self):
        text = gpu_table.render({})
        self.assertIn("Not measured: no GPU was at hand.", text)
        self.assertEqual(text.count("| not measured | not measured | not measured |"), 1)

    def test_rows(self):
        kernels = [{"name": "attention fp16", "min_ms": 0.0123, "median_ms": 0.0125, "rate": 401.2, "unit": "TFLOP/s",
                    "percent": 62.4}]
        text = gpu_table.render({"device": DEVICE, "kernels": kernels, "timings": [
            row("gcompile", 0.25, 0.26), row("graph", 0.5, 0.51), row("compile", 0.4, 0.41), row("graph", 2, 3, batch=8)]})
        self.assertIn("2030-01-02, A GPU, SM clock 1980 MHz (most 1980 MHz), memory clock 2619 MHz, driver 600.1, CUDA 13.0, "
                      "torch 2.11.", text)
        self.assertNotIn("Not measured:", text)
        self.assertIn("30 of 32 rows were not measured.", text)
        self.assertIn("| BERT-base, 128 tokens | fp16 | 1 | 0.250 / 0.260 | 0.500 / 0.510 | 0.400 / 0.410 | 0.62 |", text)
        self.assertIn("| BERT-base, 128 tokens | fp16 | 8 | not measured | 2.000 / 3.000 | not measured |  |", text)
        self.assertIn("| attention fp16 | 0.0123 / 0.0125 | 401.2 TFLOP/s | 62 |", text)

    def test_document_keeps_what_is_around(self):
        document = f"before\n{gpu_table.BEGIN}\nold\n{gpu_table.END}\nbehind\n"
        once = gpu_table.insert(document, "new\n")
        self.assertEqual(once, f"before\n{gpu_table.BEGIN}\nnew\n{gpu_table.END}\nbehind\n")
        self.assertEqual(gpu_table.insert(once, "new\n"), once)

    def test_document_without_markers(self):
        for document in ("", gpu_table.BEGIN, f"{gpu_table.END}\n{gpu_table.BEGIN}", 2 * (gpu_table.BEGIN + gpu_table.END)):
            with self.assertRaises(ValueError):
                gpu_table.insert(document, "new\n")

    def test_the_document_has_its_markers(self):
        gpu_table.insert(DOCUMENT.read_text(encoding="utf-8"), "")

    def test_results_are_kept_until_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.json"
            path.write_text(json.dumps({"device": DEVICE}), encoding="utf-8")
            peers_on_gpu.update(path, [row("gcompile", 2, 2), row("graph", 3, 3)])
            peers_on_gpu.update(path, [row("gcompile", 1, 1)])
            results = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(results["device"], DEVICE)
            self.assertEqual(sorted((r["peer"], r["min_ms"]) for r in results["timings"]), [("gcompile", 1), ("graph", 3)])
            document = pathlib.Path(folder) / "benchmarks.md"
            document.write_text(f"{gpu_table.BEGIN}\n{gpu_table.END}\n", encoding="utf-8")
            gpu_table.write(path, document)
            self.assertIn("| 1.000 / 1.000 | 3.000 / 3.000 | not measured |", document.read_text(encoding="utf-8"))

    def test_times_of_emitted_programs(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(peers_on_gpu, "torch", None):
            folder = pathlib.Path(folder)
            program = folder / "vit_b16_b8_bf16" / "build" / "vit_b16_bench"
            program.parent.mkdir(parents=True)
            program.write_text('#!/bin/sh\n[ -d build ] || exit 1\n'
                               'echo \'{"min_ms": 9, "device_min_ms": 0.5, "device_median_ms": 0.75}\'\n', encoding="utf-8")
            program.chmod(0o755)
            rows, complaints = peers_on_gpu.measure(folder, "vit_b16", 8, "bf16", False)
            self.assertEqual(rows[0], row("gcompile", 0.5, 0.75, "vit_b16", 8, "bf16"))
            self.assertEqual(complaints, [])
            rows, complaints = peers_on_gpu.measure(folder, "vit_b16", 1, "bf16", False)
            self.assertEqual([r for r in rows if r["peer"] == "gcompile"], [])
            self.assertIn("vit_b16_b1_bf16", complaints[0])


if __name__ == "__main__":
    unittest.main()
