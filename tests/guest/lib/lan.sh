# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Shared by the LAN tests: KTAP output, the peer, the interface. To be read by a
# script that runs in two guests at once; each reports its own results.

: "${NODE:?}" "${NETDEV:?}" "${IP:?}" "${IP6:?}" "${PEERS:?}" "${PEERS6:?}"

# shellcheck disable=SC2034 # for the script that reads this
{
	here=/opt/irdma_rs/tests/guest
	peer=${PEERS%%[ ,]*}
	peer6=${PEERS6%%[ ,]*}
}
tests=0
failed=0

# result STATUS NAME: reports a test.
result() {
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		failed=$((failed + 1))
		echo "not ok $tests - $2"
	fi
}

# check NAME COMMAND...: a test that COMMAND succeeds; its output only if not.
check() {
	name=$1
	shift
	if output=$("$@" 2>&1); then
		result 0 "$name"
	else
		printf '%s\n' "$output" | sed 's/^/# /'
		result 1 "$name"
	fi
}

# refuse NAME COMMAND...: a test that COMMAND fails.
refuse() {
	name=$1
	shift
	if output=$("$@" 2>&1); then
		printf '%s\n' "$output" | sed 's/^/# /'
		result 1 "$name"
	else
		result 0 "$name"
	fi
}

# Ends the script with the plan.
finish() {
	echo "1..$tests"
	[ "$failed" = 0 ]
}

# until_true SECONDS COMMAND...: waits for a state that is on its way.
until_true() {
	end=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# Whether this node is the first, which asks; the other answers.
leads() {
	[ "$NODE" = 0 ]
}

# statistic NAME: value of a line of `ethtool -S`.
statistic() {
	ethtool -S "$NETDEV" | awk -v name="$1:" '$1 == name { print $2; found = 1 }
		END { exit !found }'
}

# carrier 0|1: whether the interface has that carrier.
carrier() {
	[ "$(cat "/sys/class/net/$NETDEV/carrier" 2>/dev/null)" = "$1" ]
}

# reach ADDRESS [OPTION...]: a few echoes come back.
reach() {
	address=$1
	shift
	ping -n -q -c 3 -i 0.2 -w 10 "$@" "$address"
}

# The PCI function of the interface.
function_of() {
	basename "$(readlink -f "/sys/class/net/$NETDEV/device")"
}
