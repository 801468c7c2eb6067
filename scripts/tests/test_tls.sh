#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# OpenFlow over TLS with real peers. The switch connects to the learning switch of os-ken, and ovs-ofctl
# connects to the switch, both with certificates of openssl. Pings must pass. Peers with an expired
# certificate, with one of another authority, without one, and with plain text must be refused, and the log
# must say why. Certificates are replaced while pings pass: the controller stays connected, and new
# connections use the new ones.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

needs target/tools/os-ken/bin/python
command -v openssl >/dev/null || fail 'openssl is missing: run scripts/setup.sh test first'

# authority NAME: creates an authority, NAME.ca.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1" \
        -keyout "$folder/$1.ca.key" -out "$folder/$1.ca" 2>>"$folder/openssl.log"
}
# issue AUTHORITY NAME DAYS: issues a certificate for 127.0.0.1. A negative number of days: it has expired.
issue() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
        -keyout "$folder/$2.key" -out "$folder/$2.csr" 2>>"$folder/openssl.log"
    printf 'subjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n' >"$folder/extensions"
    openssl x509 -req -in "$folder/$2.csr" -CA "$folder/$1.ca" -CAkey "$folder/$1.ca.key" -CAcreateserial \
        -days "$3" -extfile "$folder/extensions" -out "$folder/$2.pem" 2>>"$folder/openssl.log"
}
# use NAME AUTHORITY: replaces the switch's files.
use() {
    cp "$folder/$1.key" "$folder/switch.key.pem"
    cp "$folder/$2.ca" "$folder/switch.ca.pem"
    cp "$folder/$1.pem" "$folder/switch.pem"
}
authority good
authority foreign
issue good first 30
issue good controller 30
issue good client 30
issue good old -1
issue foreign stranger 30
use first good

make_hosts 2
# The learning switch of os-ken listens with TLS.
background learning sw target/tools/os-ken/bin/python lab/controllers/launch.py learning --idle-timeout 300 \
    --ofp-ssl-listen-port 6653 --ctl-privkey "$folder/controller.key" --ctl-cert "$folder/controller.pem" --ca-certs "$folder/good.ca"
export top="[tls]
certificate = \"$folder/switch.pem\"
private_key = \"$folder/switch.key.pem\"
ca = \"$folder/switch.ca.pem\""
export protocol=ssl openflow_listen=ssl:127.0.0.1:6654
start_switch secure
readonly address=127.0.0.1:6654
# tls NAME AUTHORITY COMMAND...: runs ovs-ofctl over TLS with the certificate of NAME.
tls() {
    local name=$1 ca=$2
    shift 2
    in_room sw ovs-ofctl -O OpenFlow13 --timeout=10 --private-key="$folder/$name.key" \
        --certificate="$folder/$name.pem" --ca-cert="$folder/$ca.ca" "$@"
}
has_tls_flow() { tls client good --no-names dump-flows "ssl:$address" | grep -- "$1"; }
wait_until 'the table-miss flow of the application' has_tls_flow 'priority=0 actions=CONTROLLER:128'
pings 1 2 || fail 'no pings pass'
wait_until 'a flow from h1 to h2' has_tls_flow "in_port=1,dl_src=$(mac 1),dl_dst=$(mac 2) actions=output:2"
ok 'os-ken and ovs-ofctl are connected over TLS'

# refuses REASON COMMAND...: the command must fail, and the log must name the reason.
refuses() {
    local reason=$1
    shift
    if "$@" >"$folder/refused.log" 2>&1; then fail "a peer was accepted, although: $reason"; fi
    wait_until "the log says: $reason" logged switch "$reason"
}
refuses 'the certificate of the peer has expired' tls old good show "ssl:$address"
refuses 'no authority in tls.ca has issued the certificate of the peer' tls stranger good show "ssl:$address"
refuses 'the peer sends plain text to an address of TLS' \
    in_room sw ovs-ofctl -O OpenFlow13 --timeout=10 show "tcp:$address"
# openssl ends by itself, because its input is at an end.
in_room sw timeout 10 openssl s_client -connect "$address" -CAfile "$folder/good.ca" </dev/null >"$folder/s_client.log" 2>&1 || true
wait_until 'the log says that there is no certificate' logged switch 'the peer presents no certificate'
ok 'expired, foreign, missing and plain peers are refused with a reason'

background steady h1 ping -q -i 0.05 10.0.0.2
ping=$started
issue foreign second 30
use second foreign
wait_until 'a peer of the new authority is accepted' tls stranger foreign show "ssl:$address"
refuses 'no authority in tls.ca has issued the certificate of the peer' tls client foreign show "ssl:$address"
tls stranger foreign --no-names dump-flows "ssl:$address" >"$folder/flows.log"
grep -q 'actions=CONTROLLER:128' "$folder/flows.log" || fail 'the flows have changed'
connected() { "$shunt" show controllers --json -c "$folder/switch.toml" | grep -- '"configured":true.*"state":"connected"'; }
connected >/dev/null || fail 'the controller was disconnected by the new certificates'
kill -INT "$ping"
wait "$ping" || true
logged steady ' 0% packet loss' || fail 'packets were lost'
ok 'certificates are replaced without an interruption'

if logged learning Traceback; then fail 'the application failed'; fi
