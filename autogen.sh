#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# autogen.sh - makes ./configure, in a tree that comes from git
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --force "$@"
