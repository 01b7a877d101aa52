/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The contract between roan.ko and libroan: shared rings, doorbell, udata structs. Nothing else is shared.
 *
 * Rules of growth: structs are 8-byte aligned; reserved fields are zero, and those of system calls are checked; unknown
 * flags are refused (a slot's by its completion); a change in behaviour is a feature bit, never a new meaning of an old
 * field. Both sides take the layout of a ring from its struct roan_ring_desc, never from a constant.
 *
 * Trust: every byte of a mapped ring can be changed by the user at any time. The kernel copies a slot once, checks the
 * copy and keeps all state that matters (progress, PSNs, keys, its own index) in memory that is not mapped.
 */
#ifndef ROAN_ABI_H
#define ROAN_ABI_H

#include <linux/types.h>

#define ROAN_UVERBS_ABI_VERSION	0x7201		/* ib_device_ops.uverbs_abi_ver; no other driver uses it */
#define ROAN_DRIVER_ID		0x726f616e	/* "roan"; ib_device_ops.driver_id */

/*
 * A ring: one mapping, first the control block, then slot_count slots of slot_size bytes at slots_offset. The two rings
 * of a QP may share a mapping (ROAN_FEATURE_ONE_MAPPING).
 *
 *   user line   -- written only by the user
 *   kernel line -- written only by the kernel
 *
 * Indices run freely over 32 bits; slot = index & (slot_count - 1). An index is stored with release and loaded with
 * acquire. Which side produces:
 *   SQ, RQ, SRQ   user.index = tail (posted),   kernel.index = head (slots below it may be reused)
 *   CQ            kernel.index = tail (written), user.index = head (polled)
 *   notices       as SQ; there is one such ring a context
 */
struct roan_user_line {
	__u32 index;
	__u32 arm_next;		/* CQ: incremented to ask for an event at the next CQE */
	__u32 arm_solicited;	/* CQ: incremented to ask for an event at the next solicited or failed CQE */
	__u32 reserved[29];
};

struct roan_kernel_line {
	__u32 index;
	__u32 flags;		/* enum roan_ring_flags */
	/*
	 * Notices: sends of this context wait for their turn on CPU @send_cpu_plus1 - 1; 0: none do. A hint: who polls
	 * there in vain
	 * may ring, and they go on in his time. The kernel takes it back when anybody rings. Other rings: 0.
	 */
	__u32 send_cpu_plus1;
	__u32 notify_at;	/* SQ with ROAN_RING_ACK_PENDING: a tail, see there. Other rings: 0 */
	__u32 reserved[28];
};

enum roan_ring_flags {
	/*
	 * SQ: nobody in the kernel will look at this ring on its own. A poster stores its tail (release), issues a full
	 * barrier, loads the flags, and if this bit is set rings the doorbell; the kernel sets the bit, issues a full
	 * barrier and looks at the tail once more before it leaves. So at least one of them sees the other.
	 * RQ: the same rule, but the kernel sets the bit only while the QP is in the error state, where what is posted
	 * must be flushed; otherwise a receive needs no doorbell. SRQ: never set.
	 * Notices: the same rule. While the bit is not set a notice does for a send queue at rest what a bell does,
	 * only a little later; a poster that has run out of things to do may ring, and saves the wait.
	 */
	ROAN_RING_NEED_DOORBELL	= 1 << 0,
	/* CQ: an entry was lost because the ring was full; IBV_EVENT_CQ_ERR was raised. */
	ROAN_RING_OVERFLOW	= 1 << 1,
	/*
	 * SQ: all that was posted is sent, and the kernel will look at this ring when the answer comes. No doorbell is needed;
	 * but what is posted now could leave now, so a poster whose tail has come to @notify_at gives a notice, and
	 * rings when he has
	 * run out of things to do. Set as the first bit is, with the same rule. A provider that does not know it only waits for
	 * the answer.
	 */
	ROAN_RING_ACK_PENDING	= 1 << 2,
};

struct roan_ring_ctl {
	struct roan_user_line user;
	struct roan_kernel_line kernel;
};

struct roan_ring_desc {
	__aligned_u64 mmap_offset;	/* for mmap(2) of the uverbs cmd_fd, MAP_SHARED, PROT_READ | PROT_WRITE */
	__u32 mmap_size;		/* bytes, a multiple of the page size; 0: there is no such ring */
	__u32 slots_offset;		/* bytes from the start of the mapping to slot 0 */
	__u32 slot_size;		/* bytes, a multiple of 16 */
	__u32 slot_count;		/* a power of two */
};

/* ---- what the slots hold ---- */

struct roan_sge {
	__aligned_u64 addr;
	__u32 length;			/* bytes; 0 is 0, not 2 GiB */
	__u32 lkey;
};

/* A slot of a context's ring of notices: something was posted to the send queue of one of its QPs. */
struct roan_db_hint {
	__u32 qpn;
	__u32 reserved[3];
};

/* Numbered as enum ib_uverbs_wr_opcode, ibv_wr_opcode and ib_wr_opcode agree. */
enum roan_wr_opcode {
	ROAN_WR_RDMA_WRITE		= 0,
	ROAN_WR_RDMA_WRITE_WITH_IMM	= 1,
	ROAN_WR_SEND			= 2,
	ROAN_WR_SEND_WITH_IMM		= 3,
	ROAN_WR_RDMA_READ		= 4,
	ROAN_WR_ATOMIC_CMP_AND_SWP	= 5,
	ROAN_WR_ATOMIC_FETCH_AND_ADD	= 6,
	ROAN_WR_LOCAL_INV		= 7,
	ROAN_WR_BIND_MW			= 8,
	ROAN_WR_SEND_WITH_INV		= 9,
	ROAN_WR_FLUSH			= 14,
	ROAN_WR_ATOMIC_WRITE		= 15,
	ROAN_WR_REG_MR			= 0x20,	/* kernel consumers only; refused on a mapped ring */
	ROAN_NUM_WR_OPCODES		= 0x21,
};

/* Numbered as ibv_send_flags. */
enum roan_send_flags {
	ROAN_SEND_FENCE		= 1 << 0,
	ROAN_SEND_SIGNALED	= 1 << 1,
	ROAN_SEND_SOLICITED	= 1 << 2,
	ROAN_SEND_INLINE	= 1 << 3,	/* payload follows the header; inline_len says how much; num_sge is 0 */
};

/* A slot of a send queue: this header, then num_sge scatter entries or inline_len bytes. */
struct roan_send_wqe {
	__aligned_u64 wr_id;
	__u8  opcode;			/* enum roan_wr_opcode */
	__u8  flags;			/* enum roan_send_flags */
	__u8  num_sge;
	__u8  reserved0;
	__u32 inline_len;		/* bytes; 0 unless ROAN_SEND_INLINE */
	union {
		__be32 imm;		/* *_WITH_IMM, as it goes on the wire */
		__u32 inv_key;		/* SEND_WITH_INV: peer's R_Key; LOCAL_INV: own L_Key or R_Key */
	};
	__u32 reserved1;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;			/* WRITE*, READ, ATOMIC_WRITE (8 bytes of payload) */
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 length;
			__u8  type;	/* enum ib_uverbs_flush placement bits: 1 global, 2 persistent */
			__u8  level;	/* 0 range, 1 whole MR */
			__u16 reserved[3];
		} flush;
		struct {
			__u32 ah_num;	/* from struct roan_create_ah_resp */
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 reserved;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;	/* 0: unbind (type 1) */
			__u32 mr_lkey;
			__u32 mw_rkey;		/* the window's present R_Key */
			__u32 new_rkey;		/* its low 8 bits become the window's; the index stays */
			__u32 access;		/* enum ib_access_flags */
		} bind;
		struct {
			__u32 lkey;
			__u32 key;		/* new key, same index */
			__u32 access;
			__u32 reserved;
		} reg;			/* ROAN_WR_REG_MR */
		__aligned_u64 words[5];
	};
	/* struct roan_sge sge[num_sge], or __u8 data[inline_len] */
};

/* A slot of a receive queue or SRQ: this header, then num_sge scatter entries. */
struct roan_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

enum roan_cqe_flags {			/* bits 0..3 numbered as ib_wc_flags / ibv_wc_flags agree */
	ROAN_CQE_GRH		= 1 << 0,
	ROAN_CQE_WITH_IMM	= 1 << 1,
	ROAN_CQE_WITH_INV	= 1 << 3,
	ROAN_CQE_SMAC		= 1 << 4,	/* smac is valid */
	ROAN_CQE_VLAN		= 1 << 5,	/* vlan is valid */
	ROAN_CQE_SOLICITED	= 1 << 6,
	ROAN_CQE_IPV4		= 1 << 7,	/* network header of a UD receive: IPv4, else IPv6 */
};

struct roan_cqe {
	__aligned_u64 wr_id;
	__u8  status;			/* ibv_wc_status */
	__u8  opcode;			/* ibv_wc_opcode; 0x80 receive, 0x81 receive of WRITE_WITH_IMM */
	__u16 flags;			/* enum roan_cqe_flags */
	__u32 byte_len;
	union {
		__be32 imm;
		__u32 inv_rkey;
	};
	__u32 qp_num;
	__u32 src_qp;
	__u32 vendor_err;		/* enum roan_vendor_err: which rule refused the request; 0 on success */
	__aligned_u64 timestamp_ns;	/* CLOCK_MONOTONIC when the entry was written */
	__u16 reserved_pkey;		/* 0: the P_Key table has one entry */
	__u16 vlan;
	__u8  sl;
	__u8  smac[6];
	__u8  reserved;
	__aligned_u64 kernel_qp;	/* 0 on a mapped ring */
};

/* ---- udata of the standard verbs ---- */

enum roan_features {
	/*
	 * Where both sides have it, the two rings of a QP lie in one mapping: their descriptions name the same
	 * mmap_offset and mmap_size. The control block of the second lies right before its slots.
	 */
	ROAN_FEATURE_ONE_MAPPING	= 1 << 0,
};

struct roan_alloc_ucontext_req {
	__aligned_u64 features;		/* enum roan_features, the provider's; unknown ones are not an error */
};

struct roan_alloc_ucontext_resp {	/* also the answer of QUERY_CONTEXT */
	__aligned_u64 features;		/* enum roan_features, this kernel's */
	__u32 max_inline;		/* bytes, per send WQE */
	__u32 reserved;
	/*
	 * Notices. mmap_size 0: none. A provider that has no room for this gets what comes before it, and no ring; nor
	 * does who asks about a context that exists, as the ring has one producer.
	 */
	struct roan_ring_desc db_hints;
};

struct roan_create_cq_resp {		/* also of resize_cq */
	struct roan_ring_desc cq;
};

struct roan_create_srq_resp {
	struct roan_ring_desc rq;
	__u32 srq_num;
	__u32 reserved;
};

/* modify_srq has no response on the wire, so the request says where the new ring's description goes. */
struct roan_modify_srq_req {
	__aligned_u64 desc_addr;	/* user address of a struct roan_ring_desc; written if the SRQ was resized */
};

struct roan_create_qp_resp {
	struct roan_ring_desc sq;
	struct roan_ring_desc rq;	/* mmap_size 0 with an SRQ */
};

struct roan_create_ah_resp {
	__u32 ah_num;
};

/*
 * The doorbell: method ROAN_METHOD_QP_DOORBELL of the standard object UVERBS_OBJECT_QP makes the kernel look at the send
 * rings of the QPs named, if any, and of those the context's notices name, and send, in the caller's context; on a QP
 * in the error state also at its receive ring, to flush it. It is an ioctl of the uverbs file and not a file of our own,
 * so that an open context never pins the module. EIO: the device is gone. ENOENT: one of the QPs does not exist, and no
 * ring was looked at.
 */
enum roan_qp_methods {
	ROAN_METHOD_QP_DOORBELL = 0x1000,	/* 1 << UVERBS_ID_NS_SHIFT */
	ROAN_METHOD_QP_CC,
};

enum roan_qp_doorbell_attrs {
	ROAN_ATTR_QP_DOORBELL_HANDLES = 0x1000,	/* __u32 handle[1 .. ROAN_MAX_DOORBELL_QPS], in; may be absent */
};

#define ROAN_MAX_DOORBELL_QPS	64

/*
 * Congestion control of one QP: method ROAN_METHOD_QP_CC. EINVAL: no such algorithm; EOPNOTSUPP: not for this type of QP;
 * EPROTONOSUPPORT: a kernel that does not know the method.
 */
enum roan_qp_cc_attrs {
	ROAN_ATTR_QP_CC_HANDLE = 0x1000,	/* the QP's handle, in */
	ROAN_ATTR_QP_CC_REQ,			/* struct roan_qp_cc, in */
};

struct roan_qp_cc {
	char algo[16];			/* as cc_param/algo, ends in 0; "device": what the device's QPs run */
};

/*
 * Device memory, mapped: method ROAN_METHOD_DM_MAP of the standard object UVERBS_OBJECT_DM tells where on the uverbs file
 * the memory can be mapped, MAP_SHARED, its length rounded up to pages. Memory behind a bus cannot, and is read and
 * written by method ROAN_METHOD_DM_COPY.
 */
enum roan_dm_methods {
	ROAN_METHOD_DM_MAP = 0x1000,
	ROAN_METHOD_DM_COPY,
};

enum roan_dm_map_attrs {
	ROAN_ATTR_DM_MAP_HANDLE = 0x1000,	/* the memory's handle, in */
	ROAN_ATTR_DM_MAP_RESP,			/* struct roan_dm_desc, out */
};

#define ROAN_DM_UNMAPPED	(~0ull)

struct roan_dm_desc {
	__aligned_u64 mmap_offset;	/* or ROAN_DM_UNMAPPED */
	__aligned_u64 length;		/* bytes, as allocated */
};

enum roan_dm_copy_attrs {
	ROAN_ATTR_DM_COPY_HANDLE = 0x1000,	/* the memory's handle, in */
	ROAN_ATTR_DM_COPY_REQ,			/* struct roan_dm_copy, in */
};

struct roan_dm_copy {
	__aligned_u64 offset;		/* in the memory */
	__aligned_u64 length;
	__aligned_u64 user;		/* the program's address */
	__u32 write;			/* 1: to the memory, 0: from it */
	__u32 reserved;			/* 0 */
};

/* Why a work request failed, finer than its status. Shown as vendor_err. */
enum roan_vendor_err {
	ROAN_VERR_NONE		= 0,
	ROAN_VERR_BAD_OPCODE	= 1,	/* opcode unknown or not for this QP type */
	ROAN_VERR_BAD_FLAGS	= 2,	/* unknown flag, or inline where it cannot be */
	ROAN_VERR_BAD_SGE	= 3,	/* too many scatter entries; of a receive also: their sum overflows */
	ROAN_VERR_TOO_LONG	= 4,	/* message longer than the port, the QP type, the slot or the receive WQE allows */
	ROAN_VERR_BAD_KEY	= 5,	/* no such key, or stale */
	ROAN_VERR_BAD_PD	= 6,
	ROAN_VERR_BAD_ACCESS	= 7,
	ROAN_VERR_BAD_RANGE	= 8,	/* outside the region, or address overflow */
	ROAN_VERR_BAD_AH	= 9,
	ROAN_VERR_RING		= 10,	/* ring indices are impossible */
	ROAN_VERR_PEER_NAK	= 11,	/* the peer refused */
	ROAN_VERR_PROTOCOL	= 12,	/* the peer's packet breaks the protocol */
	ROAN_VERR_UNALIGNED	= 13,
	ROAN_VERR_BAD_BIND	= 14,
	ROAN_VERR_REVOKED	= 15,	/* the region's memory was taken away by whoever lent it */
};

#endif /* ROAN_ABI_H */
