#!/usr/bin/env bash
# Installs the real peers, each by name and version, into an ignored folder. Does nothing where they are there.
#   INTEROP_CACHE  the folder; .ci/cache/interop of the repository by default
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${INTEROP_CACHE:-$here/../../.ci/cache/interop}
source "$here/versions.env"

# What is installed is written down last, so a broken install is repeated.
install_once() { # FOLDER PACKAGES… : runs install_in FOLDER PACKAGES…
  local folder=$1
  shift
  if [[ -f $folder/installed && $(<"$folder/installed") == "$*" ]]; then return; fi
  echo "interop: installing $* into ${folder##*/}" >&2
  rm -rf "$folder"
  mkdir -p "$folder"
  "install_${folder##*/}" "$folder" "$@" ||
    { echo "interop: $* could not be installed (see above)" >&2; exit 1; }
  echo "$*" >"$folder/installed"
}

install_npm() {
  # A package.json of its own keeps npm from looking for one in the folders above.
  echo '{"private": true}' >"$1/package.json"
  npm install --prefix "$1" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "${@:2}" >&2
}

install_venv() {
  python3 -m venv "$1" >&2
  "$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}" >&2
}
install_venv-mcp1() { install_venv "$@"; }
install_venv-mcp2() { install_venv "$@"; }

install_once "$cache/npm" \
  "@modelcontextprotocol/server-everything@$SERVER_EVERYTHING" \
  "@modelcontextprotocol/sdk@$TS_SDK_1" \
  "@modelcontextprotocol/client@$TS_CLIENT_2" \
  "@modelcontextprotocol/server@$TS_SERVER_2" \
  "@modelcontextprotocol/node@$TS_NODE_2" \
  "mcp-remote@$MCP_REMOTE"
# The two majors of one Python package cannot live in one environment.
install_once "$cache/venv-mcp1" "mcp==$PY_MCP_1"
install_once "$cache/venv-mcp2" "mcp==$PY_MCP_2"
