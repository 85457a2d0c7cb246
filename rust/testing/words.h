/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _RDMA_RS_TESTING_WORDS_H
#define _RDMA_RS_TESTING_WORDS_H

/*
 * Words of the hardware computed with the field macros of the kernel's own irdma
 * headers, for the unit tests to compare with. Only KUnit kernels have them.
 *
 * Arguments are plain numbers in host byte order; results are words in host byte order.
 * A number that is wider than its field loses its upper bits. IP addresses are four
 * 32-bit numbers, the most significant first; an IPv4 address is the first of them. MAC
 * addresses are six octets in wire order.
 */

#include <linux/types.h>

/* Words in a control WQE, and in the context of a queue pair. */
#define RDMA_RS_CQP_WORDS 8
#define RDMA_RS_QPC_WORDS 32

enum rdma_rs_qp_state {
	RDMA_RS_QP_IDLE,
	RDMA_RS_QP_RTS,
	RDMA_RS_QP_SQD,
	RDMA_RS_QP_RTR,
	RDMA_RS_QP_TERMINATE,
	RDMA_RS_QP_ERROR,
};

enum rdma_rs_page_size {
	RDMA_RS_PAGE_4K,
	RDMA_RS_PAGE_2M,
	RDMA_RS_PAGE_1G,
};

enum rdma_rs_op {
	RDMA_RS_OP_CREATE,
	RDMA_RS_OP_MODIFY,
	RDMA_RS_OP_DESTROY,
};

/* Numbers that have a name, for rdma_rs_number(). */
enum rdma_rs_name {
	RDMA_RS_SQ_RDMA_WRITE,
	RDMA_RS_SQ_RDMA_READ,
	RDMA_RS_SQ_SEND,
	RDMA_RS_SQ_SEND_INV,
	RDMA_RS_SQ_SEND_SOLICITED,
	RDMA_RS_SQ_SEND_SOLICITED_INV,
	RDMA_RS_SQ_BIND_MW,
	RDMA_RS_SQ_FAST_REGISTER,
	RDMA_RS_SQ_LOCAL_INVALIDATE,
	RDMA_RS_SQ_RDMA_READ_LOCAL_INV,
	RDMA_RS_SQ_NOP,
	RDMA_RS_SQ_RDMA_WRITE_SOLICITED,
	RDMA_RS_FLUSH_GENERAL,
	RDMA_RS_FLUSH_PROT,
	RDMA_RS_FLUSH_REM_ACCESS,
	RDMA_RS_FLUSH_LOC_QP_OP,
	RDMA_RS_FLUSH_REM_OP,
	RDMA_RS_FLUSH_LOC_LEN,
	RDMA_RS_FLUSH_FATAL,
	RDMA_RS_FLUSH_RETRY_EXC,
	RDMA_RS_FLUSH_MW_BIND,
	RDMA_RS_FLUSH_REM_INV_REQ,
	RDMA_RS_FLUSH_RNR_RETRY_EXC,
	RDMA_RS_FLUSH_MAJOR,
	RDMA_RS_AE_CQ_OPERATION_ERROR,
	RDMA_RS_AE_ROCE_EMPTY_MCG,
	RDMA_RS_AE_ROCE_BAD_MC_IP_ADDR,
	RDMA_RS_AE_ROCE_BAD_MC_QPID,
	RDMA_RS_AE_MCG_QP_PROTOCOL_MISMATCH,
	RDMA_RS_AE_LLP_DOUBT_REACHABILITY,
	RDMA_RS_AE_LLP_CONNECTION_ESTABLISHED,
	RDMA_RS_AE_RESOURCE_EXHAUSTION,
	RDMA_RS_AE_RESET_NOT_SENT,
	RDMA_RS_AE_LCE_FUNCTION_CATASTROPHIC,
	RDMA_RS_AE_LCE_CQ_CATASTROPHIC,
	RDMA_RS_AE_QP_SUSPEND_COMPLETE,
	RDMA_RS_AE_ADAPTER_CATASTROPHIC,
	RDMA_RS_ACCESS_LOCAL_READ,
	RDMA_RS_ACCESS_LOCAL_WRITE,
	RDMA_RS_ACCESS_REMOTE_READ,
	RDMA_RS_ACCESS_REMOTE_WRITE,
	RDMA_RS_SQ_RESERVED,
	RDMA_RS_RQ_RESERVED,
	RDMA_RS_MAX_WQ_QUANTA,
	RDMA_RS_MAX_QUANTA_PER_WR,
	RDMA_RS_MAX_MCAST_MEMBERS,
	RDMA_RS_MAX_MCAST_GROUPS,
	RDMA_RS_NAMES,
};

struct rdma_rs_qp_words {
	u32 id;
	bool ud;
	u64 context;
	u64 shadow;
	bool virtual_rings;
	enum rdma_rs_qp_state next;
	bool ord_valid;
	bool cq_num_valid;
	bool arp_index_valid;
};

struct rdma_rs_cq_words {
	u32 id;
	u32 ceq;
	u32 entries;
	bool paged;
	u64 ring;
	u32 pbl;
	u64 shadow;
	u32 threshold;
	bool mask_events;
	u16 vsi;
};

struct rdma_rs_stag_words {
	u32 index;
	u8 key;
	u32 pd;
	u8 rights;
	u64 va_or_offset;
	bool va_based;
	u64 length;
	enum rdma_rs_page_size page_size;
	/* 0, 1 or 3: contiguous, one level of lists, two. */
	u8 levels;
	u64 address;
	u32 pbl;
};

struct rdma_rs_sd_words {
	u32 index;
	bool direct;
	bool valid;
	u64 address;
};

struct rdma_rs_node_words {
	enum rdma_rs_op op;
	u16 id;
	u16 parent;
	bool leaf;
	bool enabled;
	u8 weight;
	u8 traffic_class;
	u16 vsi;
};

struct rdma_rs_ah_words {
	u32 index;
	u32 pd;
	u8 mac[6];
	u16 arp_index;
	bool ipv4;
	u32 source[4];
	u32 destination[4];
	u8 traffic_class;
	u8 hop_limit;
	u32 flow_label;
	bool insert_vlan;
	u16 vlan;
	bool loopback;
};

struct rdma_rs_group_words {
	u16 index;
	bool ipv4;
	u32 ip[4];
	u8 mac[6];
	bool vlan_valid;
	u16 vlan;
	u8 function;
	u16 qs_handle;
	u64 context;
};

struct rdma_rs_qpc_words {
	u64 sq_addr;
	u64 rq_addr;
	u8 sq_size;
	u8 rq_size;
	u8 rq_wqe_size;
	u32 pd;
	u32 send_cq;
	u32 recv_cq;
	u64 completion_context;
	u16 mtu;
	u16 pkey;
	u32 qkey;
	u8 mac[6];
	u16 qs_handle;
	bool privileged;
	bool remote_read;
	bool remote_write;
	u32 dest_qp;
	bool psn_valid;
	u32 send_psn;
	u32 recv_psn;
	u8 retry;
	u8 rnr_retry;
	/* The rest counts if there is a far end. */
	bool connected;
	bool ipv4;
	u32 local_ip[4];
	u32 remote_ip[4];
	u16 arp_index;
	bool insert_vlan;
	u16 vlan;
	u8 tos;
	u8 ttl;
	u32 flow_label;
	u16 src_port;
};

struct rdma_rs_send_words {
	bool valid;
	bool signaled;
	bool read_fence;
	bool immediate;
	u8 fragments;
	enum rdma_rs_name opcode;
	u32 ah;
};

struct rdma_rs_cqe_words {
	u32 length;
	u64 context;
	u32 qp;
	u32 source_qp;
	bool valid;
	bool sq;
	u8 op;
	bool error;
	bool solicited;
	bool ipv4;
	bool extended;
	u16 wqe_index;
	u16 major;
	u16 minor;
};

struct rdma_rs_ext_words {
	bool valid;
	bool imm_valid;
	u32 imm;
	bool smac_valid;
	u8 smac[6];
	bool vlan_valid;
	u16 vlan;
};

struct rdma_rs_ccqe_words {
	bool valid;
	bool error;
	u16 wqe_index;
	u16 major;
	u16 minor;
	u32 result;
};

struct rdma_rs_aeqe_words {
	bool valid;
	u8 source;
	u32 number;
	u16 code;
	bool overflow;
};

struct rdma_rs_arm_words {
	u8 sequence;
	bool next_solicited;
	bool next;
	u16 select;
};

u32 rdma_rs_number(enum rdma_rs_name name);

void rdma_rs_words_qp(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_qp_words *qp);
void rdma_rs_words_cq(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_cq_words *cq);
void rdma_rs_words_ceq(u64 *wqe, bool valid, enum rdma_rs_op op, u32 id, u32 entries,
		       u64 ring, u16 vsi);
void rdma_rs_words_aeq(u64 *wqe, bool valid, enum rdma_rs_op op, u32 entries, u64 ring);
void rdma_rs_words_reg_mr(u64 *wqe, bool valid, const struct rdma_rs_stag_words *mr);
void rdma_rs_words_dealloc_stag(u64 *wqe, bool valid, u32 index, u32 pd);
void rdma_rs_words_arp(u64 *wqe, bool valid, enum rdma_rs_op op, u16 index,
		       const u8 *mac);
void rdma_rs_words_query_features(u64 *wqe, bool valid, u64 buffer, u32 size);
void rdma_rs_words_query_fpm(u64 *wqe, bool valid, u8 function, u64 buffer);
void rdma_rs_words_commit_fpm(u64 *wqe, bool valid, u8 function, u64 buffer, u32 size);
void rdma_rs_words_pages_allocated(u64 *wqe, bool valid, u8 function);
void rdma_rs_words_update_sds(u64 *wqe, bool valid, u8 function,
			      const struct rdma_rs_sd_words *sds, u32 count);
void rdma_rs_words_flush(u64 *wqe, bool valid, u32 qp, u16 sq_code, u16 rq_code);
void rdma_rs_words_suspend(u64 *wqe, bool valid, u32 qp);
void rdma_rs_words_resume(u64 *wqe, bool valid, u32 qp, u16 qs_handle);
void rdma_rs_words_node(u64 *wqe, bool valid, const struct rdma_rs_node_words *node);
void rdma_rs_words_ah(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_ah_words *ah);
void rdma_rs_words_group(u64 *wqe, bool valid, enum rdma_rs_op op,
			 const struct rdma_rs_group_words *group);

u64 rdma_rs_word_member(u32 qp);
void rdma_rs_words_qpc(u64 *context, const struct rdma_rs_qpc_words *qp);
u64 rdma_rs_word_send_header(const struct rdma_rs_send_words *send);
u64 rdma_rs_word_recv_header(bool valid, u8 fragments);
u64 rdma_rs_word_ud_destination(u32 qpn, u32 qkey);
u64 rdma_rs_word_fragment(bool valid, u32 length, u32 stag);
void rdma_rs_words_cqe(u64 *cqe, const struct rdma_rs_cqe_words *args);
void rdma_rs_words_ext(u64 *ext, const struct rdma_rs_ext_words *args);
void rdma_rs_words_ccqe(u64 *cqe, const struct rdma_rs_ccqe_words *args);
void rdma_rs_words_aeqe(u64 *aeqe, const struct rdma_rs_aeqe_words *args);
u64 rdma_rs_word_arm(const struct rdma_rs_arm_words *arm);
u64 rdma_rs_word_consumer(u32 index);

/* What the kernel's headers make of addresses. */
bool rdma_rs_is_multicast(const u8 *gid);
void rdma_rs_group_mac(bool ipv4, const u32 *ip, u8 *mac);

#endif /* _RDMA_RS_TESTING_WORDS_H */
