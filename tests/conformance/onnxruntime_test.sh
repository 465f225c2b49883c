#!/bin/sh
# onnxruntime_test.sh PYTHON GCOMPILE: runs the test with the interpreter that has ONNX Runtime, if it is there.
if [ ! -x "$1" ]; then
    echo "skipped: no $1; \`scripts/install_packages.sh bench\` makes it"
    exit 77
fi
exec "$1" "$(dirname "$0")/onnxruntime_test.py" "$2"
