// SPDX-License-Identifier: GPL-2.0
/*
 * Words of the hardware, put together from the field macros of the kernel's irdma
 * headers: what the driver's own layouts are compared with. Built for KUnit kernels only.
 *
 * The driver declares its layouts from the hardware contract, this file from the kernel's
 * headers. Neither shall be derived from the other: where they differ, one is wrong.
 */

#include <linux/bitfield.h>
#include <linux/etherdevice.h>
#include <linux/export.h>
#include <linux/string.h>
#include <net/if_inet6.h>
#include <net/ip.h>
#include <rdma/ib_addr.h>

#include "osdep.h"
#include "hmc.h"
#include "defs.h"
#include "type.h"
#include "uda.h"
#include "uda_d.h"
#include "icrdma_hw.h"

#include "words.h"

/* What the kernel's driver programs into every RoCE queue pair. */
#define ROCE_DEST_PORT		4791
#define ROCE_SOURCE_PORT	0xc000
#define ROCE_ACK_CREDITS	0x1e
#define ROCE_CWND		0x400
#define ROCE_RTO_MIN		5
#define ROCE_LSN		0xffff
#define ROCE_ORD		255

static const u32 numbers[RDMA_RS_NAMES] = {
	[RDMA_RS_SQ_RDMA_WRITE] = IRDMAQP_OP_RDMA_WRITE,
	[RDMA_RS_SQ_RDMA_READ] = IRDMAQP_OP_RDMA_READ,
	[RDMA_RS_SQ_SEND] = IRDMAQP_OP_RDMA_SEND,
	[RDMA_RS_SQ_SEND_INV] = IRDMAQP_OP_RDMA_SEND_INV,
	[RDMA_RS_SQ_SEND_SOLICITED] = IRDMAQP_OP_RDMA_SEND_SOL_EVENT,
	[RDMA_RS_SQ_SEND_SOLICITED_INV] = IRDMAQP_OP_RDMA_SEND_SOL_EVENT_INV,
	[RDMA_RS_SQ_BIND_MW] = IRDMAQP_OP_BIND_MW,
	[RDMA_RS_SQ_FAST_REGISTER] = IRDMAQP_OP_FAST_REGISTER,
	[RDMA_RS_SQ_LOCAL_INVALIDATE] = IRDMAQP_OP_LOCAL_INVALIDATE,
	[RDMA_RS_SQ_RDMA_READ_LOCAL_INV] = IRDMAQP_OP_RDMA_READ_LOC_INV,
	[RDMA_RS_SQ_NOP] = IRDMAQP_OP_NOP,
	[RDMA_RS_SQ_RDMA_WRITE_SOLICITED] = IRDMAQP_OP_RDMA_WRITE_SOL,
	[RDMA_RS_FLUSH_GENERAL] = FLUSH_GENERAL_ERR,
	[RDMA_RS_FLUSH_PROT] = FLUSH_PROT_ERR,
	[RDMA_RS_FLUSH_REM_ACCESS] = FLUSH_REM_ACCESS_ERR,
	[RDMA_RS_FLUSH_LOC_QP_OP] = FLUSH_LOC_QP_OP_ERR,
	[RDMA_RS_FLUSH_REM_OP] = FLUSH_REM_OP_ERR,
	[RDMA_RS_FLUSH_LOC_LEN] = FLUSH_LOC_LEN_ERR,
	[RDMA_RS_FLUSH_FATAL] = FLUSH_FATAL_ERR,
	[RDMA_RS_FLUSH_RETRY_EXC] = FLUSH_RETRY_EXC_ERR,
	[RDMA_RS_FLUSH_MW_BIND] = FLUSH_MW_BIND_ERR,
	[RDMA_RS_FLUSH_REM_INV_REQ] = FLUSH_REM_INV_REQ_ERR,
	[RDMA_RS_FLUSH_RNR_RETRY_EXC] = FLUSH_RNR_RETRY_EXC_ERR,
	[RDMA_RS_FLUSH_MAJOR] = IRDMA_FLUSH_MAJOR_ERR,
	[RDMA_RS_AE_CQ_OPERATION_ERROR] = IRDMA_AE_CQ_OPERATION_ERROR,
	[RDMA_RS_AE_ROCE_EMPTY_MCG] = IRDMA_AE_ROCE_EMPTY_MCG,
	[RDMA_RS_AE_ROCE_BAD_MC_IP_ADDR] = IRDMA_AE_ROCE_BAD_MC_IP_ADDR,
	[RDMA_RS_AE_ROCE_BAD_MC_QPID] = IRDMA_AE_ROCE_BAD_MC_QPID,
	[RDMA_RS_AE_MCG_QP_PROTOCOL_MISMATCH] = IRDMA_AE_MCG_QP_PROTOCOL_MISMATCH,
	[RDMA_RS_AE_LLP_DOUBT_REACHABILITY] = IRDMA_AE_LLP_DOUBT_REACHABILITY,
	[RDMA_RS_AE_LLP_CONNECTION_ESTABLISHED] = IRDMA_AE_LLP_CONNECTION_ESTABLISHED,
	[RDMA_RS_AE_RESOURCE_EXHAUSTION] = IRDMA_AE_RESOURCE_EXHAUSTION,
	[RDMA_RS_AE_RESET_NOT_SENT] = IRDMA_AE_RESET_NOT_SENT,
	[RDMA_RS_AE_LCE_FUNCTION_CATASTROPHIC] = IRDMA_AE_LCE_FUNCTION_CATASTROPHIC,
	[RDMA_RS_AE_LCE_CQ_CATASTROPHIC] = IRDMA_AE_LCE_CQ_CATASTROPHIC,
	[RDMA_RS_AE_QP_SUSPEND_COMPLETE] = IRDMA_AE_QP_SUSPEND_COMPLETE,
	[RDMA_RS_AE_ADAPTER_CATASTROPHIC] = IRDMA_AE_ADAPTER_CATASTROPHIC,
	[RDMA_RS_ACCESS_LOCAL_READ] = IRDMA_ACCESS_FLAGS_LOCALREAD,
	[RDMA_RS_ACCESS_LOCAL_WRITE] = IRDMA_ACCESS_FLAGS_LOCALWRITE,
	[RDMA_RS_ACCESS_REMOTE_READ] = IRDMA_ACCESS_FLAGS_REMOTEREAD_ONLY,
	[RDMA_RS_ACCESS_REMOTE_WRITE] = IRDMA_ACCESS_FLAGS_REMOTEWRITE_ONLY,
	[RDMA_RS_SQ_RESERVED] = IRDMA_SQ_RSVD,
	[RDMA_RS_RQ_RESERVED] = IRDMA_RQ_RSVD,
	[RDMA_RS_MAX_WQ_QUANTA] = IRDMA_QP_SW_MAX_WQ_QUANTA,
	[RDMA_RS_MAX_QUANTA_PER_WR] = IRDMA_MAX_QUANTA_PER_WR,
	[RDMA_RS_MAX_MCAST_MEMBERS] = IRDMA_MAX_MGS_PER_CTX,
	[RDMA_RS_MAX_MCAST_GROUPS] = IRDMA_UDA_MAX_FSI_MGS,
};

u32 rdma_rs_number(enum rdma_rs_name name)
{
	return name < RDMA_RS_NAMES ? numbers[name] : U32_MAX;
}
EXPORT_SYMBOL_GPL(rdma_rs_number);

static u64 header(u8 opcode, bool valid)
{
	return FIELD_PREP(IRDMA_CQPSQ_OPCODE, opcode) |
	       FIELD_PREP(IRDMA_CQPSQ_WQEVALID, valid);
}

static void clear(u64 *wqe)
{
	memset(wqe, 0, RDMA_RS_CQP_WORDS * sizeof(*wqe));
}

static u8 pick(enum rdma_rs_op op, u8 create, u8 modify, u8 destroy)
{
	switch (op) {
	case RDMA_RS_OP_CREATE:
		return create;
	case RDMA_RS_OP_MODIFY:
		return modify;
	default:
		return destroy;
	}
}

static u8 qp_state(enum rdma_rs_qp_state state)
{
	switch (state) {
	case RDMA_RS_QP_IDLE:
		return IRDMA_QP_STATE_IDLE;
	case RDMA_RS_QP_RTS:
		return IRDMA_QP_STATE_RTS;
	case RDMA_RS_QP_SQD:
		return IRDMA_QP_STATE_SQD;
	case RDMA_RS_QP_RTR:
		return IRDMA_QP_STATE_RTR;
	case RDMA_RS_QP_TERMINATE:
		return IRDMA_QP_STATE_TERMINATE;
	case RDMA_RS_QP_ERROR:
		return IRDMA_QP_STATE_ERROR;
	default:
		return IRDMA_QP_STATE_INVALID;
	}
}

void rdma_rs_words_qp(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_qp_words *qp)
{
	u8 type = qp->ud ? IRDMA_QP_TYPE_ROCE_UD : IRDMA_QP_TYPE_ROCE_RC;
	u64 word;

	word = (qp->id & IRDMA_CQPSQ_QP_QPID_M) << IRDMA_CQPSQ_QP_QPID_S;
	word |= FIELD_PREP(IRDMA_CQPSQ_QP_QPTYPE, type);
	word |= header(pick(op, IRDMA_CQP_OP_CREATE_QP, IRDMA_CQP_OP_MODIFY_QP,
			    IRDMA_CQP_OP_DESTROY_QP), valid);

	switch (op) {
	case RDMA_RS_OP_CREATE:
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_VQ, qp->virtual_rings);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_MACVALID, 1);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_CQNUMVALID, 1);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_NEXTIWSTATE, IRDMA_QP_STATE_IDLE);
		break;
	case RDMA_RS_OP_MODIFY:
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_VQ, qp->virtual_rings);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_ORDVALID, qp->ord_valid);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_CQNUMVALID, qp->cq_num_valid);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_ARPTABIDXVALID, qp->arp_index_valid);
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_NEXTIWSTATE, qp_state(qp->next));
		break;
	case RDMA_RS_OP_DESTROY:
		word |= FIELD_PREP(IRDMA_CQPSQ_QP_REMOVEHASHENTRY, 1);
		break;
	}

	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_QP_QPCTX, qp->context);
	wqe[3] = word;
	wqe[5] = FIELD_PREP(IRDMA_CQPSQ_QP_DBSHADOWADDR, qp->shadow);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_qp);

void rdma_rs_words_cq(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_cq_words *cq)
{
	bool create = op == RDMA_RS_OP_CREATE;

	clear(wqe);
	wqe[0] = FIELD_PREP(IRDMA_CQPSQ_CQ_CQSIZE, cq->entries);
	wqe[1] = FIELD_PREP(IRDMA_CQPSQ_CQ_CQCTX, cq->id);
	wqe[5] = cq->shadow;
	if (cq->paged)
		wqe[6] = FIELD_PREP(IRDMA_CQPSQ_CQ_FIRSTPMPBLIDX, cq->pbl);
	if (create) {
		wqe[2] = FIELD_PREP(IRDMA_CQPSQ_CQ_SHADOW_READ_THRESHOLD, cq->threshold);
		wqe[4] = cq->paged ? 0 : cq->ring;
		wqe[7] = FIELD_PREP(IRDMA_CQPSQ_VSIIDX, cq->vsi);
	}
	wqe[3] = FIELD_PREP(ICRDMA_CQPSQ_CQ_CQID, cq->id) |
		 FIELD_PREP(ICRDMA_CQPSQ_CQ_CEQID, cq->ceq) |
		 FIELD_PREP(IRDMA_CQPSQ_CQ_LPBLSIZE, cq->paged) |
		 FIELD_PREP(IRDMA_CQPSQ_CQ_CHKOVERFLOW, create) |
		 FIELD_PREP(IRDMA_CQPSQ_CQ_VIRTMAP, cq->paged) |
		 FIELD_PREP(IRDMA_CQPSQ_CQ_ENCEQEMASK, cq->mask_events) |
		 FIELD_PREP(IRDMA_CQPSQ_CQ_CEQIDVALID, 1) |
		 header(create ? IRDMA_CQP_OP_CREATE_CQ : IRDMA_CQP_OP_DESTROY_CQ, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_cq);

void rdma_rs_words_ceq(u64 *wqe, bool valid, enum rdma_rs_op op, u32 id, u32 entries,
		       u64 ring, u16 vsi)
{
	bool create = op == RDMA_RS_OP_CREATE;

	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_CEQ_CEQSIZE, entries);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_CEQ_CEQID, id) |
		 header(create ? IRDMA_CQP_OP_CREATE_CEQ : IRDMA_CQP_OP_DESTROY_CEQ, valid);
	if (create) {
		wqe[4] = ring;
		wqe[7] = FIELD_PREP(IRDMA_CQPSQ_VSIIDX, vsi);
	}
}
EXPORT_SYMBOL_GPL(rdma_rs_words_ceq);

void rdma_rs_words_aeq(u64 *wqe, bool valid, enum rdma_rs_op op, u32 entries, u64 ring)
{
	bool create = op == RDMA_RS_OP_CREATE;

	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_AEQ_AEQECNT, entries);
	wqe[3] = header(create ? IRDMA_CQP_OP_CREATE_AEQ : IRDMA_CQP_OP_DESTROY_AEQ, valid);
	if (create)
		wqe[4] = ring;
}
EXPORT_SYMBOL_GPL(rdma_rs_words_aeq);

void rdma_rs_words_reg_mr(u64 *wqe, bool valid, const struct rdma_rs_stag_words *mr)
{
	const u8 remote = IRDMA_ACCESS_FLAGS_REMOTEREAD_ONLY |
			  IRDMA_ACCESS_FLAGS_REMOTEWRITE_ONLY;
	enum irdma_page_size size;

	switch (mr->page_size) {
	case RDMA_RS_PAGE_2M:
		size = IRDMA_PAGE_SIZE_2M;
		break;
	case RDMA_RS_PAGE_1G:
		size = IRDMA_PAGE_SIZE_1G;
		break;
	default:
		size = IRDMA_PAGE_SIZE_4K;
		break;
	}

	clear(wqe);
	wqe[0] = FIELD_PREP(IRDMA_CQPSQ_STAG_VA_FBO, mr->va_or_offset);
	wqe[1] = FIELD_PREP(IRDMA_CQPSQ_STAG_STAGLEN, mr->length) |
		 FIELD_PREP(ICRDMA_CQPSQ_STAG_PDID, mr->pd);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_STAG_KEY, mr->key) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_IDX, mr->index);
	if (mr->levels)
		wqe[6] = FIELD_PREP(IRDMA_CQPSQ_STAG_FIRSTPMPBLIDX, mr->pbl);
	else
		wqe[4] = FIELD_PREP(IRDMA_CQPSQ_STAG_PBA, mr->address);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_STAG_MR, 1) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_LPBLSIZE, mr->levels) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_HPAGESIZE, size) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_ARIGHTS, mr->rights) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_REMACCENABLED, !!(mr->rights & remote)) |
		 FIELD_PREP(IRDMA_CQPSQ_STAG_VABASEDTO, mr->va_based) |
		 header(IRDMA_CQP_OP_REG_MR, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_reg_mr);

void rdma_rs_words_dealloc_stag(u64 *wqe, bool valid, u32 index, u32 pd)
{
	clear(wqe);
	wqe[1] = FIELD_PREP(ICRDMA_CQPSQ_STAG_PDID, pd);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_STAG_IDX, index);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_STAG_MR, 1) |
		 header(IRDMA_CQP_OP_DEALLOC_STAG, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_dealloc_stag);

void rdma_rs_words_arp(u64 *wqe, bool valid, enum rdma_rs_op op, u16 index,
		       const u8 *mac)
{
	clear(wqe);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_MAT_ARPENTRYIDX, index) |
		 header(IRDMA_CQP_OP_MANAGE_ARP, valid);
	if (op != RDMA_RS_OP_DESTROY) {
		wqe[2] = FIELD_PREP(IRDMA_CQPSQ_MAT_MACADDR, ether_addr_to_u64(mac));
		wqe[3] |= FIELD_PREP(IRDMA_CQPSQ_MAT_ENTRYVALID, 1) |
			  FIELD_PREP(IRDMA_CQPSQ_MAT_PERMANENT, 1);
	}
}
EXPORT_SYMBOL_GPL(rdma_rs_words_arp);

void rdma_rs_words_query_features(u64 *wqe, bool valid, u64 buffer, u32 size)
{
	clear(wqe);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_QUERY_RDMA_FEATURES_BUF_LEN, size) |
		 FIELD_PREP(IRDMA_CQPSQ_QUERY_RDMA_FEATURES_OP,
			    IRDMA_CQP_OP_QUERY_RDMA_FEATURES) |
		 FIELD_PREP(IRDMA_CQPSQ_QUERY_RDMA_FEATURES_WQEVALID, valid);
	wqe[4] = buffer;
}
EXPORT_SYMBOL_GPL(rdma_rs_words_query_features);

void rdma_rs_words_query_fpm(u64 *wqe, bool valid, u8 function, u64 buffer)
{
	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_CFPM_HMCFNID, function);
	wqe[3] = header(IRDMA_CQP_OP_QUERY_FPM_VAL, valid);
	wqe[4] = buffer;
}
EXPORT_SYMBOL_GPL(rdma_rs_words_query_fpm);

void rdma_rs_words_commit_fpm(u64 *wqe, bool valid, u8 function, u64 buffer, u32 size)
{
	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_CFPM_HMCFNID, function);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_BUFSIZE, size) |
		 header(IRDMA_CQP_OP_COMMIT_FPM_VAL, valid);
	wqe[4] = buffer;
}
EXPORT_SYMBOL_GPL(rdma_rs_words_commit_fpm);

void rdma_rs_words_pages_allocated(u64 *wqe, bool valid, u8 function)
{
	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_SHMC_PAGE_ALLOCATED_HMC_FN_ID, function);
	wqe[3] = header(IRDMA_CQP_OP_SHMC_PAGES_ALLOCATED, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_pages_allocated);

void rdma_rs_words_update_sds(u64 *wqe, bool valid, u8 function,
			      const struct rdma_rs_sd_words *sds, u32 count)
{
	/* Where the command and data words of the three entries are. */
	static const u8 place[] = { 0, 4, 6 };
	u32 i;

	clear(wqe);
	for (i = 0; i < min_t(u32, count, ARRAY_SIZE(place)); i++) {
		const struct rdma_rs_sd_words *sd = &sds[i];
		u32 command, data;

		/* Bit 15 has no name in the headers. */
		command = sd->index | BIT(15) | FIELD_PREP(IRDMA_PFHMC_SDCMD_PMSDWR, 1);
		data = FIELD_PREP(IRDMA_PFHMC_SDDATALOW_PMSDBPCOUNT,
				  IRDMA_HMC_MAX_BP_COUNT) |
		       FIELD_PREP(IRDMA_PFHMC_SDDATALOW_PMSDTYPE, sd->direct) |
		       FIELD_PREP(IRDMA_PFHMC_SDDATALOW_PMSDVALID, sd->valid);
		if (sd->valid)
			data |= sd->address & IRDMA_PFHMC_SDDATALOW_PMSDDATALOW;

		wqe[place[i]] = FIELD_PREP(IRDMA_CQPSQ_UPESD_SDCMD, command) |
				FIELD_PREP(IRDMA_CQPSQ_UPESD_ENTRY_VALID, i > 0);
		wqe[place[i] + 1] = FIELD_PREP(IRDMA_CQPSQ_UPESD_SDDATALOW, data) |
				    FIELD_PREP(IRDMA_CQPSQ_UPESD_SDDATAHI,
					       sd->valid ? upper_32_bits(sd->address) : 0);
	}
	wqe[2] = FIELD_PREP(ICRDMA_CQPSQ_UPESD_HMCFNID, function);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_UPESD_ENTRY_COUNT, 0) |
		 header(IRDMA_CQP_OP_UPDATE_PE_SDS, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_update_sds);

void rdma_rs_words_flush(u64 *wqe, bool valid, u32 qp, u16 sq_code, u16 rq_code)
{
	clear(wqe);
	if (sq_code)
		wqe[2] |= FIELD_PREP(IRDMA_CQPSQ_FWQE_SQMJERR, IRDMA_FLUSH_MAJOR_ERR) |
			  FIELD_PREP(IRDMA_CQPSQ_FWQE_SQMNERR, sq_code);
	if (rq_code)
		wqe[2] |= FIELD_PREP(IRDMA_CQPSQ_FWQE_RQMJERR, IRDMA_FLUSH_MAJOR_ERR) |
			  FIELD_PREP(IRDMA_CQPSQ_FWQE_RQMNERR, rq_code);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_FWQE_QPID, qp) |
		 FIELD_PREP(IRDMA_CQPSQ_FWQE_USERFLCODE, 1) |
		 FIELD_PREP(IRDMA_CQPSQ_FWQE_FLUSHSQ, !!sq_code) |
		 FIELD_PREP(IRDMA_CQPSQ_FWQE_FLUSHRQ, !!rq_code) |
		 header(IRDMA_CQP_OP_FLUSH_WQES, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_flush);

void rdma_rs_words_suspend(u64 *wqe, bool valid, u32 qp)
{
	clear(wqe);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_SUSPENDQP_QPID, qp) |
		 header(IRDMA_CQP_OP_SUSPEND_QP, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_suspend);

void rdma_rs_words_resume(u64 *wqe, bool valid, u32 qp, u16 qs_handle)
{
	clear(wqe);
	wqe[2] = FIELD_PREP(IRDMA_CQPSQ_RESUMEQP_QSHANDLE, qs_handle);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_RESUMEQP_QPID, qp) |
		 header(IRDMA_CQP_OP_RESUME_QP, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_resume);

void rdma_rs_words_node(u64 *wqe, bool valid, const struct rdma_rs_node_words *node)
{
	u8 op = pick(node->op, IRDMA_ADD_NODE, IRDMA_MODIFY_NODE, IRDMA_DEL_NODE);

	clear(wqe);
	wqe[3] = FIELD_PREP(IRDMA_CQPSQ_WS_NODEID, node->id) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_PARENTID, node->parent) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_NODEOP, op) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_TC, node->traffic_class) |
		 /* Weighted round robin. */
		 FIELD_PREP(IRDMA_CQPSQ_WS_PRIOTYPE, 1) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_NODETYPE, node->leaf) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_ENABLENODE, node->enabled) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_OP, IRDMA_CQP_OP_WORK_SCHED_NODE) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_WQEVALID, valid);
	wqe[4] = FIELD_PREP(IRDMA_CQPSQ_WS_WEIGHT, node->weight) |
		 FIELD_PREP(IRDMA_CQPSQ_WS_VSI, node->vsi);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_node);

/* Puts an address into the words at @at, less significant first, as AHs and groups do. */
static void address(u64 *at, bool ipv4, const u32 *ip)
{
	if (ipv4) {
		at[0] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ADDR3, ip[0]);
		at[1] = 0;
		return;
	}
	at[0] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ADDR3, ip[3]) |
		FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ADDR2, ip[2]);
	at[1] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ADDR1, ip[1]) |
		FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ADDR0, ip[0]);
}

void rdma_rs_words_ah(u64 *wqe, bool valid, enum rdma_rs_op op,
		      const struct rdma_rs_ah_words *ah)
{
	u8 opcode = pick(op, IRDMA_CQP_OP_CREATE_ADDR_HANDLE,
			 IRDMA_CQP_OP_MODIFY_ADDR_HANDLE,
			 IRDMA_CQP_OP_DESTROY_ADDR_HANDLE);

	clear(wqe);
	/* The upper 48 bits, without a name in the headers. */
	wqe[0] = ether_addr_to_u64(ah->mac) << 16;
	wqe[1] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_PDINDEXLO, ah->pd) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_TC, ah->traffic_class) |
		 FIELD_PREP(IRDMA_UDAQPC_VLANTAG, ah->vlan);
	wqe[2] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_ARPINDEX, ah->arp_index) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_HOPLIMIT, ah->hop_limit) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_PDINDEXHI, ah->pd >> 16) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_FLOWLABEL, ah->flow_label);
	wqe[3] = FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_AVIDX, ah->index) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_IPV4VALID, ah->ipv4) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_INSERTVLANTAG, ah->insert_vlan) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_DOLOOPBACKK, ah->loopback) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_OPCODE, opcode) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MAV_WQEVALID, valid);
	address(&wqe[4], ah->ipv4, ah->destination);
	address(&wqe[6], ah->ipv4, ah->source);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_ah);

void rdma_rs_words_group(u64 *wqe, bool valid, enum rdma_rs_op op,
			 const struct rdma_rs_group_words *group)
{
	u8 opcode = pick(op, IRDMA_CQP_OP_CREATE_MCAST_GRP, IRDMA_CQP_OP_MODIFY_MCAST_GRP,
			 IRDMA_CQP_OP_DESTROY_MCAST_GRP);

	clear(wqe);
	wqe[0] = ether_addr_to_u64(group->mac);
	wqe[1] = FIELD_PREP(IRDMA_UDA_CQPSQ_MG_HMC_FCN_ID, group->function);
	wqe[2] = FIELD_PREP(IRDMA_UDA_CQPSQ_MG_VLANID, group->vlan) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_QS_HANDLE, group->qs_handle);
	wqe[3] = FIELD_PREP(IRDMA_UDA_CQPSQ_MG_MGIDX, group->index) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MG_VLANVALID, group->vlan_valid) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MG_IPV4VALID, group->ipv4) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MG_OPCODE, opcode) |
		 FIELD_PREP(IRDMA_UDA_CQPSQ_MG_WQEVALID, valid);
	wqe[4] = group->context;
	address(&wqe[6], group->ipv4, group->ip);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_group);

u64 rdma_rs_word_member(u32 qp)
{
	return FIELD_PREP(IRDMA_UDA_MGCTX_QPID, qp) |
	       FIELD_PREP(IRDMA_UDA_MGCTX_DESTPORT, 0) |
	       FIELD_PREP(IRDMA_UDA_MGCTX_VALIDENT, 1);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_member);

void rdma_rs_words_qpc(u64 *context, const struct rdma_rs_qpc_words *qp)
{
	memset(context, 0, RDMA_RS_QPC_WORDS * sizeof(*context));
	context[0] = FIELD_PREP(IRDMAQPC_RQWQESIZE, qp->rq_wqe_size) |
		     FIELD_PREP(IRDMAQPC_PDIDXHI, qp->pd >> 16) |
		     FIELD_PREP(IRDMAQPC_IPV4, qp->ipv4) |
		     FIELD_PREP(IRDMAQPC_INSERTVLANTAG, qp->insert_vlan);
	context[1] = FIELD_PREP(IRDMAQPC_SQADDR, qp->sq_addr);
	context[2] = FIELD_PREP(IRDMAQPC_RQADDR, qp->rq_addr);
	context[3] = FIELD_PREP(IRDMAQPC_TTL, qp->ttl) |
		     FIELD_PREP(IRDMAQPC_RQSIZE, qp->rq_size) |
		     FIELD_PREP(IRDMAQPC_SQSIZE, qp->sq_size) |
		     FIELD_PREP(IRDMAQPC_TOS, qp->tos) |
		     FIELD_PREP(IRDMAQPC_SRCPORTNUM,
				qp->connected ? qp->src_port : ROCE_SOURCE_PORT) |
		     FIELD_PREP(IRDMAQPC_DESTPORTNUM, ROCE_DEST_PORT);
	/* The stock driver keeps an IPv4 address in the last of the four words here. */
	address(&context[4], qp->ipv4, qp->remote_ip);
	address(&context[23], qp->ipv4, qp->local_ip);
	context[6] = FIELD_PREP(IRDMAQPC_SNDMSS, qp->mtu) |
		     FIELD_PREP(IRDMAQPC_VLANTAG, qp->vlan) |
		     FIELD_PREP(IRDMAQPC_ARPIDX, qp->arp_index);
	context[7] = FIELD_PREP(IRDMAQPC_PKEY, qp->pkey) |
		     FIELD_PREP(IRDMAQPC_PDIDX, qp->pd) |
		     FIELD_PREP(IRDMAQPC_ACKCREDITS, ROCE_ACK_CREDITS) |
		     FIELD_PREP(IRDMAQPC_FLOWLABEL, qp->flow_label);
	context[8] = FIELD_PREP(IRDMAQPC_QKEY, qp->qkey) |
		     FIELD_PREP(IRDMAQPC_DESTQP, qp->dest_qp);
	if (qp->psn_valid) {
		context[10] = FIELD_PREP(IRDMAQPC_PSNNXT, qp->send_psn) |
			      FIELD_PREP(IRDMAQPC_LSN, ROCE_LSN);
		context[12] = FIELD_PREP(IRDMAQPC_PSNMAX, qp->send_psn) |
			      FIELD_PREP(IRDMAQPC_PSNUNA, qp->send_psn);
	}
	context[11] = FIELD_PREP(IRDMAQPC_EPSN, qp->recv_psn);
	context[14] = FIELD_PREP(IRDMAQPC_CWNDROCE, ROCE_CWND);
	context[16] = FIELD_PREP(IRDMAQPC_RNRNAK_THRESH, qp->rnr_retry) |
		      FIELD_PREP(IRDMAQPC_REXMIT_THRESH, qp->retry) |
		      FIELD_PREP(IRDMAQPC_RTOMIN, ROCE_RTO_MIN);
	context[17] = FIELD_PREP(IRDMAQPC_TXCQNUM, qp->send_cq) |
		      FIELD_PREP(IRDMAQPC_RXCQNUM, qp->recv_cq);
	context[19] = FIELD_PREP(IRDMAQPC_MACADDRESS, ether_addr_to_u64(qp->mac));
	context[20] = FIELD_PREP(IRDMAQPC_ORDSIZE, ROCE_ORD) |
		      FIELD_PREP(IRDMAQPC_IRDSIZE, IRDMA_IRD_HW_SIZE_256) |
		      FIELD_PREP(IRDMAQPC_WRRDRSPOK, qp->remote_write) |
		      FIELD_PREP(IRDMAQPC_RDOK, qp->remote_read) |
		      FIELD_PREP(IRDMAQPC_FASTREGEN, qp->privileged) |
		      FIELD_PREP(IRDMAQPC_UDPRIVCQENABLE, qp->privileged) |
		      FIELD_PREP(IRDMAQPC_PRIVEN, qp->privileged);
	context[21] = FIELD_PREP(IRDMAQPC_QPCOMPCTX, qp->completion_context);
	context[22] = FIELD_PREP(IRDMAQPC_QSHANDLE, qp->qs_handle);
	context[26] = FIELD_PREP(IRDMAQPC_REMENDPOINTIDX, qp->arp_index);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_qpc);

/* Fragments behind the first place, the filler of an even number included. */
static u8 additional(u8 places)
{
	if (places < 2)
		return 0;
	return places % 2 ? places - 1 : places;
}

u64 rdma_rs_word_send_header(const struct rdma_rs_send_words *send)
{
	u8 places = send->fragments + send->immediate;

	return FIELD_PREP(IRDMAQPSQ_AHID, send->ah) |
	       FIELD_PREP(IRDMAQPSQ_OPCODE, rdma_rs_number(send->opcode)) |
	       FIELD_PREP(IRDMAQPSQ_ADDFRAGCNT, additional(places)) |
	       FIELD_PREP(IRDMAQPSQ_IMMDATAFLAG, send->immediate) |
	       FIELD_PREP(IRDMAQPSQ_READFENCE, send->read_fence) |
	       FIELD_PREP(IRDMAQPSQ_SIGCOMPL, send->signaled) |
	       FIELD_PREP(IRDMAQPSQ_VALID, send->valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_send_header);

u64 rdma_rs_word_recv_header(bool valid, u8 fragments)
{
	return FIELD_PREP(IRDMAQPRQ_ADDFRAGCNT, additional(fragments)) |
	       FIELD_PREP(IRDMAQPRQ_VALID, valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_recv_header);

u64 rdma_rs_word_ud_destination(u32 qpn, u32 qkey)
{
	return FIELD_PREP(IRDMAQPSQ_DESTQPN, qpn) | FIELD_PREP(IRDMAQPSQ_DESTQKEY, qkey);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_ud_destination);

u64 rdma_rs_word_fragment(bool valid, u32 length, u32 stag)
{
	return FIELD_PREP(IRDMAQPSQ_FRAG_VALID, valid) |
	       FIELD_PREP(IRDMAQPSQ_FRAG_LEN, length) |
	       FIELD_PREP(IRDMAQPSQ_FRAG_STAG, stag);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_fragment);

void rdma_rs_words_cqe(u64 *cqe, const struct rdma_rs_cqe_words *args)
{
	cqe[0] = FIELD_PREP(IRDMACQ_PAYLDLEN, args->length);
	cqe[1] = FIELD_PREP(IRDMA_CQ_QPCTX, args->context);
	cqe[2] = FIELD_PREP(IRDMACQ_QPID, args->qp) |
		 FIELD_PREP(IRDMACQ_UDSRCQPN, args->source_qp);
	cqe[3] = FIELD_PREP(IRDMA_CQ_VALID, args->valid) |
		 FIELD_PREP(IRDMA_CQ_SQ, args->sq) |
		 FIELD_PREP(IRDMACQ_OP, args->op) |
		 FIELD_PREP(IRDMA_CQ_ERROR, args->error) |
		 FIELD_PREP(IRDMACQ_SOEVENT, args->solicited) |
		 FIELD_PREP(IRDMACQ_IPV4, args->ipv4) |
		 FIELD_PREP(IRDMA_CQ_EXTCQE, args->extended) |
		 FIELD_PREP(IRDMA_CQ_WQEIDX, args->wqe_index) |
		 FIELD_PREP(IRDMA_CQ_MAJERR, args->major) |
		 FIELD_PREP(IRDMA_CQ_MINERR, args->minor);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_cqe);

void rdma_rs_words_ext(u64 *ext, const struct rdma_rs_ext_words *args)
{
	ext[0] = FIELD_PREP(IRDMA_CQ_IMMDATALOW32, args->imm);
	ext[1] = 0;
	ext[2] = FIELD_PREP(IRDMA_CQ_UDSMAC, ether_addr_to_u64(args->smac)) |
		 FIELD_PREP(IRDMA_CQ_UDVLAN, args->vlan);
	ext[3] = FIELD_PREP(IRDMA_CQ_VALID, args->valid) |
		 FIELD_PREP(IRDMA_CQ_IMMVALID, args->imm_valid) |
		 FIELD_PREP(IRDMA_CQ_UDSMACVALID, args->smac_valid) |
		 FIELD_PREP(IRDMA_CQ_UDVLANVALID, args->vlan_valid);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_ext);

void rdma_rs_words_ccqe(u64 *cqe, const struct rdma_rs_ccqe_words *args)
{
	cqe[0] = 0;
	cqe[1] = 0;
	cqe[2] = FIELD_PREP(IRDMA_CCQ_OPRETVAL, args->result);
	cqe[3] = FIELD_PREP(IRDMA_CQ_VALID, args->valid) |
		 FIELD_PREP(IRDMA_CQ_ERROR, args->error) |
		 FIELD_PREP(IRDMA_CQ_WQEIDX, args->wqe_index) |
		 FIELD_PREP(IRDMA_CQ_MAJERR, args->major) |
		 FIELD_PREP(IRDMA_CQ_MINERR, args->minor);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_ccqe);

void rdma_rs_words_aeqe(u64 *aeqe, const struct rdma_rs_aeqe_words *args)
{
	aeqe[0] = 0;
	aeqe[1] = FIELD_PREP(IRDMA_AEQE_VALID, args->valid) |
		  FIELD_PREP(IRDMA_AEQE_AESRC, args->source) |
		  FIELD_PREP(IRDMA_AEQE_QPCQID_LOW, args->number) |
		  FIELD_PREP(IRDMA_AEQE_QPCQID_HI, args->number >> 18) |
		  FIELD_PREP(IRDMA_AEQE_AECODE, args->code) |
		  FIELD_PREP(IRDMA_AEQE_OVERFLOW, args->overflow);
}
EXPORT_SYMBOL_GPL(rdma_rs_words_aeqe);

u64 rdma_rs_word_arm(const struct rdma_rs_arm_words *arm)
{
	return FIELD_PREP(IRDMA_CQ_DBSA_ARM_SEQ_NUM, arm->sequence) |
	       FIELD_PREP(IRDMA_CQ_DBSA_ARM_NEXT_SE, arm->next_solicited) |
	       FIELD_PREP(IRDMA_CQ_DBSA_ARM_NEXT, arm->next) |
	       FIELD_PREP(IRDMA_CQ_DBSA_SW_CQ_SELECT, arm->select);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_arm);

u64 rdma_rs_word_consumer(u32 index)
{
	return FIELD_PREP(IRDMA_CQ_DBSA_CQEIDX, index);
}
EXPORT_SYMBOL_GPL(rdma_rs_word_consumer);

bool rdma_rs_is_multicast(const u8 *gid)
{
	struct in6_addr addr;

	memcpy(&addr, gid, sizeof(addr));
	return rdma_is_multicast_addr(&addr);
}
EXPORT_SYMBOL_GPL(rdma_rs_is_multicast);

void rdma_rs_group_mac(bool ipv4, const u32 *ip, u8 *mac)
{
	struct in6_addr addr;
	int i;

	if (ipv4) {
		ip_eth_mc_map(cpu_to_be32(ip[0]), (char *)mac);
		return;
	}
	for (i = 0; i < 4; i++)
		addr.s6_addr32[i] = cpu_to_be32(ip[i]);
	ipv6_eth_mc_map(&addr, (char *)mac);
}
EXPORT_SYMBOL_GPL(rdma_rs_group_mac);
