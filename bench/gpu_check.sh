#!/usr/bin/env bash
# Checks accel-doctor on a machine with an NVIDIA GPU, in under 4 minutes: every field that we read by NVML against
# nvidia-smi at rest and under load, the signs of GPU001 and GPU003 on a card that idles and works, what sampling costs,
# a preflight with NCCL on the card, and two ranks on one card (RNK002). Written where there is no GPU and not yet run
# on one: expect to mend a detail on its first run.
#
#     bench/gpu_check.sh [OUT_DIR]
#
# PYTHON names the interpreter (torch with CUDA, accelerate); WHEELS a folder of wheels for what it lacks (msgspec, click,
# psutil, rich, PyYAML, nvidia-ml-py). Nothing is installed into that interpreter. Each step is bounded and the next one
# runs whatever became of it. Exit 0 when all steps did well.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-gpu-check}" && cd "${1:-gpu-check}" && pwd)
python=${PYTHON:-python3}
site=$out/site
failed=()

step() {
    local name=$1 limit=$2
    shift 2
    echo "== $name"
    if timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1; then
        echo "   done"
    else
        echo "   exit $?"
        failed+=("$name")
    fi
    tail -n "${TAIL:-12}" "$out/$name.log" | sed 's/^/   /'
}

# The project as if installed: its two source roots, and metadata that names its checks.
info=$site/accel_doctor-0.dist-info
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: accel-doctor\nVersion: 0\n' >"$info/METADATA"
printf '[accel_doctor.checks]\naccel_checks = accel_checks\n' >"$info/entry_points.txt"
export PYTHONPATH=$site:$root/doctor:$root/checks${PYTHONPATH:+:$PYTHONPATH}

missing=()
for pair in msgspec:msgspec click:click psutil:psutil rich:rich yaml:PyYAML pynvml:nvidia-ml-py accelerate:accelerate; do
    "$python" -c "import ${pair%%:*}" 2>/dev/null || missing+=("${pair##*:}")
done
if ((${#missing[@]})); then
    from=(${WHEELS:+--no-index --find-links "$WHEELS"})
    step install 20 "$python" -m pip install --quiet --no-compile --target "$site" "${from[@]}" "${missing[@]}"
fi

TAIL=3 step nvidia-smi 15 nvidia-smi -q
TAIL=100 step fields 60 "$python" "$root/bench/gpu_check.py" --out "$out"
cd "$out" || exit 2
TAIL=60 step preflight 75 "$python" -m accel_doctor preflight --deadline 65 --run-dir "$out/run" -v \
    --output "json:$out/report.json"
TAIL=5 step report 15 "$python" -m accel_doctor report "$out/run"

# Two ranks on the first card: NCCL refuses ("Duplicate GPU detected"), and RNK002 must name both ranks.
export CUDA_VISIBLE_DEVICES=0 ACCELERATE_TORCH_DEVICE=cuda:0
TAIL=40 step two-on-one 50 "$python" -m accel_doctor preflight --deadline 42 --run-dir "$out/shared" -v --exit-zero \
    --output "json:$out/shared.json" -- --multi_gpu --num_processes 2
step two-on-one-named 5 "$python" - "$out/shared.json" <<'EOF'
import json, sys
report = json.load(open(sys.argv[1]))
(shared,) = [c for c in report["checks"] if c["id"] == "RNK002"]
told = [c["id"] for c in report["checks"] for f in c["findings"] if c["id"] == "RNK002" or "RNK002" in " ".join(f["evidence"])]
print(shared["outcome"], shared["reason"], *[f["message"] for f in shared["findings"]])
sys.exit(0 if told else 1)
EOF

rm -rf "$site"
if ((${#failed[@]})); then
    echo "not well: ${failed[*]}; all output is in $out"
    exit 1
fi
echo "all well; all output is in $out"
