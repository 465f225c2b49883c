#!/bin/sh
# with_onnxruntime.sh PYTHON SCRIPT ARGUMENT...: runs the script with the interpreter that has ONNX Runtime, if it is there.
if [ ! -x "$1" ]; then
    echo "skipped: no $1; \`scripts/install_packages.sh bench\` makes it"
    exit 77
fi
exec "$@"
