#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Ordinary networking through stock ice on the virtual card. Runs in two guests
# at once; the first asks, the second answers.

# shellcheck source=tests/guest/lib/lan.sh
. /opt/irdma_rs/tests/guest/lib/lan.sh

vlan=5
net=10.98.0

# meet: both nodes are here.
meetings=0
meet() {
	meetings=$((meetings + 1))
	lab-sync "lan-test-$meetings" >/dev/null
}

# card PATH: a number the card counts.
card() {
	nicctl -q "$1" lan
}

# ---- what the tools say -------------------------------------------------------

no_safe_mode() {
	dmesg | grep -q 'DDP package was successfully loaded' &&
		! dmesg | grep -q 'Safe Mode'
}

driver_info() {
	ethtool -i "$NETDEV" >/tmp/info
	cat /tmp/info
	grep -qx 'driver: ice' /tmp/info && grep -q '^firmware-version: 4\.32 ' /tmp/info
}

devlink_info() {
	devlink dev info "pci/$(function_of)" | tee /tmp/info
	grep -q 'board.id VE8100-001' /tmp/info &&
		grep -q 'fw.app.name virtual E810 package' /tmp/info
}

# feature NAME: is on.
feature() {
	ethtool -k "$NETDEV" | grep -q "^$1: on"
}

spreads() {
	ethtool -x "$NETDEV" >/tmp/info
	head -n 3 /tmp/info
	grep -q 'with 2 RX ring' /tmp/info && grep -q '^ *0: *[01] ' /tmp/info
}

tools() {
	check "full mode with our package" no_safe_mode
	check "ethtool -i" driver_info
	check "devlink dev info" devlink_info
	for name in rx-checksumming tx-checksumming tcp-segmentation-offload \
		rx-vlan-offload tx-vlan-offload rx-vlan-filter receive-hashing; do
		check "ethtool -k: $name is on" feature "$name"
	done
	check "ethtool -x" spreads
	check "ethtool -S" statistic rx_bytes.nic
	check "ethtool self-test, online" ethtool -t "$NETDEV" online
	for option in -a -c -g -l -T -d -P --show-fec; do
		check "ethtool $option" ethtool "$option" "$NETDEV"
	done
	check "speed" grep -qx 100000 "/sys/class/net/$NETDEV/speed"
}

# ---- reachability -------------------------------------------------------------

reachability() {
	leads && check "echo, IPv4" reach "$peer"
	leads && check "echo, IPv6" reach "$peer6"
	meet
	check "MTU 9000" ip link set "$NETDEV" mtu 9000
	meet
	leads && check "echo of 9000 bytes, IPv4" reach "$peer" -M 'do' -s 8972
	leads && check "echo of 9000 bytes, IPv6" reach "$peer6" -M 'do' -s 8952
	leads && check "echo in fragments, IPv4" reach "$peer" -s 20000
	leads && check "echo in fragments, IPv6" reach "$peer6" -s 20000
	check_transfer "TCP with 9000 bytes" "$IP" "$peer" 500000
	meet
	check "MTU 1500" ip link set "$NETDEV" mtu 1500
	meet
}

# check_transfer NAME OWN PEER SIZE: the same bytes there and back.
check_transfer() {
	if leads; then
		check "$1" "$here/lan-traffic" echo "$3" --size "$4"
	else
		check "$1" "$here/lan-traffic" serve "$2"
	fi
}

# check_datagrams NAME OWN PEER OPTION...: the same datagrams arrive.
check_datagrams() {
	name=$1 own=$2 other=$3
	shift 3
	if leads; then
		check "$name" "$here/lan-traffic" spray "$other" --count 200 --size 1400 "$@"
	else
		check "$name" "$here/lan-traffic" sink "$own" --count 200 --size 1400
	fi
}

# ---- VLAN ---------------------------------------------------------------------

make_vlan() {
	ip link add link "$NETDEV" name "$NETDEV.$vlan" type vlan id "$vlan" &&
		ip addr add "$net.$((NODE + 1))/24" dev "$NETDEV.$vlan" &&
		ip link set "$NETDEV.$vlan" up
}

# ---- filters ------------------------------------------------------------------

# seen COUNT NAME MAC [OPTION...]: how many of five frames come through.
seen() {
	count=$1 name=$2 mac=$3
	shift 3
	if leads; then
		meet
		"$here/lan-traffic" raw "$NETDEV" "$mac" --count 5 --text probe "$@"
		"$here/lan-traffic" raw "$NETDEV" "$peer_mac" --text 'end of watch'
	else
		: >/tmp/seen
		"$here/lan-traffic" watch "$NETDEV" --text probe >/tmp/seen &
		until_true 20 grep -q watching /tmp/seen
		meet
		wait "$!"
		check "$name" test "$(tail -n 1 /tmp/seen)" = "$count"
	fi
	meet
}

# rule TEXT: whether the card has a rule with that in it.
rule() {
	nicctl lan | grep -q "\"$1"
}

no_rule() {
	! rule "$1"
}

# promiscuous true|false: whether the card passes frames for others.
promiscuous() {
	[ "$(card promiscuous)" = "$1" ]
}

filters() {
	foreign=02:e8:10:00:00:99
	group=01:00:5e:01:02:03
	peer_mac=$(ip neigh show "$peer" dev "$NETDEV" |
		awk '{ for (i = 1; i < NF; i++) if ($i == "lladdr") print $(i + 1) }')

	seen 5 "frames for the own address come in" "${peer_mac:-none}"
	seen 5 "broadcast comes in" ff:ff:ff:ff:ff:ff
	seen 0 "frames for another address stay out" "$foreign"
	seen 0 "frames for a group stay out" "$group"
	seen 0 "frames of another VLAN stay out" "$peer_mac" --vlan 7

	leads || { ip maddr add "$group" dev "$NETDEV" && until_true 20 rule "$group"; }
	seen 5 "frames for a joined group come in" "$group"
	leads || { ip maddr del "$group" dev "$NETDEV" && until_true 20 no_rule "$group"; }
	seen 0 "frames for a left group stay out" "$group"

	leads || { ip link set "$NETDEV" allmulticast on && until_true 20 rule Promiscuous; }
	seen 5 "all groups come in with allmulticast" "$group"
	leads || { ip link set "$NETDEV" allmulticast off && until_true 20 no_rule Promiscuous; }
	seen 0 "groups stay out without" "$group"

	leads || { ip link set "$NETDEV" promisc on && until_true 20 promiscuous true; }
	seen 5 "promiscuous: other addresses come in" "$foreign"
	leads || { ip link set "$NETDEV" promisc off && until_true 20 promiscuous false; }
	seen 0 "not promiscuous: other addresses stay out" "$foreign"
}

new_address() {
	if ! leads; then
		ip link set "$NETDEV" down &&
			ip link set "$NETDEV" address 02:e8:10:00:00:77 &&
			ip link set "$NETDEV" up
		until_true 20 carrier 1
		ip addr add "$IP6/64" dev "$NETDEV" nodad 2>/dev/null
		check "a rule for the new address" rule 02:e8:10:00:00:77
	fi
	meet
	leads && ip neigh flush dev "$NETDEV"
	leads && check "echo to a new address" reach "$peer"
	meet
	if ! leads; then
		old=$(ethtool -P "$NETDEV" | awk '{ print $3 }')
		ip link set "$NETDEV" down && ip link set "$NETDEV" address "$old" &&
			ip link set "$NETDEV" up
		until_true 20 carrier 1
		ip addr add "$IP6/64" dev "$NETDEV" nodad 2>/dev/null
	fi
	meet
	leads && ip neigh flush dev "$NETDEV"
	leads && check "echo to the old address again" reach "$peer"
	meet
}

# ---- offloads -----------------------------------------------------------------

errors() {
	awk '/^Tcp:|^Udp:|^Ip:/ { if (!($1 in head)) { head[$1] = $0; next }
		n = split(head[$1], names); split($0, values)
		for (i = 2; i <= n; i++) if (names[i] == "InCsumErrors" ||
			names[i] == "InHdrErrors") sum += values[i] }
		END { print sum }' /proc/net/snmp
}

# offload on|off: all offloads of this node.
offload() {
	ethtool -K "$NETDEV" rx "$1" tx "$1" tso "$1" gso "$1" gro "$1" \
		tx-udp-segmentation "$1" rxvlan "$1" txvlan "$1"
}

# offloads FIRST SECOND: with these of both nodes, traffic is the same.
offloads() {
	with="offloads $1 and $2"
	mine=$2
	leads && mine=$1
	check "$with: set" offload "$mine"
	meet
	before=$(card offloads.segmented)
	wrong=$(errors)
	check_transfer "$with: TCP, IPv4" "$IP" "$peer" 1000000
	meet
	check_transfer "$with: TCP, IPv6" "$IP6" "$peer6" 500000
	meet
	check_transfer "$with: TCP, VLAN" "$net.$((NODE + 1))" "$net.2" 500000
	meet
	check_datagrams "$with: UDP" "$IP" "$peer"
	meet
	check_datagrams "$with: UDP in segments, IPv4" "$IP" "$peer" --segment
	meet
	check_datagrams "$with: UDP in segments, IPv6" "$IP6" "$peer6" --segment
	meet
	check "$with: no checksum was wrong" test "$(errors)" = "$wrong"
	now=$(card offloads.segmented)
	if [ "$mine" = on ]; then
		check "$with: the card cut segments" test "$now" -gt "$before"
	else
		check "$with: the card cut none" test "$now" = "$before"
	fi
	meet
}

# tunnel KIND OPTION...: an interface in a tunnel to the peer.
tunnel() {
	[ "$1" = geneve ] || set -- "$@" local "$IP"
	ip link add tunnel0 type "$@" remote "$peer" &&
		ip addr add "10.97.0.$((NODE + 1))/24" dev tunnel0 &&
		ip link set tunnel0 up
}

# tunnels: the card segments inside tunnels, too.
tunnels() {
	wrong=$(errors)
	for kind in 'vxlan id 7 dstport 4789 udpcsum' 'vxlan id 7 dstport 4789 noudpcsum' \
		'geneve id 5' gretap ipip; do
		# shellcheck disable=SC2086
		check "tunnel: $kind" tunnel $kind
		meet
		before=$(card offloads.segmented)
		check_transfer "tunnel: $kind: TCP" "10.97.0.$((NODE + 1))" 10.97.0.2 500000
		meet
		check "tunnel: $kind: the card cut segments" \
			test "$(card offloads.segmented)" -gt "$before"
		ip link del tunnel0
		meet
	done
	check "tunnels: no checksum was wrong" test "$(errors)" = "$wrong"
	meet
}

wrong_checksum() {
	if leads; then
		meet
		check "send wrong checksums" "$here/lan-traffic" raw "$NETDEV" "$peer_mac" \
			--count 5 --damaged "$peer" --source "$IP"
		meet
	else
		wrong=$(errors)
		bad=$(card offloads.bad_checksums)
		meet
		meet
		check "the card saw wrong checksums" \
			until_true 10 sh -c "[ \$(nicctl -q offloads.bad_checksums lan) -ge $((bad + 5)) ]"
		# The kernel only looks where somebody listens.
		check "the kernel took none for right" test "$(errors)" -ge "$wrong"
	fi
}

# queue N: packets that came through a receive queue.
queue() {
	statistic "rx_queue_$1_packets" || echo 0
}

spreading() {
	if leads; then
		meet
		check "datagrams from 64 ports" "$here/lan-traffic" scatter "$peer" --count 64
		meet
	else
		first=$(queue 0) second=$(queue 1)
		meet
		meet
		check "flows reach both queues" \
			test "$(queue 0)" -gt "$first" -a "$(queue 1)" -gt "$second"
	fi
	meet
}

# ---- statistics and link ------------------------------------------------------

grows() {
	statistic "$1" | {
		read -r now
		[ "$now" -ge "$(($2 + $3))" ]
	}
}

statistics() {
	received=$(statistic rx_unicast.nic) sent=$(statistic tx_unicast.nic)
	bytes_received=$(statistic rx_bytes.nic) bytes_sent=$(statistic tx_bytes.nic)
	meet
	leads && check "echoes to count" ping -n -q -c 20 -i 0.05 -s 1000 "$peer"
	meet
	check "statistics: frames received" until_true 10 grows rx_unicast.nic "$received" 20
	check "statistics: frames sent" until_true 10 grows tx_unicast.nic "$sent" 20
	check "statistics: bytes received" until_true 10 grows rx_bytes.nic "$bytes_received" 20840
	check "statistics: bytes sent" until_true 10 grows tx_bytes.nic "$bytes_sent" 20840
	meet
}

link() {
	if leads; then
		check "link down" nicctl link up=false
		check "carrier is lost" until_true 20 carrier 0
		refuse "no echo without a link" ping -n -q -c 2 -W 1 "$peer"
		check "link up" nicctl link up=true
		check "carrier is back" until_true 20 carrier 1
		# The neighbour may have been given up meanwhile: ask until it is asked for again.
		check "echo after the link came back" until_true 20 reach "$peer"
	fi
	meet
}

tools
meet
reachability
check "make a VLAN" make_vlan
meet
leads && check "echo in a VLAN" reach "$net.2"
meet
filters
new_address
offloads on on
offloads off on
offloads on off
offloads off off
offload on >/dev/null
meet
tunnels
wrong_checksum
spreading
statistics
link
check "remove the VLAN" ip link del "$NETDEV.$vlan"
refuse "the kernel has nothing to complain about" \
	sh -c "dmesg | grep -E 'WARNING:|BUG:|Call Trace|ice .*(error|fail|timeout)'"
finish
