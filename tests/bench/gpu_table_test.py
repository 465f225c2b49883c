#!/usr/bin/env python3
"""The tables of gpu_table.py from made-up numbers, and the document that they go into."""

import json
import pathlib
import tempfile
import unittest
import unittest.mock

import gpu_check
import gpu_layers
import gpu_table
import peers_on_gpu

DEVICE = {"date": "2030-01-02", "name": "A GPU of kind H200", "clock": "1980 MHz (most 1980 MHz)", "memory_clock": "2619 MHz",
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
        self.assertIn("2030-01-02, A GPU of kind H200, SM clock 1980 MHz (most 1980 MHz), memory clock 2619 MHz,\ndriver 600.1, CUDA 13.0, "
                      "torch 2.11.", text)
        self.assertNotIn("Not measured:", text)
        self.assertIn("30 of 32 rows were not measured.", text)
        self.assertIn("| BERT-base, 128 tokens | fp16 | 1 | 0.250 / 0.260 | 0.500 / 0.510 | 0.400 / 0.410 | 0.62 |", text)
        self.assertIn("| BERT-base, 128 tokens | fp16 | 8 | not measured | 2.000 / 3.000 | not measured |  |", text)
        self.assertIn("| attention fp16 | 12.3 / 12.5 | 401.2 TFLOP/s | 62 |", text)

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


LAYERS = [{"function": "norm_0", "origins": "", "launches": 1, "predicted_us": 1.0},
          {"function": "product_1", "origins": "", "launches": 2, "predicted_us": 3.0},
          {"function": "softmax_2", "origins": "", "launches": 1, "predicted_us": 2.0}]
# Two runs of four kernels, among what the program itself says.
PROFILE = """==PROF== Connected to process 7
min 0.1 ms
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
""" + "".join(f'"{i}","7","k","gpu__time_duration.sum","ns","{ns}"\n'
              for i, ns in enumerate(("9,000", 9000, 9000, 9000, "1,100", 4000, 5000, 2500)))


class Layers(unittest.TestCase):
    def test_the_last_run_counts(self):
        found = gpu_layers.measured(LAYERS, gpu_layers.durations(PROFILE))
        self.assertEqual([layer["measured_us"] for layer in found], [1.1, 9.0, 2.5])
        self.assertEqual([layer["function"] for layer in gpu_layers.worst(found)], ["product_1"])

    def test_what_cannot_be_matched(self):
        for times in ([], [1.0] * 3, [1.0] * 5):
            with self.assertRaises(ValueError):
                gpu_layers.measured(LAYERS, times)
        with self.assertRaises(ValueError):
            gpu_layers.durations("==ERROR== The application returned an error code")

    def test_verdict(self):
        text = gpu_table.verdict({})
        self.assertEqual(text.count("| not measured | not measured |"), len(gpu_table.ON_A_GPU))
        self.assertIn("no goals", text)
        found = gpu_layers.measured(LAYERS, gpu_layers.durations(PROFILE))
        text = gpu_table.verdict({"device": DEVICE, "predicted": {"bert_base": 282.1}, "layers": {"bert_base": found}, "timings": [
            row("gcompile", 0.300, 0.31), row("sm_90", 0.310, 0.32), row("graph", 0.5, 0.51), row("compile", 0.4, 0.41),
            row("gcompile", 0.4, 0.4, model="resnet50"), row("gcompile", 9, 9, batch=8)]})
        self.assertIn("| BERT-base, 128 tokens | 330 | 282 | 300 | 310 | 400 | reached | product_1 9.0 / 3.0 |", text)
        self.assertIn("| ResNet-50, 224x224 | 200 |  | 400 |  |  | 2.00x of the goal | not measured |", text)


    def test_goals_are_those_of_the_device(self):
        for name, goal in (("NVIDIA H100 80GB HBM3", 247), ("NVIDIA H200", 220)):
            text = gpu_table.verdict({"device": {**DEVICE, "name": name}, "timings": [row("gcompile", 0.23, 0.24, model="gpt2_decode")]})
            self.assertIn(f"| {goal} |  | 230 |", text)
            self.assertIn("| reached |" if goal > 230 else "1.05x of the goal", text)
        self.assertIn("there are no goals", gpu_table.verdict({"device": {**DEVICE, "name": "NVIDIA L4"}}))

    def test_table_of_the_processors(self):
        text = gpu_table.render({"cpu": [{"model": "bert_base", "threads": n, "min_ms": 80 / n, "median_ms": 90} for n in (1, 2, 4)]})
        self.assertIn("| BERT-base, 128 tokens | 80.00 | 40.00 | 20.00 |", text)
        self.assertNotIn("processors", gpu_table.render({}))


class Parts(unittest.TestCase):
    def arguments(self, *words):
        with unittest.mock.patch("sys.argv", ["gpu_check", *words]):
            return gpu_check.parse()

    def test_all_of_it_fits_nine_minutes(self):
        self.assertEqual(self.arguments().seconds, 540)
        self.assertEqual(self.arguments("--results", "/tmp/found").tarball, pathlib.Path("/tmp/found.tgz"))
        with self.assertRaises(SystemExit), unittest.mock.patch("sys.stderr"):
            self.arguments("--parts", "kernel")

    def test_results_add_up_where_they_are_told_to(self):
        with tempfile.TemporaryDirectory() as folder:
            check = gpu_check.Check(self.arguments("--results", f"{folder}/out", "--work", f"{folder}/work"))
            check.arguments.results.mkdir()
            check.save("device", DEVICE)
            check.save("layers", {"bert_base": []})
            check.save("layers", {"vit_b16": []})
            peers_on_gpu.update(check.results_file, [row("gcompile", 0.25, 0.26)])
            before = DOCUMENT.read_bytes()
            with unittest.mock.patch("builtins.print"):
                gpu_check.write_tables(check)
            self.assertEqual(DOCUMENT.read_bytes(), before)
            found = sorted(path.name for path in pathlib.Path(folder).rglob("*") if path.is_file())
            self.assertEqual(found, ["results.json", "tables.md", "verdict.md"])
            results = json.loads(check.results_file.read_text(encoding="utf-8"))
            self.assertEqual(sorted(results["layers"]), ["bert_base", "vit_b16"])
            self.assertIn("| 330 |  | 250 |", (check.arguments.results / "verdict.md").read_text(encoding="utf-8"))

    def test_only_asked_cells_are_built(self):
        check = gpu_check.Check(self.arguments("--cells", "bert_base:8:fp16"))
        self.assertEqual(gpu_check.cells(check), [("bert_base", 8, "fp16")])
        usual = gpu_check.Check(self.arguments())
        self.assertEqual(gpu_check.cells(usual)[:3], [("bert_base", 1, "fp16"), ("gpt2_decode", 1, "fp16"), ("resnet50", 1, "fp16")])
        self.assertEqual(len(gpu_check.cells(usual)), 10)
        self.assertEqual(len(gpu_check.twins(usual)), 4)
        usual.architecture = "sm_80"
        self.assertEqual(gpu_check.twins(usual), [])

    def test_the_capability_is_passed(self):
        self.assertEqual([gpu_check.architecture_of(c) for c in ("8.7", "9.0", "12.0")], ["sm_87", "sm_90a", "sm_120"])


if __name__ == "__main__":
    unittest.main()
