#!/usr/bin/env bash
# Installs the suite, the Node it needs and the fixture's SDK into an ignored folder. Does nothing where they are there.
#   CONFORMANCE_CACHE  the folder; .ci/cache/conformance of the repository by default
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${CONFORMANCE_CACHE:-$here/../../.ci/cache/conformance}
source "$here/../interop/versions.env"
source "$here/versions.env"

packages=(
  "@modelcontextprotocol/conformance@$CONFORMANCE"
  "node-$(node -p 'process.platform + "-" + process.arch')@$NODE_22"
  "@modelcontextprotocol/server@$TS_SERVER_2"
  "@modelcontextprotocol/node@$TS_NODE_2"
)
if [[ -f $cache/installed && $(<"$cache/installed") == "${packages[*]}" ]]; then exit 0; fi

echo "conformance: installing ${packages[*]}" >&2
rm -rf "$cache"
mkdir -p "$cache"
# A package.json of its own keeps npm from looking for one in the folders above.
echo '{"private": true}' >"$cache/package.json"
npm install --prefix "$cache" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "${packages[@]}" >&2
# Written last, so a broken install is repeated.
echo "${packages[*]}" >"$cache/installed"
