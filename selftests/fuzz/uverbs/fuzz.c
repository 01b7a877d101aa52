// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's loop: batches of programs run in a child; a program that makes code run that has not run before is cut to
 * the calls that this needs, and joins the corpus. It ends at the first report in the kernel's log, at a stuck child, after
 * -n calls or -t seconds.
 *   uverbs_fuzz [-s SEED] [-n CALLS] [-t SECONDS] [-c CORPUS] -o FOLDER	FOLDER/corpus, FOLDER/last
 *   uverbs_fuzz -r FILE [-k TIMES] [-v]	runs the programs of a file, as FOLDER/last is one; -v: prints the calls
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH		32
#define MAX_CORPUS	8192
#define WORDS		(ROAN_COVERAGE_BITS / 8 / sizeof(long))
#define STUCK_S		300	/* on a loaded machine a batch takes some seconds */

/* Shared with the child. */
static struct shared {
	uint64_t calls, programs;
	volatile uint32_t at;			/* program that runs */
	bool trim, found[BATCH];
	struct program batch[BATCH];		/* trimmed ones of those found */
	unsigned long seen[WORDS];		/* all blocks that have run in any program */
} *sh;

static struct roan_coverage *cov;
static struct program *corpus;
static uint32_t nr_corpus;
static const char *out;
static int log_fd;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void map_coverage(void)
{
	int fd = open("/sys/kernel/debug/roan_coverage", O_RDWR | O_CLOEXEC);

	cov = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*cov), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cov == MAP_FAILED) {
		perror("roan_coverage");
		exit(2);
	}
	close(fd);
}

/* Collects the blocks that have run and are not in sh->seen. */
static uint32_t new_blocks(unsigned long *to)
{
	uint32_t i, n = 0;

	for (i = 0; i < WORDS; i++) {
		to[i] = cov->bits[i] & ~sh->seen[i];
		n += __builtin_popcountl(to[i]);
	}
	return n;
}

/* Runs a program alone and returns how many of the blocks @of have run. */
static uint32_t runs_again(const struct program *p, const unsigned long *of, unsigned long *which)
{
	uint32_t i, n = 0;

	memset(cov->bits, 0, sizeof(cov->bits));
	program_run(p);
	for (i = 0; i < WORDS; i++) {
		which[i] = cov->bits[i] & of[i];
		n += __builtin_popcountl(which[i]);
	}
	return n;
}

/* Removes calls as long as the same new blocks run. False: they do not run again; a timer or another task was the cause. */
static bool trim(struct program *p)
{
	static unsigned long fresh[WORDS], again[WORDS], scratch[WORDS];
	struct program shorter;
	uint32_t want, len, at, i;
	bool ok = false;

	new_blocks(fresh);
	want = runs_again(p, fresh, again);
	for (len = p->n / 2; want && len; len /= 2) {
		for (at = 0; at + len <= p->n && p->n > 1;) {
			shorter = *p;
			memmove(&shorter.calls[at], &shorter.calls[at + len], (p->n - at - len) * sizeof(struct call));
			shorter.n -= len;
			if (runs_again(&shorter, again, scratch) == want)
				*p = shorter;
			else
				at += len;
		}
	}
	if (want && runs_again(p, again, scratch) == want)
		ok = true;
	for (i = 0; i < WORDS; i++)
		sh->seen[i] |= fresh[i];
	memcpy(cov->bits, sh->seen, sizeof(sh->seen));
	return ok;
}

static void child(uint32_t n)
{
	static unsigned long fresh[WORDS];
	unsigned long before;
	uint32_t i, j;

	for (i = 0; i < n; i++) {
		sh->at = i;
		before = cov->set;
		program_run(&sh->batch[i]);
		sh->programs++;
		if (cov->set == before || !new_blocks(fresh))
			continue;
		if (sh->trim) {
			sh->found[i] = trim(&sh->batch[i]);
			continue;
		}
		sh->found[i] = true;
		for (j = 0; j < WORDS; j++)
			sh->seen[j] |= fresh[j];
	}
	fflush(stdout);
	_exit(0);
}

static void save(const char *name, const struct program *p, uint32_t n)
{
	char path[256];
	FILE *f;

	if (!out)
		return;
	snprintf(path, sizeof(path), "%s/%s", out, name);
	f = fopen(path, "w");
	if (!f)
		return;
	while (n--)
		program_write(f, p++);
	fclose(f);
}

/* Reads what the kernel has logged since the last call. Returns false if it is a report. */
static bool log_is_clean(void)
{
	static const char *const reports[] = { "WARNING:", "BUG:", "kernel BUG", "KASAN:", "UBSAN:", "possible recursive locking",
		"possible circular locking", "inconsistent lock state", "blocked for more than", "Oops", "refcount_t:", "KCSAN:" };
	char record[2048];
	bool clean = true;
	ssize_t n;
	uint32_t i;

	while ((n = read(log_fd, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		if (n < 0)
			continue;
		record[n] = 0;
		for (i = 0; i < ARRAY_SIZE(reports); i++) {
			if (!strstr(record, reports[i]))
				continue;
			if (clean)
				printf("# kernel: %s", strchr(record, ';') ? strchr(record, ';') + 1 : record);
			clean = false;
		}
	}
	return clean;
}

static void show_stuck(pid_t pid)
{
	char path[64], stack[4096];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, stack, sizeof(stack) - 1);
	printf("# program %u of the batch is stuck in:\n%.*s", sh->at, (int)(n > 0 ? n : 0), stack);
}

/* Runs the first @n programs of sh->batch. False: a report, or a child that is stuck or dies. */
static bool run_batch(uint32_t n, bool with_trim)
{
	struct timespec limit = { .tv_sec = STUCK_S };
	sigset_t set;
	int status = 0;
	pid_t pid;

	sh->trim = with_trim;
	memset(sh->found, 0, sizeof(sh->found));
	save("last", sh->batch, n);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		child(n);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (sigtimedwait(&set, NULL, &limit) >= 0 || errno != EAGAIN)
			continue;
		show_stuck(pid);
		kill(pid, SIGKILL);
		return false;
	}
	if (status) {
		printf("# program %u of the batch: status %#x\n", sh->at, status);
		return false;
	}
	return log_is_clean();
}

static void keep(const struct program *p)
{
	char name[64];

	if (nr_corpus == MAX_CORPUS || !p->n)
		return;
	corpus[nr_corpus] = *p;
	snprintf(name, sizeof(name), "corpus/%05u", nr_corpus++);
	save(name, p, 1);
}

static void keep_found(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sh->found[i])
			keep(&sh->batch[i]);
}

/* The well-formed programs, then those of an earlier corpus that add something. */
static bool load(const char *folder)
{
	struct dirent **names = NULL;
	uint32_t n = 0, seeds = 0;
	int files = folder ? scandir(folder, &names, NULL, alphasort) : 0, i;
	char path[512];
	FILE *f;

	while (program_seed(seeds, &sh->batch[n])) {
		seeds++;
		if (++n < BATCH)
			continue;
		if (!run_batch(n, false))
			return false;
		keep_found(n);
		n = 0;
	}
	for (i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		f = names[i]->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && program_read(f, &sh->batch[n]) && ++n == BATCH) {
			if (!run_batch(n, false))
				return false;
			keep_found(n);
			n = 0;
		}
		if (f)
			fclose(f);
	}
	if (!n)
		return true;
	if (!run_batch(n, false))
		return false;
	keep_found(n);
	return true;
}

static uint32_t blocks(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < WORDS; i++)
		n += __builtin_popcountl(sh->seen[i]);
	return n;
}

static int replay(const char *file, uint32_t times)
{
	FILE *f = fopen(file, "r");
	uint32_t n = 0;

	while (f && n < BATCH && program_read(f, &sh->batch[n]))
		n++;
	if (!n) {
		fprintf(stderr, "%s: no programs\n", file);
		return 2;
	}
	while (times--)
		if (!run_batch(n, false))
			return 1;
	printf("# %u programs, %lu calls: no report\n", n, sh->calls);
	return 0;
}

static int fuzz(uint64_t calls, double seconds, const char *folder)
{
	double began = now(), shown = began, loaded;
	uint32_t i;
	bool ok = load(folder);

	loaded = now();
	printf("# %u programs of the corpus run %u blocks, %lu calls in %.0f s\n", nr_corpus, blocks(), sh->calls, loaded - began);
	while (ok && sh->calls < calls && now() - began < seconds) {
		for (i = 0; i < BATCH; i++) {
			if (nr_corpus && random_number() % 8) {
				sh->batch[i] = corpus[random_number() % nr_corpus];
				program_mutate(&sh->batch[i], &corpus[random_number() % nr_corpus]);
			} else {
				program_generate(&sh->batch[i]);
			}
		}
		ok = run_batch(BATCH, true);
		keep_found(BATCH);
		if (now() - shown < 30)
			continue;
		shown = now();
		printf("# %.0f s: %lu calls, %u programs in the corpus, %u blocks\n", shown - began, sh->calls, nr_corpus, blocks());
		fflush(stdout);
	}
	memcpy(cov->bits, sh->seen, sizeof(sh->seen));	/* those of all programs, which run.sh saves */
	printf("# fuzz: %lu calls, %.0f calls/s, %lu programs, %u in the corpus, %u blocks\n", sh->calls, sh->calls / (now() - began), sh->programs,
	       nr_corpus, blocks());
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t calls = ~0ull, seed = 1;
	double seconds = 1e9;
	const char *folder = NULL, *file = NULL;
	uint32_t times = 1;
	char path[256];
	int o;

	while ((o = getopt(argc, argv, "s:n:t:c:o:r:k:v")) > 0) {
		switch (o) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'n': calls = strtoull(optarg, NULL, 0); break;
		case 't': seconds = strtod(optarg, NULL); break;
		case 'c': folder = optarg; break;
		case 'o': out = optarg; break;
		case 'r': file = optarg; break;
		case 'k': times = strtoul(optarg, NULL, 0); break;
		case 'v': verbose = true; break;
		default: return 2;
		}
	}
	if (!file && !out) {
		fprintf(stderr, "-o FOLDER or -r FILE is needed\n");
		return 2;
	}
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	corpus = calloc(MAX_CORPUS, sizeof(*corpus));
	calls_done = &sh->calls;
	if (out) {
		mkdir(out, 0755);
		snprintf(path, sizeof(path), "%s/corpus", out);
		mkdir(path, 0755);
	}
	log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(log_fd, 0, SEEK_END);
	signal(SIGPIPE, SIG_IGN);
	random_seed(seed);
	state_init();
	devices_find();
	map_coverage();
	return file ? replay(file, times) : fuzz(calls, seconds, folder);
}
