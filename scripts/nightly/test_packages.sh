#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the packages, and uses the one without DPDK as an administrator does: installs it into a clean Debian,
# starts the switch as its service would, forwards, applies a changed configuration, stops and removes it. Nothing
# may be left. lintian must find no error. `test_packages.sh [FOLDER]` uses packages that exist already.
# Needs root, debootstrap and lintian. DEBIAN_ROOT is a folder with a clean Debian, which is
# copied instead of made.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"

for tool in debootstrap lintian setpriv; do
    command -v "$tool" >/dev/null || fail "$tool is missing; install the package of this name, or util-linux"
done
packages=${1:-}
if [ -z "$packages" ]; then
    make --no-print-directory deb
    packages=target/deb
fi
deb=$(compgen -G "$packages/shunt_*.deb" | head -n 1)
for file in "$packages"/shunt*.deb; do
    lintian --fail-on error "$file" >"$folder/lintian.log" 2>&1 || fail "lintian finds errors in ${file##*/}"
done
ok 'lintian finds no error'

readonly root=$folder/root
in_root() { PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"; }
# files: prints all files of the root, without lists of packages, logs, caches, and the files that `adduser` makes
# for itself.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg \
        -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./run/adduser \
        -o -path './etc/*shadow-' -o -path './etc/passwd-' -o -path './etc/group-' \) -prune -o -print | LC_ALL=C sort)
}
if [ -n "${DEBIAN_ROOT:-}" ]; then
    cp -a "$DEBIAN_ROOT" "$root"
else
    debootstrap --variant=minbase --include=adduser,init-system-helpers,man-db bookworm "$root" \
        >"$folder/debootstrap.log" 2>&1 || fail 'debootstrap failed'
fi
cp "$deb" "$root/tmp/shunt.deb"
files >"$folder/before"
in_root dpkg --install /tmp/shunt.deb >"$folder/install.log" 2>&1 || fail 'the package cannot be installed'
in_root id shunt >"$folder/id.log" || fail 'there is no user shunt'
in_root shunt --version >"$folder/version.log"
[ "$(in_root find /usr/share/man/man1 -name 'shunt*.1.gz' | wc -l)" -gt 20 ] || fail 'man pages are missing'
in_root man --path >/dev/null
for page in shunt shunt-run shunt-port-add; do
    zcat "$root/usr/share/man/man1/$page.1.gz" | grep '^\.SH NAME' >/dev/null || fail "the page $page has no name"
done
grep -q 'complete .*shunt' "$root/usr/share/bash-completion/completions/shunt" || fail 'there is no completion'
in_root shunt check --offline -c /etc/shunt/switch.toml >"$folder/check.log" || fail 'the installed configuration is wrong'
ok 'the package is installed with a user, man pages, completions and a configuration'

make_hosts 2
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
unmount() { umount "$root/proc" "$root/dev" 2>/dev/null || true; }
# clean_up reads the status of the failure.
trap 'status=$?; unmount; set +e; (exit "$status"); clean_up' EXIT
install -d -o "$(in_root id -u shunt)" -g "$(in_root id -g shunt)" -m 755 "$root/run/shunt"
install -d -o "$(in_root id -u shunt)" -g "$(in_root id -g shunt)" -m 700 "$root/var/lib/shunt"
# The first port now, the second by a reload. Each has the same number of lines.
readonly lines=$(($(wc -l <"$folder/ports") / 2))
head -n "$lines" "$folder/ports" >>"$root/etc/shunt/switch.toml"
# As the unit does: the user, its capabilities and no others.
unit() { sed -n "s/^$1=//p" packaging/shunt.service | head -n 1; }
capabilities=$(unit AmbientCapabilities | sed 's/CAP_//g; s/ /,+/g' | tr '[:upper:]' '[:lower:]')
read -r -a command < <(unit ExecStart)
background switch sw chroot "$root" setpriv --reuid shunt --regid shunt --init-groups \
    --inh-caps "-all,+$capabilities" --ambient-caps "-all,+$capabilities" --bounding-set "-all,+$capabilities" \
    --no-new-privs "${command[@]}"
switch=$started
wait_until 'the switch is ready' logged switch ready
tail -n "$lines" "$folder/ports" >>"$root/etc/shunt/switch.toml"
read -r -a command < <(unit ExecReload)
in_root setpriv --reuid shunt --regid shunt --init-groups "${command[@]}" >"$folder/reload.log" ||
    fail 'the reload failed'
grep -q 'port 2 (p2) is added' "$folder/reload.log" || fail "the reload says: $(cat "$folder/reload.log")"
pings 1 2 || fail 'no pings pass'
ok 'the installed switch forwards, and takes over a changed configuration'

kill -TERM "$switch"
status=0
wait "$switch" || status=$?
[ "$status" -eq 0 ] || fail "the switch ended with $status"
unmount
in_root dpkg --purge shunt >"$folder/purge.log" 2>&1 || fail 'the package cannot be removed'
files >"$folder/after"
diff "$folder/before" "$folder/after" >"$folder/left.log" || fail "files are left: $(head -n 5 "$folder/left.log")"
if grep shunt "$root"/etc/{passwd,group} >"$folder/left.log"; then fail 'the user is left'; fi
ok 'the package is removed without a trace'
