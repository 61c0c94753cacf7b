#!/usr/bin/env bash
# Checks accel-doctor on a machine with an NVIDIA GPU, in under 4 minutes: every field that we read by NVML against
# nvidia-smi, at rest and under load, then a preflight with NCCL on the card. Written where there is no GPU and not yet
# run on one: expect to mend a detail on its first run.
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
    step install 60 "$python" -m pip install --quiet --no-compile --target "$site" "${from[@]}" "${missing[@]}"
fi

TAIL=3 step nvidia-smi 30 nvidia-smi -q
TAIL=80 step fields 100 "$python" "$root/bench/gpu_check.py" --out "$out"
cd "$out" || exit 2
TAIL=60 step preflight 90 "$python" -m accel_doctor preflight --deadline 80 --run-dir "$out/run" -v \
    --output "json:$out/report.json"
TAIL=5 step report 20 "$python" -m accel_doctor report "$out/run"

rm -rf "$site"
if ((${#failed[@]})); then
    echo "not well: ${failed[*]}; all output is in $out"
    exit 1
fi
echo "all well; all output is in $out"
