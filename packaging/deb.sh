#!/usr/bin/env bash
# Builds packages for Debian from packaging/debian, in a copy of the tree, and has lintian check them:
#
#     packaging/deb.sh FOLDER          (make deb: build/deb)
#
# The upstream tarball is the source distribution of `make sdist`. FOLDER gets the packages, the source package
# and the .changes file; nothing is signed or uploaded.
set -euo pipefail

cd "$(dirname "$0")/.."
for tool in dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || { echo "deb.sh: $tool is not installed (Debian: build-essential, debhelper, dh-python, lintian)" >&2; exit 1; }
done
version=$(sed -n 's/^VERSION = //p' Makefile)
folder=$1
rm -rf "$folder"
mkdir -p "$folder"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)}"
export SOURCE_DATE_EPOCH

python3 packaging/backend.py "$folder" >"$folder/log"
mv "$folder/fraglab-$version.tar.gz" "$folder/fraglab_$version.orig.tar.gz"
tar -xzf "$folder/fraglab_$version.orig.tar.gz" -C "$folder"
cp -r packaging/debian "$folder/fraglab-$version/debian"
(cd "$folder/fraglab-$version" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -j"${JOBS:-2}") >>"$folder/log" 2>&1 ||
    { tail -n 30 "$folder/log" >&2; exit 1; }
# That a first upload closes the bug that asked for the package holds for Debian's own archive alone.
lintian --allow-root --fail-on error,warning --info --suppress-tags initial-upload-closes-no-bugs "$folder"/fraglab_"$version"-*.changes
rm -rf "$folder/fraglab-$version"
ls "$folder"/*.deb "$folder"/*.changes
