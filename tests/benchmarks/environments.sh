# Makes the Pythons that the contenders run on, and goes to the root of the checkout.
# Sourced by `run` and `profile`.
set -eu
cd "$(dirname "$0")/../.."
home=${BENCHMARK_HOME:-$PWD/build/benchmarks}
python=${PYTHON:-python3}
for name in bridge rivals; do
    [ -x "$home/$name/bin/python" ] || "$python" -m venv "$home/$name"
done
# The bridge is installed anew each time, as its users have it: not as an editable checkout.
"$home/bridge/bin/pip" install --quiet --disable-pip-version-check ".[expect]" "trustme>=1.2"
"$home/rivals/bin/pip" install --quiet --disable-pip-version-check "mcp==2.3.0" "fastmcp==4.1.2"
