#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Resets of the virtual card under stock ice, and the ways to take ice away and
# bring it back. Runs in two guests at once; the second only answers echoes.
# Leaves ice loaded without an RDMA driver: stock irdma waits ten seconds for the
# control queue that a core reset took away, ice then reports a transmit timeout
# over rings that it has freed meanwhile, and crashes.

# shellcheck source=tests/guest/lib/lan.sh
. /opt/irdma_rs/tests/guest/lib/lan.sh

address=$(cat "/sys/class/net/$NETDEV/address")
function=$(function_of)
device=/sys/bus/pci/devices/$function

# The interface of the function, whatever its name is now.
find_netdev() {
	for dir in "$device"/net/*; do
		[ -e "$dir/address" ] || continue
		NETDEV=${dir##*/}
		return 0
	done
	return 1
}

# An auxiliary device for the RDMA driver.
rdma_device() {
	[ -n "$(find "$device/" -maxdepth 1 -name 'ice.roce.*')" ]
}

no_rdma_device() {
	! rdma_device
}

# configured: gives the interface its address back after it was new.
configured() {
	until_true 60 find_netdev || return 1
	ip link set "$NETDEV" up
	ip addr replace "$IP/24" dev "$NETDEV" && until_true 30 carrier 1
}

# state PATH: what the card counts.
state() {
	nicctl -q "lan.$1" state
}

# state_of PATH: something among what the card holds and did.
state_of() {
	nicctl -q "$1" lan
}

# more PATH NUMBER: the card has counted further than NUMBER.
more() {
	[ "$(state_of "$1")" -gt "$2" ]
}

# works NAME: after NAME the interface carries traffic and RDMA is on offer.
works() {
	check "$1: the interface is there and up" configured
	check "$1: its address is the card's" grep -qx "$address" "/sys/class/net/$NETDEV/address"
	check "$1: the RDMA device is there" until_true 30 rdma_device
	check "$1: echo" until_true 60 reach "$peer"
}

# logged TEXT COUNT: the kernel has said TEXT at least COUNT times.
logged() {
	[ "$(dmesg | grep -c "$1")" -ge "$2" ]
}

# empty: the card holds no object of a driver.
empty() {
	for name in vsis rules txqs rxqs resources qsets; do
		[ "$(state "$name")" = 0 ] || {
			echo "$name: $(state "$name")"
			return 1
		}
	done
}

flood() {
	ping -n -q -i 0.02 -w 600 "$peer" >/tmp/flood 2>&1 &
	flooding=$!
}

calm() {
	kill -INT "$flooding" 2>/dev/null
	wait "$flooding" 2>/dev/null
}

reset_function() {
	echo 1 >"$device/reset"
}

reload_ice() {
	rmmod ice && modprobe ice
}

rebind() {
	echo "$function" >/sys/bus/pci/drivers/ice/unbind &&
		until_true 10 test ! -e "$device/net" &&
		echo "$function" >/sys/bus/pci/drivers/ice/bind
}

# The offline self-test passes. Its interrupt has to arrive within a millisecond
# or two, which an emulated processor misses when the machine is busy: of that
# part one success in ten is enough.
self_test() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		ethtool -t "$NETDEV" offline >/tmp/self-test
		cat /tmp/self-test
		grep -v 'Interrupt' /tmp/self-test | grep -q '[1-9][0-9]*$' && return 1
		grep -q 'Interrupt.* 0$' /tmp/self-test && return 0
	done
	return 1
}

lead() {
	works "before"
	check "take the RDMA driver away" lab-driver unload

	downloads=$(dmesg | grep -c 'DDP package was successfully loaded')
	for round in 1 2; do
		flood
		check "core reset $round during traffic" nicctl reset kind=corer
		check "core reset $round: the package is loaded again" \
			until_true 60 logged 'DDP package' "$((downloads + round))"
		works "core reset $round"
		calm
	done

	for round in 1 2; do
		flood
		check "function-level reset $round during traffic" reset_function
		works "function-level reset $round"
		calm
	done

	commands=$(state_of commands.0x0210)
	check "a fault of the device" nicctl inject cause=ecc
	check "a fault of the device: ice rebuilt the function" \
		until_true 60 more commands.0x0210 "$commands"
	works "a fault of the device"

	check "devlink reload" devlink dev reload "pci/$function"
	works "devlink reload"

	check "unbind and bind" rebind
	works "unbind and bind"

	check "remove ice" rmmod ice
	check "without a driver the card holds nothing" empty
	check "load ice" modprobe ice
	works "load ice"

	for round in 1 2 3; do
		check "reload $round" reload_ice
	done
	works "reloads"

	check "self-test, offline" self_test
	works "self-test"

	check "RDMA off" devlink dev param set "pci/$function" name enable_roce \
		value false cmode runtime
	check "RDMA off: no device" until_true 30 no_rdma_device
	check "RDMA on" devlink dev param set "pci/$function" name enable_roce \
		value true cmode runtime
	works "RDMA on"
}

if leads; then
	lead
fi
lab-sync lan-reset-test 600 >/dev/null
refuse "the kernel has nothing to complain about" \
	sh -c "dmesg | grep -E 'WARNING:|BUG:|Call Trace'"
finish
