#!/usr/bin/env bash
# Installs the suite and runs it. Arguments go to run.mjs: direct, http, stdio; all three by default.
#   UNHURRY_BIN        the proxy's binary; target/release/unhurry of the repository by default
#   CONFORMANCE_CACHE  where the packages are installed; .ci/cache/conformance of the repository by default
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..

if [[ $* != direct ]]; then
  UNHURRY_BIN=${UNHURRY_BIN:-$root/target/release/unhurry}
  if [[ ! -x $UNHURRY_BIN ]]; then
    echo "conformance: UNHURRY_BIN ($UNHURRY_BIN) is no executable file; build one with 'cargo build --release'" >&2
    exit 1
  fi
  UNHURRY_BIN=$(realpath "$UNHURRY_BIN")
  export UNHURRY_BIN
fi

bash "$here/setup.sh"
CONFORMANCE_CACHE=$(realpath "${CONFORMANCE_CACHE:-$root/.ci/cache/conformance}")
export CONFORMANCE_CACHE
exec node "$here/run.mjs" "$@"
