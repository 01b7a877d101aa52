// SPDX-License-Identifier: GPL-2.0
/*
 * Moves the bytes of received RoCE packets about in memory, without changing one: drivers, GRO, tunnels and virtual
 * machines deliver skbs of many layouts, a veth of few. Its hook is the last one before roan's:
 *
 *	LOCAL_IN:  filters, connection tracking  ->  this module  ->  roan
 *
 * An skb gets a linear part that ends anywhere from the IP header on, then page fragments, then a list of skbs, each of
 * random length. It may also be cloned, have shared fragments, another state of its checksum, or be a GSO skb of one
 * packet. Parameters count what was done. With wrong_gso=PERCENT, so many skbs get a random gso_size. Such skbs come from
 * virtual machines: the kernel takes gso_size from the virtio header and does not compare it with the data.
 */
#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/prandom.h>
#include <linux/udp.h>
#include <net/net_namespace.h>

MODULE_DESCRIPTION("Gives received RoCE packets random layouts in memory, for tests");
MODULE_LICENSE("GPL");

#define ROCE_PORT	4791
#define MOST_FRAGS	15	/* of the smallest MAX_SKB_FRAGS, 17, some are left for the network stack */
#define MOST_CLONES	64

static uint seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the random layouts");

static uint wrong_gso;
module_param(wrong_gso, uint, 0644);
MODULE_PARM_DESC(wrong_gso, "percent of the skbs whose gso_size is random");

#define COUNT(name, what)			\
	static ulong name;			\
	module_param(name, ulong, 0444);	\
	MODULE_PARM_DESC(name, "skbs " what)

COUNT(linear, "in one piece");
COUNT(split_header, "whose linear part ends before the end of the transport header");
COUNT(frags, "with page fragments");
COUNT(lists, "with a list of skbs");
COUNT(segment_lists, "of several packets, each an entry of the list, as GRO makes them with rx-gro-list");
COUNT(clones, "that were cloned");
COUNT(gso_of_one, "of one packet that are GSO skbs");
COUNT(wrong_gsos, "whose gso_size was made wrong");
COUNT(failed, "dropped, for lack of memory");
COUNT(changed, "whose clone had other bytes when the packet had been processed");

static DEFINE_SPINLOCK(lock);		/* all that follows, and the counts */
static struct rnd_state rnd;
static struct clone {
	struct sk_buff *skb;
	u32 crc;
} cloned[MOST_CLONES];
static unsigned int n_cloned;

/* A random number from @from to @to, both included. */
static u32 random_in(u32 from, u32 to)
{
	return from + prandom_u32_state(&rnd) % (to - from + 1);
}

static bool percent(u32 n)
{
	return random_in(1, 100) <= n;
}

/* ---- pieces: each takes @len of the bytes at @from ---- */

static bool add_frag(struct sk_buff *skb, const u8 *from, u32 len)
{
	u32 off = random_in(0, 64), order = get_order(off + len);
	struct page *page = alloc_pages(GFP_ATOMIC | __GFP_NOWARN | (order ? __GFP_COMP : 0), order);

	if (!page)
		return false;
	memset(page_address(page), 0xa5, PAGE_SIZE << order);	/* a byte too many shows */
	memcpy(page_address(page) + off, from, len);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, off, len, PAGE_SIZE << order);
	return true;
}

/* Puts @len bytes into at most @n fragments. */
static bool add_frags(struct sk_buff *skb, const u8 *from, u32 len, u32 n)
{
	u32 size;

	for (; len; from += size, len -= size, n--) {
		size = n > 1 ? random_in(1, len) : len;
		if (n > 1 && percent(50))
			size = min(size, random_in(1, 80));	/* headers and ICRCs that are split */
		if (!add_frag(skb, from, size))
			return false;
	}
	return true;
}

/* An skb for a list, with @len bytes. */
static struct sk_buff *list_entry_skb(const u8 *from, u32 len)
{
	u32 head = percent(50) ? len : random_in(0, len);
	struct sk_buff *skb = alloc_skb(head + 1, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_put_data(skb, from, head);
	if (add_frags(skb, from + head, len - head, 3))
		return skb;
	kfree_skb(skb);
	return NULL;
}

/* Puts @len bytes into a list: entries of @each bytes, or of random lengths if @each is 0. */
static bool add_list(struct sk_buff *skb, const u8 *from, u32 len, u32 each)
{
	struct sk_buff **next = &skb_shinfo(skb)->frag_list;
	u32 size;

	for (; len; from += size, len -= size, next = &(*next)->next) {
		size = min(len, each ?: random_in(1, len));
		*next = list_entry_skb(from, size);
		if (!*next)
			return false;
		skb->len += size;
		skb->data_len += size;
		skb->truesize += (*next)->truesize;
	}
	return true;
}

/* ---- the whole skb ---- */

/* Empties @skb behind @head bytes, which become its linear part. */
static bool keep_head(struct sk_buff *skb, u32 head)
{
	return !skb_unclone(skb, GFP_ATOMIC) && pskb_may_pull(skb, head) && !pskb_trim(skb, head);
}

/* @skb has a linear part of @head bytes and @len bytes follow, at @from. */
static bool add_rest(struct sk_buff *skb, const u8 *from, u32 len, bool segments)
{
	u32 in_list = 0;

	if (segments) {
		segment_lists++;
		return add_list(skb, from, len, skb_shinfo(skb)->gso_size);
	}
	if (percent(40))
		in_list = percent(50) ? len : random_in(1, len);
	if (in_list < len)
		frags++;
	if (in_list)
		lists++;
	return add_frags(skb, from, len - in_list, random_in(1, MOST_FRAGS)) &&
	       add_list(skb, from + len - in_list, in_list, 0);
}

/* @l4 is the offset of the UDP header. False: the skb has lost bytes. */
static bool lay_out(struct sk_buff *skb, u32 l4)
{
	u32 len = skb->len, payload = l4 + sizeof(struct udphdr), head;
	bool segments, done;
	u8 *bytes;

	if (percent(20) || len <= payload) {
		linear++;
		return !skb_linearize(skb);
	}
	bytes = kmalloc(len, GFP_ATOMIC | __GFP_NOWARN);
	if (!bytes)
		return false;
	segments = skb_is_gso(skb) && len - payload > skb_shinfo(skb)->gso_size && percent(30);
	if (segments) {
		head = payload + skb_shinfo(skb)->gso_size;
	} else {
		head = percent(70) ? random_in(l4, min(len - 1, l4 + 48)) : random_in(l4, len - 1);
		if (head < payload + 12)
			split_header++;
	}
	done = !skb_copy_bits(skb, 0, bytes, len) && keep_head(skb, head) &&
	       add_rest(skb, bytes + head, len - head, segments);
	if (done && segments)
		skb_shinfo(skb)->gso_type |= SKB_GSO_FRAGLIST;
	kfree(bytes);
	return done;
}

static void set_checksum_state(struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL && percent(50))
		return;
	switch (random_in(0, 2)) {
	case 0:
		skb->ip_summed = CHECKSUM_NONE;
		break;
	case 1:
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		skb->csum_level = 0;
		break;
	default:
		skb->csum = skb_checksum(skb, 0, skb->len, 0);
		skb->ip_summed = CHECKSUM_COMPLETE;
	}
}

/* @l4 is the offset of the UDP header. */
static void set_gso(struct sk_buff *skb, u32 l4)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);

	if (!skb_is_gso(skb) && percent(20)) {
		shinfo->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_DODGY;
		shinfo->gso_size = random_in(skb->len - l4 - sizeof(struct udphdr), U16_MAX);
		shinfo->gso_segs = 1;
		gso_of_one++;
	}
	if (!percent(wrong_gso))
		return;
	shinfo->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_DODGY;
	shinfo->gso_size = percent(50) ? random_in(1, 64) : random_in(1, skb->len);
	wrong_gsos++;
}

/* ---- clones: the driver, a bridge or a capture may read the same bytes later ---- */

static u32 crc_of(const struct sk_buff *skb)
{
	u8 part[256];
	u32 crc = 0, off, n;

	for (off = 0; off < skb->len; off += n) {
		n = min_t(u32, sizeof(part), skb->len - off);
		if (skb_copy_bits(skb, off, part, n))
			return ~crc;
		crc = crc32_le(crc, part, n);
	}
	return crc;
}

static void drop_clone(struct clone *c)
{
	if (!c->skb)
		return;
	if (crc_of(c->skb) != c->crc)
		changed++;
	kfree_skb(c->skb);
	c->skb = NULL;
}

static void keep_clone(struct sk_buff *skb)
{
	struct clone *c = &cloned[n_cloned++ % MOST_CLONES];

	drop_clone(c);
	c->skb = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!c->skb)
		return;
	c->crc = crc_of(skb);
	clones++;
}

/* ---- hooks ---- */

static bool is_roce(const struct sk_buff *skb, u32 off)
{
	const struct udphdr *udp;
	struct udphdr buf;

	udp = skb_header_pointer(skb, off, sizeof(buf), &buf);
	return udp && udp->dest == htons(ROCE_PORT);
}

static unsigned int change(struct sk_buff *skb, u32 l4)
{
	bool done;

	if (!is_roce(skb, l4))
		return NF_ACCEPT;
	spin_lock_bh(&lock);
	done = lay_out(skb, l4);
	if (done) {
		set_checksum_state(skb);
		set_gso(skb, l4);
		if (percent(50))
			skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
		if (percent(25))
			keep_clone(skb);
	} else {
		failed++;
	}
	spin_unlock_bh(&lock);
	return done ? NF_ACCEPT : NF_DROP;
}

static unsigned int change4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return ip_hdr(skb)->protocol == IPPROTO_UDP ? change(skb, ip_hdrlen(skb)) : NF_ACCEPT;
}

static unsigned int change6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return ipv6_hdr(skb)->nexthdr == IPPROTO_UDP ? change(skb, sizeof(struct ipv6hdr)) : NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = change4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = INT_MAX - 1 },
	{ .hook = change6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_IN, .priority = INT_MAX - 1 },
};

static int __net_init layouts_net_init(struct net *net)
{
	return nf_register_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static void __net_exit layouts_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, hooks, ARRAY_SIZE(hooks));
}

static struct pernet_operations layouts_net_ops = {
	.init = layouts_net_init,
	.exit = layouts_net_exit,
};

static int __init layouts_init(void)
{
	prandom_seed_state(&rnd, seed);
	return register_pernet_subsys(&layouts_net_ops);
}

static void __exit layouts_exit(void)
{
	int i;

	unregister_pernet_subsys(&layouts_net_ops);
	for (i = 0; i < MOST_CLONES; i++)
		drop_clone(&cloned[i]);
}

module_init(layouts_init);
module_exit(layouts_exit);
