#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the packages, and uses each of them as an administrator does: installs it into a clean Debian, starts the
# switch as its service would, forwards, applies a changed configuration, stops and removes it. Nothing may be
# left. lintian must find no error. Then builds the container image, and forwards with it.
# `test_packages.sh [FOLDER]` uses packages that exist already.
#
# Needs root, debootstrap, lintian and buildah. DEBIAN_ROOT is a folder with a clean Debian that contains the
# dependencies of the packages, which is copied instead of made.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"

for tool in debootstrap lintian setpriv buildah; do
    command -v "$tool" >/dev/null || fail "$tool is missing: run scripts/setup.sh nightly first"
done
packages=${1:-}
if [ -z "$packages" ]; then
    make --no-print-directory deb
    packages=target/deb
fi
for file in "$packages"/shunt*.deb; do
    lintian --fail-on error "$file" >"$folder/lintian.log" 2>&1 || fail "lintian finds errors in ${file##*/}"
done
ok 'lintian finds no error'
# package NAME: prints the file of a package.
package() { compgen -G "$packages/$1_*.deb" | head -n 1; }

# needed FILE: prints the packages on which a package depends, separated by commas.
needed() {
    { dpkg-deb --field "$1" Depends && dpkg-deb --field "$1" Pre-Depends; } |
        tr ',' '\n' | sed 's/^ *//; s/[ (|].*//; /^$/d' | sort -u | paste -sd ,
}
base=${DEBIAN_ROOT:-}
if [ -z "$base" ]; then
    base=$folder/base
    debootstrap --variant=minbase \
        --include="man-db,librte-net-af-packet23,$(needed "$(package shunt)"),$(needed "$(package shunt-dpdk)")" bookworm "$base" \
        >"$folder/debootstrap.log" 2>&1 || fail 'debootstrap failed'
fi
readonly base

root=''
in_root() { PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"; }
# unmount: takes the host's folders out of the root, at once even if a process still uses them, so that the removal
# of the root cannot reach them.
unmount() {
    local inner
    [ -n "$root" ] || return 0
    for inner in proc sys dev; do
        ! mountpoint -q "$root/$inner" || umount --lazy "$root/$inner"
    done
}
# clean_up reads the status of the failure.
trap 'status=$?; unmount; set +e; (exit "$status"); clean_up' EXIT
mount_root() {
    mount --bind /proc "$root/proc"
    # DPDK looks for CPUs there.
    mount --bind /sys "$root/sys"
    mount --bind /dev "$root/dev"
}

# files: prints all files of the root, without lists of packages, logs, caches, and the files that `adduser` makes
# for itself.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg \
        -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./run/adduser \
        -o -path './etc/*shadow-' -o -path './etc/passwd-' -o -path './etc/group-' \) -prune -o -print | LC_ALL=C sort)
}

# setting NAME KEY: prints the value of a key in the unit of a package. Drop-ins replace values.
setting() {
    # The unit comes before its drop-ins.
    find "$root/lib/systemd/system" -path '*/shunt.service*' -type f -print0 | LC_ALL=C sort -z | xargs -0 cat |
        sed -n "s/^$1=//p" | tail -n 1
}

# install_package NAME: installs a package into a new root, and checks what an administrator looks for.
install_package() {
    local page
    root=$folder/$1
    cp -a "$base" "$root"
    cp "$(package "$1")" "$root/tmp/package.deb"
    files >"$folder/before"
    in_root dpkg --install /tmp/package.deb >"$folder/install.log" 2>&1 || fail "$1 cannot be installed"
    in_root id shunt >"$folder/id.log" || fail 'there is no user shunt'
    in_root shunt --version >"$folder/version.log"
    [ "$(in_root find /usr/share/man/man1 -name 'shunt*.1.gz' | wc -l)" -gt 20 ] || fail 'man pages are missing'
    for page in shunt shunt-run shunt-port-add; do
        in_root man --where "$page" >"$folder/man.log" || fail "man does not find the page $page"
        zcat "$root/usr/share/man/man1/$page.1.gz" | grep '^\.SH NAME' >/dev/null || fail "the page $page has no name"
    done
    for page in bash-completion/completions/shunt zsh/vendor-completions/_shunt fish/vendor_completions.d/shunt.fish; do
        grep -q shunt "$root/usr/share/$page" || fail "the completion $page is missing"
    done
    # shellcheck disable=SC2016
    in_root bash -c 'source /usr/share/bash-completion/completions/shunt; COMP_WORDS=(shunt re); COMP_CWORD=1
        _shunt shunt re shunt; printf "%s\n" "${COMPREPLY[@]}"' >"$folder/completed.log"
    grep -qx reload "$folder/completed.log" || fail 'bash does not complete shunt re<Tab>'
    in_root shunt check --offline -c /etc/shunt/switch.toml >"$folder/check.log" ||
        fail 'the installed configuration is wrong'
    ok "$1 is installed with a user, man pages, completions and a configuration"
}

# add_ports FIRST LAST: adds ports to the configuration in the root.
add_ports() {
    local lines=$(($(wc -l <"$folder/ports") / 2))
    sed -n "$(((${1} - 1) * lines + 1)),$(($2 * lines))p" "$folder/ports" >>"$root/etc/shunt/switch.toml"
}

# start_service NAME: starts the switch as the unit does: with the user, its capabilities and no others.
start_service() {
    local user command ambient bounding extra groups=(--init-groups)
    user=$(setting User)
    extra=$(setting SupplementaryGroups)
    [ -z "$extra" ] || groups=(--groups "$(in_root getent group "$extra" | cut -d : -f 3)")
    ambient=$(setting AmbientCapabilities | sed 's/CAP_/+/g; s/ /,/g' | tr '[:upper:]' '[:lower:]')
    bounding=$(setting CapabilityBoundingSet | sed 's/CAP_/+/g; s/ /,/g' | tr '[:upper:]' '[:lower:]')
    install -d -o "$(in_root id -u "$user")" -g "$(in_root id -g "$user")" -m 755 "$root/run/shunt"
    install -d -o "$(in_root id -u "$user")" -g "$(in_root id -g "$user")" -m 700 "$root/var/lib/shunt"
    read -r -a command < <(setting ExecStart)
    : >"$folder/switch.log"
    background switch sw chroot "$root" setpriv --reuid "$user" --regid "$user" "${groups[@]}" \
        --inh-caps "-all${ambient:+,$ambient}" --ambient-caps "-all${ambient:+,$ambient}" \
        --bounding-set "-all,$bounding" --no-new-privs "${command[@]}"
    switch=$started
    wait_until 'the switch is ready' logged switch ready
}

# reload TEXT: applies the configuration as the unit does. The answer must contain the text.
reload() {
    local command user
    user=$(setting User)
    read -r -a command < <(setting ExecReload)
    in_root setpriv --reuid "$user" --regid "$user" --init-groups "${command[@]}" >"$folder/reload.log" ||
        fail 'the reload failed'
    grep -q "$1" "$folder/reload.log" || fail "the reload says: $(cat "$folder/reload.log")"
}

end_service() {
    local status=0 runtime
    kill -TERM "$switch"
    wait "$switch" || status=$?
    [ "$status" -eq 0 ] || fail "the switch ended with $status"
    # As systemd does.
    for runtime in $(setting RuntimeDirectory); do rm -rf "$root/run/${runtime:?}"; done
}

# remove_package NAME: removes the package, of which nothing may be left.
remove_package() {
    unmount
    in_root dpkg --purge "$1" >"$folder/purge.log" 2>&1 || fail "$1 cannot be removed"
    files >"$folder/after"
    diff "$folder/before" "$folder/after" >"$folder/left.log" || fail "files are left: $(head -n 5 "$folder/left.log")"
    if grep shunt "$root"/etc/{passwd,group} >"$folder/left.log"; then fail 'the user is left'; fi
    rm -rf --one-file-system "$root"
    root=''
    ok "$1 is removed without a trace"
}

make_hosts 2
install_package shunt
mount_root
add_ports 1 1
start_service
add_ports 2 2
reload 'port 2 (p2) is added'
pings 1 2 || fail 'no pings pass'
kill -HUP "$switch"
wait_until 'the file was read after SIGHUP' logged switch 'SIGHUP: nothing changed'
pings 2 1 || fail 'no pings pass after SIGHUP'
ok 'the installed switch forwards, and takes over a changed configuration'
end_service
remove_package shunt

install_package shunt-dpdk
mount_root
# DPDK opens the interfaces by its driver for AF_PACKET, without huge pages and network cards.
sed -i 's/^driver = .*/driver = "dpdk"/; s/^device = "p\(.*\)"/device = "net_af_packet\1,iface=p\1"/' "$folder/ports"
cat >>"$root/etc/shunt/switch.toml" <<'CONFIG'
[dpdk]
eal = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error"]
mbufs = 4096
CONFIG
add_ports 1 2
start_service
pings 1 2 || fail 'no pings pass through DPDK'
reload 'nothing changed'
ok 'the installed switch forwards through DPDK'
end_service
remove_package shunt-dpdk

# The image is built on the same Debian by buildah, and its command runs with the capabilities that its file names.
storage() { buildah --root "$folder/images" --runroot "$folder/images.run" --storage-driver vfs "$@"; }
image() { storage inspect --type image --format "$1" localhost/shunt; }
mkdir -p "$folder/context/target/deb"
cp "$(package shunt)" "$folder/context/target/deb/"
tar -C "$base" -cf "$folder/base.tar" .
from=$(storage from scratch)
storage add --quiet "$from" "$folder/base.tar" / >"$folder/image.log"
storage commit --quiet "$from" localhost/base >>"$folder/image.log"
storage build --isolation chroot --network host --build-arg BASE=localhost/base -f packaging/Containerfile \
    -t localhost/shunt "$folder/context" >>"$folder/image.log" 2>&1 || fail 'the image cannot be built'
user=$(image '{{.OCIv1.Config.User}}')
# Prints lists as [WORD WORD].
read -r -a command <<<"$(image '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' | tr -d '[]')"
root=$(storage mount "$(storage from localhost/shunt)")
mount_root
sed 's/^driver = .*/driver = "af_packet"/; s/^device = .*iface=/device = "/' "$folder/ports" >>"$root/etc/shunt/switch.toml"
in_root setpriv --reuid "$user" --regid "$user" --init-groups --inh-caps -all --bounding-set -all \
    "${command[0]}" --version >"$folder/version.log" || fail 'shunt --version needs capabilities'
capabilities=$(sed -n 's/.*--cap-add \([A-Z_,]*\).*/\1/p' packaging/Containerfile | tr '[:upper:]' '[:lower:]')
: >"$folder/switch.log"
background switch sw chroot "$root" setpriv --reuid "$user" --regid "$user" --init-groups \
    --inh-caps -all --bounding-set "-all,+${capabilities//,/,+}" "${command[@]}"
switch=$started
wait_until 'the switch of the image is ready' logged switch ready
pings 1 2 || fail 'no pings pass through the switch of the image'
end_service
unmount
ok 'the image is built from the package, and its switch forwards'
