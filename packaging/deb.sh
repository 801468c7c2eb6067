#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Debian packages: `packaging/deb.sh FOLDER [PACKAGE...]`. PACKAGE is shunt or shunt-dpdk (default: both).
# The programs must be built already: target/release/shunt and target/dpdk/release/shunt, or SHUNT and SHUNT_DPDK.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly output=${1:?usage: packaging/deb.sh FOLDER [PACKAGE...]}
shift
packages=("$@")
[ "${#packages[@]}" -gt 0 ] || packages=(shunt shunt-dpdk)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-1
architecture=$(dpkg --print-architecture)
# The time of the last commit, so that the same tree makes the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1764288000)}
export SOURCE_DATE_EPOCH
readonly version architecture
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT
umask 022

# compress FILE: compresses a file as Debian requires.
compress() { gzip -9n "$1"; }

# documents ROOT PACKAGE: installs the licence, the list of changes, the pages and the examples.
documents() {
    local folder=$1/usr/share/doc/$2
    mkdir -p "$folder/examples"
    cp packaging/debian/copyright "$folder/copyright"
    sed "s/@PACKAGE@/$2/; s/@VERSION@/$version/g; s/@DATE@/$(date -R -u -d "@$SOURCE_DATE_EPOCH")/" \
        packaging/debian/changelog >"$folder/changelog.Debian"
    compress "$folder/changelog.Debian"
    cp docs/{security,configuration,commands,flow-syntax,counters,metrics,controllers}.md "$folder/"
    cp -r examples/grafana examples/sim examples/device "$folder/examples/"
    cp packaging/switch.toml "$folder/examples/"
    find "$folder" -type f -exec chmod 644 {} +
}

# program ROOT FILE: installs the program with its man pages and completions, which the program writes.
program() {
    local root=$1 page made=$work/made
    install -D -m 755 "$2" "$root/usr/bin/shunt"
    strip --remove-section=.comment --remove-section=.note "$root/usr/bin/shunt"
    rm -rf "$made"
    "$2" generate "$made"
    install -d "$root/usr/share/man/man1"
    for page in "$made/man"/*.1; do
        install -m 644 "$page" "$root/usr/share/man/man1/"
        compress "$root/usr/share/man/man1/${page##*/}"
    done
    install -D -m 644 "$made/completions/shunt.bash" "$root/usr/share/bash-completion/completions/shunt"
    install -D -m 644 "$made/completions/_shunt" "$root/usr/share/zsh/vendor-completions/_shunt"
    install -D -m 644 "$made/completions/shunt.fish" "$root/usr/share/fish/vendor_completions.d/shunt.fish"
}

# depends ROOT: prints the packages with the libraries that the program needs.
depends() {
    mkdir -p "$work/depends/debian"
    printf 'Source: shunt\n\nPackage: shunt\nArchitecture: any\n' >"$work/depends/debian/control"
    (cd "$work/depends" && dpkg-shlibdeps -O --ignore-missing-info "$1/usr/bin/shunt" 2>/dev/null) |
        sed -n 's/^shlibs:Depends=//p'
}

# package NAME PROGRAM: makes a package.
package() {
    local name=$1 root=$work/$1 control=$work/$1/DEBIAN script
    [ -x "$2" ] || {
        printf 'deb: %s is missing; run make deb first\n' "$2" >&2
        exit 1
    }
    program "$root" "$2"
    documents "$root" "$name"
    install -D -m 644 packaging/switch.toml "$root/etc/shunt/switch.toml"
    install -D -m 644 packaging/shunt.service "$root/lib/systemd/system/shunt.service"
    [ "$name" = shunt ] ||
        install -D -m 644 packaging/dpdk.conf "$root/lib/systemd/system/shunt.service.d/dpdk.conf"

    install -d "$control"
    for script in postinst prerm postrm; do
        install -m 755 "packaging/debian/$script" "$control/$script"
    done
    printf '/etc/shunt/switch.toml\n' >"$control/conffiles"
    {
        sed "s/@VERSION@/$version/g; s/@ARCHITECTURE@/$architecture/; s/@DEPENDS@/$(depends "$root")/" \
            "packaging/debian/control.$name"
        printf 'Installed-Size: %s\n' "$(du -k --apparent-size -s "$root" | cut -f 1)"
    } >"$control/control.all"
    # The size belongs before the description.
    { grep '^Installed-Size' "$control/control.all" && grep -v '^Installed-Size' "$control/control.all"; } |
        awk 'NR == 1 { size = $0; next } /^Description:/ { print size } { print }' >"$control/control"
    rm "$control/control.all"
    (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) \
        >"$control/md5sums"
    chmod 644 "$control/md5sums" "$control/control" "$control/conffiles"
    dpkg-deb --root-owner-group --build "$root" "$output/${name}_${version}_$architecture.deb" >/dev/null
    printf '%s\n' "$output/${name}_${version}_$architecture.deb"
}

mkdir -p "$output"
for name in "${packages[@]}"; do
    case $name in
        shunt) package shunt "${SHUNT:-target/release/shunt}" ;;
        shunt-dpdk) package shunt-dpdk "${SHUNT_DPDK:-target/dpdk/release/shunt}" ;;
        *)
            printf 'deb: there is no package %s; use shunt or shunt-dpdk\n' "$name" >&2
            exit 2
            ;;
    esac
done
