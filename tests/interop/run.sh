#!/usr/bin/env bash
# Installs the real peers, builds the Rust client, and runs all pairs. Arguments go to run.mjs.
#   UNHURRY_BIN    the proxy's binary
#   INTEROP_CACHE  where the peers are installed; .ci/cache/interop of the repository by default
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
cache=${INTEROP_CACHE:-$root/.ci/cache/interop}

if [[ " $* " != *" --direct "* ]]; then
  if [[ ! -x ${UNHURRY_BIN:-} ]]; then
    echo "interop: UNHURRY_BIN (${UNHURRY_BIN:-not set}) is no executable file;" \
      "build one with 'cargo build --release' and set UNHURRY_BIN=target/release/unhurry" >&2
    exit 1
  fi
  UNHURRY_BIN=$(realpath "$UNHURRY_BIN")
  export UNHURRY_BIN
fi

INTEROP_CACHE=$cache bash "$here/setup.sh"
# Asked of cargo, as the target folder may be anywhere.
CLIENT_RMCP=$(cd "$root" && cargo build --quiet --example client-rmcp --message-format=json |
  sed -n 's/.*"name":"client-rmcp".*"executable":"\([^"]*\)".*/\1/p')
export CLIENT_RMCP
INTEROP_CACHE=$(realpath "$cache")
export INTEROP_CACHE
exec node "$here/run.mjs" "$@"
