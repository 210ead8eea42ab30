#!/bin/sh
# SPDX-License-Identifier: MIT OR GPL-2.0-only
# packages.sh PACKAGE... - makes sure that Debian packages are installed: installs the missing ones as
# root, else says which they are and fails. Where there is no dpkg it leaves finding out to the build.
set -eu
command -v dpkg-query >/dev/null || exit 0
missing=
for package; do
	case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true) in
	"install ok installed") ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "missing packages; as root: apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of names
apt-get install -qq --no-install-recommends $missing >/dev/null 2>&1 || {
	apt-get update -qq
	apt-get install -qq --no-install-recommends $missing >/dev/null
}
