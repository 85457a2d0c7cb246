/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of irdma_rs. The functions that pass them are declared in
 * drivers/infiniband/hw/irdma_rs/trace.rs, with the same arguments.
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM irdma_rs

#if !defined(_TRACE_IRDMA_RS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IRDMA_RS_H

#include <linux/device.h>
#include <linux/in6.h>
#include <linux/tracepoint.h>

/* Operation codes of the control queue pair, by their names in the hardware's language. */
#define show_irdma_rs_op(op)				\
	__print_symbolic(op,				\
		{ 0x00, "CREATE_QP" },			\
		{ 0x01, "MODIFY_QP" },			\
		{ 0x02, "DESTROY_QP" },			\
		{ 0x03, "CREATE_CQ" },			\
		{ 0x05, "DESTROY_CQ" },			\
		{ 0x0a, "REG_MR" },			\
		{ 0x0d, "DEALLOC_STAG" },		\
		{ 0x0f, "MANAGE_ARP" },			\
		{ 0x12, "QUERY_RDMA_FEATURES" },	\
		{ 0x16, "CREATE_CEQ" },			\
		{ 0x18, "DESTROY_CEQ" },		\
		{ 0x19, "CREATE_AEQ" },			\
		{ 0x1b, "DESTROY_AEQ" },		\
		{ 0x1c, "CREATE_ADDR_HANDLE" },		\
		{ 0x1e, "DESTROY_ADDR_HANDLE" },	\
		{ 0x1f, "UPDATE_PE_SDS" },		\
		{ 0x20, "QUERY_FPM_VAL" },		\
		{ 0x21, "COMMIT_FPM_VAL" },		\
		{ 0x22, "FLUSH_WQES" },			\
		{ 0x26, "CREATE_MCAST_GRP" },		\
		{ 0x27, "MODIFY_MCAST_GRP" },		\
		{ 0x28, "DESTROY_MCAST_GRP" },		\
		{ 0x29, "SUSPEND_QP" },			\
		{ 0x2a, "RESUME_QP" },			\
		{ 0x2b, "SHMC_PAGES_ALLOCATED" },	\
		{ 0x2c, "WORK_SCHED_NODE" },		\
		{ 0x2e, "GATHER_STATS" })

/*
 * A control command ended: the device answered, or nobody expects it to any more. The error is
 * a negative errno; codes are those of the device's answer, 0 without one. The command itself
 * does not count as outstanding.
 */
TRACE_EVENT(irdma_rs_cqp,
	TP_PROTO(const struct device *dev, u8 op, u64 duration_ns, int error, u16 major, u16 minor,
		 u16 outstanding),
	TP_ARGS(dev, op, duration_ns, error, major, minor, outstanding),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__field(u64, duration_ns)
		__field(int, error)
		__field(u16, major)
		__field(u16, minor)
		__field(u16, outstanding)
		__field(u8, op)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->duration_ns = duration_ns;
		__entry->error = error;
		__entry->major = major;
		__entry->minor = minor;
		__entry->outstanding = outstanding;
		__entry->op = op;
	),
	TP_printk("dev=%s op=%s duration_ns=%llu error=%d major=0x%04x minor=0x%04x outstanding=%u",
		  __get_str(device), show_irdma_rs_op(__entry->op), __entry->duration_ns,
		  __entry->error, __entry->major, __entry->minor, __entry->outstanding)
);

/*
 * A queue pair was attached to a group, or detached from it, or was not: the error is a negative
 * errno. The index is the device's name of the group, 0 if there is none, or none any more; the
 * VLAN is -1 for a group of any.
 */
DECLARE_EVENT_CLASS(irdma_rs_mcast,
	TP_PROTO(const struct device *dev, u32 qpn, const u8 *mgid, int vlan, u16 index, int error),
	TP_ARGS(dev, qpn, mgid, vlan, index, error),
	TP_STRUCT__entry(
		__string(device, dev_name(dev))
		__array(u8, mgid, sizeof(struct in6_addr))
		__field(u32, qpn)
		__field(int, vlan)
		__field(int, error)
		__field(u16, index)
	),
	TP_fast_assign(
		__assign_str(device);
		memcpy(__entry->mgid, mgid, sizeof(struct in6_addr));
		__entry->qpn = qpn;
		__entry->vlan = vlan;
		__entry->error = error;
		__entry->index = index;
	),
	TP_printk("dev=%s qpn=%u mgid=%pI6c vlan=%d index=%u error=%d",
		  __get_str(device), __entry->qpn, __entry->mgid, __entry->vlan, __entry->index,
		  __entry->error)
);

DEFINE_EVENT(irdma_rs_mcast, irdma_rs_mcast_attach,
	TP_PROTO(const struct device *dev, u32 qpn, const u8 *mgid, int vlan, u16 index, int error),
	TP_ARGS(dev, qpn, mgid, vlan, index, error)
);

DEFINE_EVENT(irdma_rs_mcast, irdma_rs_mcast_detach,
	TP_PROTO(const struct device *dev, u32 qpn, const u8 *mgid, int vlan, u16 index, int error),
	TP_ARGS(dev, qpn, mgid, vlan, index, error)
);

#endif /* _TRACE_IRDMA_RS_H */

/* This part must be outside protection. */
#include <trace/define_trace.h>
