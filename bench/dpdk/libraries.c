// SPDX-License-Identifier: Apache-2.0
/*
 * DPDK's libraries as a contender of bench/src/bin/paper.rs and libraries.rs.
 * Usage: `libraries EAL-ARGUMENTS -- FILE`.
 *
 * FILE (little-endian) has u32 kind, u32 rules, u32 keys, then the rules and the keys in the layouts below.
 * Addresses are in network order. Kinds:
 *   '4', '6'  access list of that family, rte_acl
 *   'L'       IPv6 routes, rte_lpm6
 *   'F', 'f'  IPv6 and IPv4 routes, rte_fib6 and rte_fib
 *   'S', 's'  the same routes, which use 256 next hops in rotation
 *   'H', 'h'  keys of 40 and of 16 bytes, rte_hash
 *
 * The program prints `ready BUILD-MS`, and then executes the lines of its input:
 *   METHOD BATCH TURNS   looks up TURNS batches of keys, continues after the previous batch, prints a window
 *   METHOD check N       prints the results of the first N keys: a rule's number, or -1
 *
 * METHOD is scalar, sse, avx2 or avx512 for access lists, scalar or avx512 for rte_fib, otherwise bulk. The
 * answer for a method that is not available here begins with `not`.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lpm6.h>

#define BATCH_MAX 32
/* Keys per turn for rte_hash. A lookup takes no longer than reading the clock, so a turn has many lookups. */
#define HASH_TURN 256
/* rte_hash compares keys with vector instructions if their size is a multiple of 16 bytes, and with memcmp
 * otherwise. */
#define HASH_ALIGN 16
#define GAP_NS 100000
#define BUILD_MAX_S 300
/* Value for no route; larger than any rule number, and small enough for an entry of four bytes. */
#define NO_RULE 0x3fffffff
/* Number of next hops that routes share, and the value for no route in entries of two bytes. */
#define HOPS 256
#define NO_HOP 0x3fff

struct acl_rule {
	uint8_t address[2][16];
	uint8_t length[2];
	uint8_t protocol, protocol_mask;
	uint16_t port[2][2];
} __attribute__((packed));

struct acl_key {
	uint8_t address[2][16];
	uint16_t port[2]; /* network order */
	uint8_t protocol, zero[3];
} __attribute__((packed));

struct route {
	uint8_t address[16];
	uint32_t length;
} __attribute__((packed));

struct contender {
	uint32_t kind, rules, keys;
	/* For routes: whether they lead to shared hops, and the value for no route. */
	bool shared;
	uint32_t none;
	/* Sizes as the library requires them; in the file, keys of rte_hash may be shorter. */
	size_t rule_size, key_size, file_rule_size, file_key_size;
	uint8_t *rule_bytes;
	/* Keys in the library's layout, with a pointer to each for rte_acl and rte_hash. */
	uint8_t *key_bytes;
	const uint8_t **key_at;
	struct rte_acl_ctx *acl;
	struct rte_lpm6 *lpm;
	struct rte_fib *fib;
	struct rte_fib6 *fib6;
	struct rte_hash *hash;
	/* For rte_hash: rule at each position. */
	int32_t *rule_at;
	uint32_t next;
};

static void fail(const char *what)
{
	fprintf(stderr, "libraries: %s\n", what);
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void read_whole(FILE *file, void *into, size_t size)
{
	if (fread(into, 1, size, file) != size)
		fail("the file is too short");
}

static void *allocated(size_t size)
{
	void *memory = calloc(1, size ? size : 1);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

/* Reads `count` items and pads each with zeros to `size` bytes. */
static uint8_t *read_items(FILE *file, uint32_t count, size_t file_size, size_t size)
{
	uint8_t *items = allocated(count * size);

	for (uint32_t i = 0; i < count; i++)
		read_whole(file, items + i * size, file_size);
	return items;
}

static uint32_t host32(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, 4);
	return ntohl(word);
}

/*
 * The protocol comes first, because rte_acl requires a field of one byte there. Addresses follow as 32-bit
 * words, then both ports.
 */
static uint32_t define_fields(struct rte_acl_field_def *defs, uint32_t words)
{
	uint32_t field = 0;

	defs[field++] = (struct rte_acl_field_def){
		.type = RTE_ACL_FIELD_TYPE_BITMASK, .size = 1, .offset = offsetof(struct acl_key, protocol) };
	for (uint32_t side = 0; side < 2; side++)
		for (uint32_t word = 0; word < words; word++, field++)
			defs[field] = (struct rte_acl_field_def){
				.type = RTE_ACL_FIELD_TYPE_MASK, .size = 4, .field_index = field, .input_index = field,
				.offset = offsetof(struct acl_key, address) + 16 * side + 4 * word };
	for (uint32_t side = 0; side < 2; side++, field++)
		defs[field] = (struct rte_acl_field_def){
			.type = RTE_ACL_FIELD_TYPE_RANGE, .size = 2, .field_index = field,
			.input_index = 2 * words + 1, .offset = offsetof(struct acl_key, port) + 2 * side };
	return field;
}

static void build_acl(struct contender *of)
{
	RTE_ACL_RULE_DEF(wide_rule, 11);
	const uint32_t words = of->kind == '6' ? 4 : 1;
	const struct acl_rule *rules = (const void *)of->rule_bytes;
	struct rte_acl_config config = { .num_categories = 1 };
	struct rte_acl_param parameters = { .name = "acl", .max_rule_num = of->rules };

	config.num_fields = define_fields(config.defs, words);
	parameters.rule_size = RTE_ACL_RULE_SZ(config.num_fields);
	of->acl = rte_acl_create(&parameters);
	if (of->acl == NULL)
		fail("rte_acl_create failed");
	for (uint32_t i = 0; i < of->rules; i++) {
		struct wide_rule rule = { .data = { .category_mask = 1, .userdata = i + 1 } };
		struct rte_acl_field *field = rule.field;

		rule.data.priority = RTE_ACL_MAX_PRIORITY - (int32_t)i;
		field->value.u8 = rules[i].protocol;
		field++->mask_range.u8 = rules[i].protocol_mask;
		for (uint32_t side = 0; side < 2; side++)
			for (uint32_t word = 0; word < words; word++) {
				int bits = (int)rules[i].length[side] - 32 * (int)word;

				field->value.u32 = host32(rules[i].address[side] + 4 * word);
				field++->mask_range.u32 = bits < 0 ? 0 : bits > 32 ? 32 : (uint32_t)bits;
			}
		for (uint32_t side = 0; side < 2; side++) {
			field->value.u16 = rules[i].port[side][0];
			field++->mask_range.u16 = rules[i].port[side][1];
		}
		if (rte_acl_add_rules(of->acl, (struct rte_acl_rule *)&rule, 1) != 0)
			fail("rte_acl_add_rules failed");
	}
	if (rte_acl_build(of->acl, &config) != 0)
		fail("rte_acl_build failed");
}

/* A route takes at most one group of 256 for each byte after the 24 bits of the first step. */
static uint32_t groups(const struct contender *of)
{
	const uint32_t groups = of->rules * 6 + 2000;

	return groups < 1 << 20 ? groups : 1 << 20;
}

static void build_lpm(struct contender *of)
{
	const struct route *routes = (const void *)of->rule_bytes;
	const struct rte_lpm6_config config = { .max_rules = of->rules + 1, .number_tbl8s = groups(of) };

	of->lpm = rte_lpm6_create("lpm", 0, &config);
	if (of->lpm == NULL)
		fail("rte_lpm6_create failed: too little memory (-m)?");
	for (uint32_t i = 0; i < of->rules; i++) {
		uint8_t address[16];

		memcpy(address, routes[i].address, sizeof address);
		if (rte_lpm6_add(of->lpm, address, (uint8_t)routes[i].length, i) != 0)
			fail("rte_lpm6_add failed");
	}
}

static uint32_t hop_of(const struct contender *of, uint32_t route)
{
	return of->shared ? route % HOPS : route;
}

static void build_fib6(struct contender *of)
{
	const struct route *routes = (const void *)of->rule_bytes;
	struct rte_fib6_conf config = { .type = RTE_FIB6_TRIE, .default_nh = of->none, .max_routes = (int)of->rules + 1 };

	/* Two bytes can number fewer groups than a full table needs. */
	config.trie.nh_sz = RTE_FIB6_TRIE_4B;
	config.trie.num_tbl8 = groups(of);
	of->fib6 = rte_fib6_create("fib6", 0, &config);
	if (of->fib6 == NULL)
		fail("rte_fib6_create failed: too little memory (-m)?");
	for (uint32_t i = 0; i < of->rules; i++)
		if (rte_fib6_add(of->fib6, routes[i].address, (uint8_t)routes[i].length, hop_of(of, i)) != 0)
			fail("rte_fib6_add failed");
}

static void build_fib(struct contender *of)
{
	const struct route *routes = (const void *)of->rule_bytes;
	struct rte_fib_conf config = { .type = RTE_FIB_DIR24_8, .default_nh = of->none, .max_routes = (int)of->rules + 1 };

	config.dir24_8.nh_sz = of->shared ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B;
	/* Two bytes can number fewer groups than there are routes, but most routes need no group. */
	config.dir24_8.num_tbl8 = of->shared && of->rules > 30000 ? 30000 : of->rules + 1000;
	of->fib = rte_fib_create("fib", 0, &config);
	if (of->fib == NULL)
		fail("rte_fib_create failed: too little memory (-m)?");
	for (uint32_t i = 0; i < of->rules; i++)
		if (rte_fib_add(of->fib, host32(routes[i].address), (uint8_t)routes[i].length, hop_of(of, i)) != 0)
			fail("rte_fib_add failed");
	/* The library takes addresses in host order. */
	for (uint32_t i = 0; i < of->keys; i++) {
		const uint32_t address = host32(of->key_bytes + 4 * (size_t)i);

		memcpy(of->key_bytes + 4 * (size_t)i, &address, 4);
	}
}

static void build_hash(struct contender *of)
{
	const struct rte_hash_parameters parameters = { .name = "hash", .entries = of->rules + of->rules / 4 + 64,
		.key_len = (uint32_t)of->key_size, .hash_func = rte_hash_crc };

	of->hash = rte_hash_create(&parameters);
	if (of->hash == NULL)
		fail("rte_hash_create failed");
	of->rule_at = allocated(2 * parameters.entries * sizeof *of->rule_at);
	for (uint32_t i = 0; i < of->rules; i++) {
		const int32_t at = rte_hash_add_key(of->hash, of->rule_bytes + i * of->rule_size);

		if (at < 0 || (uint32_t)at >= 2 * parameters.entries)
			fail("rte_hash_add_key failed");
		of->rule_at[at] = (int32_t)i;
	}
}

static void choose_sizes(struct contender *of)
{
	of->shared = of->kind == 'S' || of->kind == 's';
	of->none = of->shared ? NO_HOP : NO_RULE;
	if (of->shared)
		of->kind = of->kind == 'S' ? 'F' : 'f';
	switch (of->kind) {
	case '4':
	case '6':
		of->rule_size = sizeof(struct acl_rule);
		of->key_size = sizeof(struct acl_key);
		break;
	case 'L':
	case 'F':
		of->rule_size = sizeof(struct route);
		of->key_size = 16;
		break;
	case 'f':
		of->rule_size = sizeof(struct route);
		of->key_size = 4;
		break;
	case 'H':
	case 'h':
		of->file_key_size = of->kind == 'H' ? 40 : 16;
		of->key_size = (of->file_key_size + HASH_ALIGN - 1) / HASH_ALIGN * HASH_ALIGN;
		of->rule_size = of->key_size;
		of->file_rule_size = of->file_key_size;
		return;
	default:
		fail("the kind of the table is unknown");
	}
	of->file_rule_size = of->rule_size;
	of->file_key_size = of->key_size;
}

static void build(struct contender *of)
{
	of->key_at = allocated(of->keys * sizeof *of->key_at);
	for (uint32_t i = 0; i < of->keys; i++)
		of->key_at[i] = of->key_bytes + i * of->key_size;
	switch (of->kind) {
	case 'L':
		build_lpm(of);
		break;
	case 'F':
		build_fib6(of);
		break;
	case 'f':
		build_fib(of);
		break;
	case 'H':
	case 'h':
		build_hash(of);
		break;
	default:
		build_acl(of);
	}
}

static void load(struct contender *of, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint32_t head[3];

	if (file == NULL)
		fail("the file cannot be opened");
	read_whole(file, head, sizeof head);
	of->kind = head[0];
	of->rules = head[1];
	of->keys = head[2];
	choose_sizes(of);
	if (of->keys < BATCH_MAX)
		fail("too few keys");
	of->rule_bytes = read_items(file, of->rules, of->file_rule_size, of->rule_size);
	of->key_bytes = read_items(file, of->keys, of->file_key_size, of->key_size);
	fclose(file);
}

/* Results of a lookup, in the form of each library. */
union results {
	uint32_t rules[BATCH_MAX]; /* rte_acl: 0, or a rule's number plus 1 */
	int32_t numbers[BATCH_MAX]; /* rte_lpm6: -1, or a rule's number; rte_hash: a position */
	uint64_t hops[BATCH_MAX]; /* rte_fib: NO_RULE or a rule's number */
};

static void look_up(const struct contender *of, uint32_t from, union results *results, uint32_t count)
{
	uint8_t *keys = of->key_bytes + of->key_size * from;

	switch (of->kind) {
	case 'L':
		rte_lpm6_lookup_bulk_func(of->lpm, (void *)keys, results->numbers, count);
		break;
	case 'F':
		rte_fib6_lookup_bulk(of->fib6, (void *)keys, results->hops, (int)count);
		break;
	case 'f':
		rte_fib_lookup_bulk(of->fib, (void *)keys, results->hops, (int)count);
		break;
	case 'H':
	case 'h':
		/* A bulk lookup of one key would prefetch data and read it immediately. */
		if (count == 1)
			results->numbers[0] = rte_hash_lookup(of->hash, keys);
		else
			rte_hash_lookup_bulk(of->hash, (const void **)of->key_at + from, count, results->numbers);
		break;
	default:
		rte_acl_classify(of->acl, of->key_at + from, results->rules, count, 1);
	}
}

/* Returns the rule found by the first key, or -1. */
static int32_t rule_of(const struct contender *of, const union results *results)
{
	switch (of->kind) {
	case 'L':
		return results->numbers[0];
	case 'F':
	case 'f':
		return results->hops[0] == of->none ? -1 : (int32_t)results->hops[0];
	case 'H':
	case 'h':
		return results->numbers[0] < 0 ? -1 : of->rule_at[results->numbers[0]];
	default:
		return (int32_t)results->rules[0] - 1;
	}
}

static int choose_vectors(struct contender *of, int vectors)
{
	if (of->kind == 'F')
		return rte_fib6_select_lookup(of->fib6, vectors ? RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512
		                                                : RTE_FIB6_LOOKUP_TRIE_SCALAR);
	return rte_fib_select_lookup(of->fib, vectors ? RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512
	                                              : RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
}

static int choose(struct contender *of, const char *method)
{
	static const struct {
		const char *name;
		enum rte_acl_classify_alg algorithm;
	} methods[] = {
		{ "scalar", RTE_ACL_CLASSIFY_SCALAR },
		{ "sse", RTE_ACL_CLASSIFY_SSE },
		{ "avx2", RTE_ACL_CLASSIFY_AVX2 },
		{ "avx512", RTE_ACL_CLASSIFY_AVX512X32 },
	};

	if (of->kind == 'F' || of->kind == 'f') {
		const int vectors = strcmp(method, "avx512") == 0;

		return vectors || strcmp(method, "scalar") == 0 ? choose_vectors(of, vectors) : -1;
	}
	if (of->acl == NULL)
		return strcmp(method, "bulk");
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(method, methods[i].name) == 0)
			return rte_acl_set_ctx_classify(of->acl, methods[i].algorithm);
	return -1;
}

static void check(const struct contender *of, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < of->keys; i++) {
		union results results;

		look_up(of, i, &results, 1);
		printf("%d ", rule_of(of, &results));
	}
	printf("\n");
}

static void look_on(struct contender *of, uint32_t batch, uint32_t count)
{
	union results results;

	for (uint32_t done = 0; done < count; done += batch) {
		if (of->next + batch > of->keys)
			of->next = 0;
		look_up(of, of->next, &results, batch);
		of->next += batch;
	}
}

/*
 * Prints a window in the format of bench/src/window.rs. For rte_hash, all keys are looked up first, because
 * other programs may have displaced them from the CPU caches.
 */
static void window(struct contender *of, uint32_t batch, uint32_t turns)
{
	const uint32_t turn_keys = of->hash != NULL ? HASH_TURN : BATCH_MAX;
	uint64_t cpu, start, last, gaps = 0, stolen = 0, off_core;

	if (of->hash != NULL)
		look_on(of, BATCH_MAX, of->keys);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	last = start = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t turn = 0; turn < turns; turn++) {
		uint64_t now;

		look_on(of, batch, turn_keys);
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - last > GAP_NS) {
			gaps++;
			stolen += now - last;
		}
		last = now;
	}
	last = clock_ns(CLOCK_MONOTONIC) - start;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	off_core = last > cpu ? last - cpu : 0;
	if (gaps == 0 && off_core > GAP_NS)
		gaps = 1;
	if (gaps != 0 && off_core > stolen)
		stolen = off_core;
	printf("{\"units\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"gaps\":%" PRIu64
	       ",\"stolen_ns\":%" PRIu64 "}\n",
	       (uint64_t)turns * turn_keys, cpu, last, gaps, stolen);
}

int main(int argc, char **argv)
{
	struct contender of = { 0 };
	char line[128], method[16], what[16];
	uint32_t number;
	uint64_t start;
	int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 2)
		fail("usage: libraries EAL-ARGUMENTS -- FILE");
	load(&of, argv[used + 1]);
	start = clock_ns(CLOCK_MONOTONIC);
	/* The signal ends the process if the table takes longer to build. */
	alarm(BUILD_MAX_S);
	build(&of);
	alarm(0);
	printf("ready %" PRIu64 "\n", (clock_ns(CLOCK_MONOTONIC) - start) / 1000000);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL) {
		if (sscanf(line, "%15s %15s %" SCNu32, method, what, &number) != 3)
			fail("a request is METHOD BATCH TURNS or METHOD check N");
		if (choose(&of, method) != 0) {
			printf("not available: %s\n", method);
		} else if (strcmp(what, "check") == 0) {
			check(&of, number);
		} else {
			const unsigned long batch = strtoul(what, NULL, 10);

			if (batch == 0 || batch > BATCH_MAX || BATCH_MAX % batch != 0)
				fail("a batch is 1, 2, 4, 8, 16 or 32");
			window(&of, (uint32_t)batch, number);
		}
		fflush(stdout);
	}
	return 0;
}
