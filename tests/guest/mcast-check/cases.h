/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases of mcast-check. The argument of each is the family, with a number
 * in the upper bits where a case is run for several.
 */
#ifndef MCAST_CHECK_CASES_H
#define MCAST_CHECK_CASES_H

#include "bench.h"

#define CASE_ARG(family, number) ((family) | (number) << 8)
#define CASE_FAMILY(arg) ((enum family)((arg) & 0xff))
#define CASE_NUMBER(arg) ((unsigned int)(arg) >> 8)

/* delivery.c: who gets a datagram, and what of it. */
enum verdict case_members_here(void *bench, int arg);
enum verdict case_members_spread(void *bench, int arg);
enum verdict case_size(void *bench, int arg);
enum verdict case_size_of_mtu(void *bench, int arg);
enum verdict case_longer_than_mtu(void *bench, int arg);
enum verdict case_immediate(void *bench, int arg);
enum verdict case_inline(void *bench, int arg);
enum verdict case_sender_is_member(void *bench, int arg);
enum verdict case_two_groups(void *bench, int arg);
enum verdict case_stream(void *bench, int arg);
enum verdict case_wrong_qkey(void *bench, int arg);
enum verdict case_no_receive(void *bench, int arg);
enum verdict case_member_in_error(void *bench, int arg);

/* crowd.c: many members, many groups. */
enum verdict case_bad_member(void *bench, int arg);
enum verdict case_one_bit_groups(void *bench, int arg);
enum verdict case_once_on_the_wire(void *bench, int arg);

/* membership.c: attach and detach, and what they refuse. */
enum verdict case_join_and_leave(void *bench, int arg);
enum verdict case_duplicate_attach(void *bench, int arg);
enum verdict case_two_lids(void *bench, int arg);
enum verdict case_any_lid(void *bench, int arg);
enum verdict case_detach_stranger(void *bench, int arg);
enum verdict case_destroy_attached(void *bench, int arg);
enum verdict case_full_group(void *bench, int arg);
enum verdict case_other_qp_type(void *bench, int arg);
enum verdict case_unicast_gid(void *bench, int arg);
enum verdict case_group_limit(void *bench, int arg);
enum verdict case_all_destroyed(void *bench, int arg);

/* view.c: what the device itself holds meanwhile. */
enum verdict case_device_view(void *bench, int arg);
enum verdict case_killed(void *bench, int arg);
enum verdict case_nothing_left(void *bench, int arg);

/*
 * The other half of case_killed: attaches a queue pair to @group, says so on
 * stdout, and stays until it is killed.
 */
int hold_group(const struct device *device, const char *group);

#endif
