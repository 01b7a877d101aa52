/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The ABI between roan.ko and libroan: shared rings, the doorbell, udata structs. The two share nothing else.
 * Documentation/abi.md explains the protocols.
 *
 * Growth: structs are 8-byte aligned, or hold 32-bit fields only (roan_create_ah_resp). They grow at the end: the
 * kernel accepts a longer request if the bytes that it does not know are zero, and refuses it otherwise (udata:
 * EINVAL, a struct in an ioctl attribute: EOPNOTSUPP). Reserved fields are written as zero; the kernel checks them in
 * structs that a system call passes. Unknown flags are refused; an unknown flag in a slot fails that work request
 * with an error completion. A change of behaviour gets a feature bit, which a side that does not know it ignores; an
 * old field never gets a new meaning. Both sides take the layout of a ring from its struct roan_ring_desc, never from
 * a constant.
 *
 * Trust: the user can change every byte of a mapped ring at any time. The kernel copies a slot once, checks the copy,
 * and keeps its state (progress, PSNs, keys, its own index) in memory that is not mapped.
 */
#ifndef ROAN_ABI_H
#define ROAN_ABI_H

#include <linux/types.h>

#define ROAN_UVERBS_ABI_VERSION	0x7201		/* ib_device_ops.uverbs_abi_ver; no other driver uses it */
#define ROAN_DRIVER_ID		0x726f616e	/* "roan"; ib_device_ops.driver_id */
#define ROAN_VENDOR_ID		0x726f61	/* "roa"; not the OUI of a hardware vendor */

/*
 * A ring is one mapping: the control block first, then slot_count slots of slot_size bytes at slots_offset. The two
 * rings of a QP may share a mapping (ROAN_FEATURE_ONE_MAPPING).
 *
 *   user line   -- written only by the user; by the kernel before a resized CQ or SRQ uses the ring
 *   kernel line -- written only by the kernel
 *
 * Indices are free-running 32-bit counters; slot = index & (slot_count - 1). An index is stored with release and loaded
 * with acquire.
 *   SQ, RQ, SRQ   the user produces:   user.index = tail (posted),    kernel.index = head (lower slots may be reused)
 *   CQ            the kernel produces: kernel.index = tail (written), user.index = head (polled)
 *   hint ring     like an SQ; its slots are struct roan_db_hint; one per context
 */
struct roan_user_line {
	__u32 index;
	__u32 arm_next;		/* CQ: incremented to request an event at the next CQE */
	__u32 arm_solicited;	/* CQ: incremented to request an event at the next solicited or failed CQE */
	__u32 reserved[29];
};

struct roan_kernel_line {
	__u32 index;
	__u32 flags;		/* enum roan_ring_flags */
	/*
	 * Hint ring: CPU number + 1 on which deferred sends of this context are queued; 0: none. It may be out of date.
	 * A program polling on that CPU may ring the doorbell to run them in its own system call. A doorbell of the
	 * context clears it. Other rings: 0.
	 */
	__u32 send_cpu_plus1;
	__u32 notify_at;	/* SQ with ROAN_RING_ACK_PENDING: a tail index, see there. Other rings: 0 */
	/*
	 * SQ, RQ: index after the last request that gets a CQE, of those below @index; stored before @index. Other
	 * rings: 0. Of use only with a qp_handle.
	 * A request is outstanding until its CQE is polled. So its slot is in use until then, although the kernel has
	 * read it. If the CQE polled last has wqe_index + 1 == cqe_until, all slots below @index are free. Otherwise
	 * those up to and including its wqe_index are free.
	 */
	__u32 cqe_until;
	__u32 reserved[27];
};

enum roan_ring_flags {
	/*
	 * SQ: the kernel does not read this ring again without a doorbell. The poster stores its tail (release), issues
	 * a full barrier, loads the flags, and rings the doorbell if this bit is set. The kernel sets the bit, issues a
	 * full barrier and loads the tail once more before it stops polling. So at least one side sees the store of the
	 * other.
	 * RQ: same protocol. The kernel sets the bit only while the QP is in the error state, where posted receives
	 * must be flushed; in the other states a receive needs no doorbell.
	 * SRQ: never set.
	 * Hint ring: same protocol. While the bit is clear, a hint replaces the doorbell of a send queue that has the
	 * bit set: the kernel reads the hints a little later (at present 20 to 420 us). A poster that has nothing else
	 * to do may ring the doorbell to send at once.
	 */
	ROAN_RING_NEED_DOORBELL	= 1 << 0,
	/* CQ: the ring was full and a CQE was lost; the kernel raised IBV_EVENT_CQ_ERR. */
	ROAN_RING_OVERFLOW	= 1 << 1,
	/*
	 * SQ: all posted WQEs are sent, and the kernel reads this ring again when the next ACK arrives. No doorbell is
	 * needed, but the send window has room for more now. So a poster whose tail has reached @notify_at adds a hint,
	 * and rings the doorbell before it waits. Set with the same protocol as NEED_DOORBELL. If a provider ignores
	 * this bit, its next request leaves when the ACK arrives.
	 */
	ROAN_RING_ACK_PENDING	= 1 << 2,
};

struct roan_ring_ctl {
	struct roan_user_line user;
	struct roan_kernel_line kernel;
};

/* Part of responses, so it never grows: a new property of a ring is a field at the end of the response. */
struct roan_ring_desc {
	__aligned_u64 mmap_offset;	/* for mmap(2) of the uverbs cmd_fd, MAP_SHARED, PROT_READ | PROT_WRITE */
	__u32 mmap_size;		/* bytes, a multiple of the page size; 0: there is no such ring */
	__u32 slots_offset;		/* bytes from the start of the mapping to slot 0 */
	__u32 slot_size;		/* bytes, a multiple of 16 */
	__u32 slot_count;		/* a power of two */
};

/* ---- contents of the slots ---- */

struct roan_sge {
	__aligned_u64 addr;
	__u32 length;			/* bytes; 0 means 0, not 2 GiB */
	__u32 lkey;
};

/* A slot of a context's hint ring: a WQE was posted to the send queue of QP @qpn. */
struct roan_db_hint {
	__u32 qpn;
	__u32 reserved[3];
};

/* The same numbers as in enum ib_uverbs_wr_opcode, ibv_wr_opcode and ib_wr_opcode. */
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

/* The same numbers as in enum ibv_send_flags. */
enum roan_send_flags {
	ROAN_SEND_FENCE		= 1 << 0,
	ROAN_SEND_SIGNALED	= 1 << 1,
	ROAN_SEND_SOLICITED	= 1 << 2,
	ROAN_SEND_INLINE	= 1 << 3,	/* inline_len bytes of payload follow the header; num_sge is 0 */
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
		__be32 imm;		/* *_WITH_IMM; wire format */
		__u32 inv_key;		/* SEND_WITH_INV: R_Key of the peer; LOCAL_INV: local L_Key or R_Key */
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
			__u32 mw_rkey;		/* current R_Key of the window */
			__u32 new_rkey;		/* its low 8 bits replace those of mw_rkey; the index stays */
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

enum roan_cqe_flags {			/* bits 0..3: the same numbers as in ib_wc_flags and ibv_wc_flags */
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
	__u32 vendor_err;		/* enum roan_vendor_err: the check that failed; 0 on success */
	__aligned_u64 timestamp_ns;	/* CLOCK_MONOTONIC at the time the CQE was written */
	__u16 reserved_pkey;		/* 0: the P_Key table has one entry */
	__u16 vlan;
	__u8  sl;
	__u8  smac[6];
	__u8  reserved;			/* 0 */
	__u32 wqe_index;		/* index of the request in its SQ or RQ; a receive from an SRQ: 0 */
	__aligned_u64 qp_handle;	/* of roan_create_qp_req. Kernel consumer: its struct ib_qp */
};

/* ---- udata of the standard verbs ---- */

/*
 * A bit has an effect in a context if the kernel and the provider that created the context both set it. An exception is
 * QP_HANDLE: it always has. A provider that imports the context must know all bits that have an effect
 * (ROAN_ATTR_QUERY_CONTEXT_RESP).
 */
enum roan_features {
	/*
	 * The two rings of a QP are in one mapping: their descriptors have the same mmap_offset and mmap_size. The
	 * control block of the second ring ends where its slots begin.
	 */
	ROAN_FEATURE_ONE_MAPPING	= 1 << 0,
	/* The kernel takes struct roan_create_qp_req, and sets cqe_until of rings, wqe_index and qp_handle of CQEs. */
	ROAN_FEATURE_QP_HANDLE		= 1 << 1,
};

struct roan_alloc_ucontext_req {
	__aligned_u64 features;		/* enum roan_features of the provider; unknown bits are ignored */
};

struct roan_alloc_ucontext_resp {	/* also ROAN_ATTR_QUERY_CONTEXT_RESP */
	__aligned_u64 features;		/* enum roan_features of this kernel; QUERY_CONTEXT: in effect in the context */
	__u32 max_inline;		/* bytes, per send WQE */
	__u32 reserved;
	/*
	 * The hint ring; mmap_size 0: none. If the provider's response buffer ends before this field, the kernel
	 * creates no hint ring and returns the fields above. QUERY_CONTEXT (import of an existing context) returns no
	 * ring either, because the ring has only one producer.
	 */
	struct roan_ring_desc db_hints;
};

/* Of the standard method UVERBS_METHOD_QUERY_CONTEXT. A kernel that does not know it leaves the buffer as it is. */
enum roan_query_context_attrs {
	ROAN_ATTR_QUERY_CONTEXT_RESP = 0x1000,	/* struct roan_alloc_ucontext_resp, out; optional */
};

struct roan_create_cq_resp {		/* also the response of resize_cq */
	struct roan_ring_desc cq;
};

struct roan_create_srq_resp {
	struct roan_ring_desc rq;
	__u32 srq_num;
	__u32 reserved;
};

/* The verb passes no response, so the request says where it goes. Both fields are used if the SRQ is resized. */
struct roan_modify_srq_req {
	__aligned_u64 resp_addr;	/* user address of a struct roan_modify_srq_resp */
	__u32 resp_size;		/* bytes there. EINVAL: fewer than the first version has, or more than 65535 */
	__u32 reserved;
};

struct roan_modify_srq_resp {		/* cut to resp_size, or filled with zeros */
	struct roan_ring_desc rq;
};

enum roan_qp_flags {
	ROAN_QP_BLOCK_SELF_MCAST	= 1 << 0,	/* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB; UD only */
};

struct roan_create_qp_req {		/* may be absent, or end after qp_handle: the rest is 0 */
	__aligned_u64 qp_handle;	/* of the provider; returned in each CQE of the QP */
	__u32 flags;			/* enum roan_qp_flags. EOPNOTSUPP: others. EINVAL: an older kernel */
	__u32 reserved;			/* 0. EOPNOTSUPP: others */
};

struct roan_create_qp_resp {
	struct roan_ring_desc sq;
	struct roan_ring_desc rq;	/* mmap_size 0: the QP uses an SRQ */
};

struct roan_create_ah_resp {
	__u32 ah_num;
};

/*
 * The doorbell: method ROAN_METHOD_QP_DOORBELL of the standard object UVERBS_OBJECT_QP. The kernel reads the send rings
 * of the QPs in the attribute (if present) and of the QPs in the context's hint ring, and sends in the caller's
 * context. It also flushes the send and receive rings of a QP in the error state. The doorbell is an ioctl of the
 * uverbs file, because a file with its own file_operations would pin the module as long as a context is open. EIO: the
 * device is gone. ENOENT: one of the QPs does not exist; no ring was read.
 */
enum roan_qp_methods {
	ROAN_METHOD_QP_DOORBELL = 0x1000,	/* 1 << UVERBS_ID_NS_SHIFT */
	ROAN_METHOD_QP_CC,
};

enum roan_qp_doorbell_attrs {
	ROAN_ATTR_QP_DOORBELL_HANDLES = 0x1000,	/* __u32 handle[1 .. ROAN_MAX_DOORBELL_QPS], in; optional */
};

#define ROAN_MAX_DOORBELL_QPS	64

/*
 * Congestion control of one QP: method ROAN_METHOD_QP_CC. EINVAL: no such algorithm. EOPNOTSUPP: the algorithm does not
 * work with this type of QP. EPERM: the administrator has chosen, or lets no program choose (program_algo 0).
 * EPROTONOSUPPORT: the kernel does not have this method.
 */
enum roan_qp_cc_attrs {
	ROAN_ATTR_QP_CC_HANDLE = 0x1000,	/* handle of the QP, in */
	ROAN_ATTR_QP_CC_REQ,			/* struct roan_qp_cc, in */
};

struct roan_qp_cc {
	char algo[16];			/* name as in cc_param/algo, NUL-terminated; "device": the device's algorithm */
};

/*
 * Device memory: method ROAN_METHOD_DM_MAP of the standard object UVERBS_OBJECT_DM returns the offset on the uverbs
 * file at which the memory can be mapped (MAP_SHARED, length rounded up to pages); ROAN_METHOD_DM_EXPORT makes a
 * dma-buf of it. Memory of a PCI BAR can be neither mapped nor exported; method ROAN_METHOD_DM_COPY reads and writes
 * it.
 */
enum roan_dm_methods {
	ROAN_METHOD_DM_MAP = 0x1000,
	ROAN_METHOD_DM_COPY,
	ROAN_METHOD_DM_EXPORT,
};

enum roan_dm_map_attrs {
	ROAN_ATTR_DM_MAP_HANDLE = 0x1000,	/* handle of the memory, in */
	ROAN_ATTR_DM_MAP_RESP,			/* struct roan_dm_desc, out */
};

#define ROAN_DM_UNMAPPED	(~0ull)

struct roan_dm_desc {
	__aligned_u64 mmap_offset;	/* or ROAN_DM_UNMAPPED */
	__aligned_u64 length;		/* bytes, as allocated */
};

enum roan_dm_copy_attrs {
	ROAN_ATTR_DM_COPY_HANDLE = 0x1000,	/* handle of the memory, in */
	ROAN_ATTR_DM_COPY_REQ,			/* struct roan_dm_copy, in */
};

struct roan_dm_copy {
	__aligned_u64 offset;		/* bytes from the start of the device memory */
	__aligned_u64 length;		/* bytes */
	__aligned_u64 user;		/* address in the calling process */
	__u32 write;			/* 1: copy to the device memory, 0: copy from it */
	__u32 reserved;			/* must be 0 */
};

/*
 * The dma-buf has the whole pages of the memory. They live until the last user of the dma-buf is gone, also if the
 * memory is freed or the device removed. EOPNOTSUPP: memory of a BAR.
 */
enum roan_dm_export_attrs {
	ROAN_ATTR_DM_EXPORT_HANDLE = 0x1000,	/* handle of the memory, in */
	ROAN_ATTR_DM_EXPORT_FD,			/* __s32, file descriptor with O_CLOEXEC, out */
};

/*
 * Completion counters: an optional attribute of the standard method UVERBS_METHOD_COMP_CNTR_CREATE returns the offset
 * of the counter's page on the uverbs file (MAP_SHARED). The kernel only adds to the numbers there. Change them by
 * ibv_set_comp_cntr() and its like, as a plain store may undo the kernel's additions.
 */
enum roan_comp_cntr_attrs {
	ROAN_ATTR_COMP_CNTR_DESC = 0x1000,	/* struct roan_comp_cntr_desc, out */
};

struct roan_comp_cntr_desc {
	__aligned_u64 mmap_offset;
};

struct roan_comp_cntr_page {		/* the start of the page */
	__aligned_u64 completed;	/* requests that completed with success */
	__aligned_u64 failed;		/* with an error, flushed ones included */
};

/* The reason why a work request failed, in more detail than its status; reported as vendor_err. */
enum roan_vendor_err {
	ROAN_VERR_NONE		= 0,
	ROAN_VERR_BAD_OPCODE	= 1,	/* opcode unknown, or not allowed on this QP type */
	ROAN_VERR_BAD_FLAGS	= 2,	/* unknown flag, or inline data with an opcode that does not allow it */
	ROAN_VERR_BAD_SGE	= 3,	/* too many scatter entries; receive: or their total length overflows */
	/* too long for the port, the QP type, the slot or the receive WQE; an atomic: not of its 8 bytes */
	ROAN_VERR_TOO_LONG	= 4,
	ROAN_VERR_BAD_KEY	= 5,	/* no such key in the PD, or a stale one */
	ROAN_VERR_BAD_PD	= 6,	/* kernel consumers only; a program gets BAD_KEY */
	ROAN_VERR_BAD_ACCESS	= 7,
	ROAN_VERR_BAD_RANGE	= 8,	/* outside the region, or address overflow */
	ROAN_VERR_BAD_AH	= 9,
	ROAN_VERR_RING		= 10,	/* inconsistent ring indices: an event, no completion */
	ROAN_VERR_PEER_NAK	= 11,	/* the peer sent a NAK */
	ROAN_VERR_PROTOCOL	= 12,	/* a packet of the peer violates the protocol */
	ROAN_VERR_UNALIGNED	= 13,
	ROAN_VERR_BAD_BIND	= 14,
	ROAN_VERR_REVOKED	= 15,	/* the exporter of the region's memory revoked it */
};

#endif /* ROAN_ABI_H */
