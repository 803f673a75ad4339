/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "huffman/huffman_decode_x86.h"

#if defined(__x86_64__)

#define TARGET __attribute__((target("bmi,bmi2,lzcnt")))

TARGET void glyd_huffman_one_bmi2(glyd_huffman_streams *s) { glyd_huffman_rounds_few(s, 0); }

TARGET void glyd_huffman_two_bmi2(glyd_huffman_streams *s) { glyd_huffman_rounds_few(s, 1); }

#if defined(GLYD_NO_ASM)

TARGET void glyd_huffman_eight_bmi2(glyd_huffman_streams *s) { glyd_huffman_rounds_eight(s); }
TARGET void glyd_huffman_contexts_bmi2(glyd_context_streams *s) {
  glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_BEFORE);
}
TARGET void glyd_huffman_given_bmi2(glyd_context_streams *s) {
  glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_GIVEN);
}
TARGET void glyd_huffman_mixed_bmi2(glyd_context_streams *s) {
  glyd_huffman_rounds_contexts(s, GLYD_CONTEXTS_ARE_MIXED);
}

#else

_Static_assert(offsetof(glyd_huffman_streams, word) == 64 && offsetof(glyd_huffman_streams, out) == 128 &&
                   offsetof(glyd_huffman_streams, entry) == 136 && offsetof(glyd_huffman_streams, bits) == 152 &&
                   offsetof(glyd_huffman_streams, stop) == 160 && offsetof(glyd_huffman_streams, saved) == 168,
               "offsets used below");

/* One symbol of the stream in register R, by way of temporary A (64 bits),
 * A32 and its second byte AH, to byte AT of the output. */
#define SYMBOL(R, A, A32, AH, AT)           \
  "bzhi %%rdx, %%" R ", %%" A "\n\t"        \
  "movzwl (%%rsi,%%" A ",2), %%" A32 "\n\t" \
  "shrx %%" A ", %%" R ", %%" R "\n\t"      \
  "movb %%" AH ", " AT "(%%rdi)\n\t"
#define VIA_A(R, AT) SYMBOL(R, "rax", "eax", "ah", AT)
#define VIA_B(R, AT) SYMBOL(R, "rbx", "ebx", "bh", AT)
#define VIA_C(R, AT) SYMBOL(R, "rcx", "ecx", "ch", AT)

/* Refill the stream in register R, whose pointer is at P(%rbp). */
#define REFILL(R, P, A, A32, B, B32) \
  "lzcnt %%" R ", %%" A "\n\t"       \
  "mov %%" A32 ", %%" B32 "\n\t"     \
  "shr $3, %%" B32 "\n\t"            \
  "add " P "(%%rbp), %%" B "\n\t"    \
  "mov %%" B ", " P "(%%rbp)\n\t"    \
  "and $7, %%" A32 "\n\t"            \
  "mov (%%" B "), %%" R "\n\t"       \
  "bts $63, %%" R "\n\t"             \
  "shrx %%" A ", %%" R ", %%" R "\n\t"
#define REFILL_AC(R, P) REFILL(R, P, "rax", "eax", "rcx", "ecx")
#define REFILL_BC(R, P) REFILL(R, P, "rbx", "ebx", "rcx", "ecx")

/* The streams' words are at 64(%rbp). */
#define LOAD_WORDS                                                            \
  "mov 64(%%rbp), %%r8\n\tmov 72(%%rbp), %%r9\n\tmov 80(%%rbp), %%r10\n\t"    \
  "mov 88(%%rbp), %%r11\n\tmov 96(%%rbp), %%r12\n\tmov 104(%%rbp), %%r13\n\t" \
  "mov 112(%%rbp), %%r14\n\tmov 120(%%rbp), %%r15\n\t"
#define KEEP_WORDS                                                            \
  "mov %%r8, 64(%%rbp)\n\tmov %%r9, 72(%%rbp)\n\tmov %%r10, 80(%%rbp)\n\t"    \
  "mov %%r11, 88(%%rbp)\n\tmov %%r12, 96(%%rbp)\n\tmov %%r13, 104(%%rbp)\n\t" \
  "mov %%r14, 112(%%rbp)\n\tmov %%r15, 120(%%rbp)\n\t"

/* Eight streams live in r8 to r15, the pointers in memory at rbp. rbp is kept
 * in the struct, not on the stack: the compiler may use the red zone. In C the
 * same loop takes 1.1 to 1.2 times as long (spec.md of the block unit). */
void glyd_huffman_eight_bmi2(glyd_huffman_streams *s) {
  __asm__ volatile(
      "mov %%rbp, 168(%%rdi)\n\t"
      "mov %%rdi, %%rbp\n\t" LOAD_WORDS "mov 128(%%rbp), %%rdi\n\t"
      "mov 136(%%rbp), %%rsi\n\t"
      "mov 152(%%rbp), %%rdx\n\t"
      ".p2align 5\n"
      "1:\n\t" /* clang-format off */
      VIA_A("r8", "0") VIA_C("r9", "1") VIA_B("r10", "2") VIA_A("r11", "3")
      VIA_C("r12", "4") VIA_B("r13", "5") VIA_A("r14", "6") VIA_C("r15", "7")
      VIA_B("r8", "8") VIA_A("r9", "9") VIA_C("r10", "10") VIA_B("r11", "11")
      VIA_A("r12", "12") VIA_C("r13", "13") VIA_B("r14", "14") VIA_A("r15", "15")
      VIA_C("r8", "16") VIA_B("r9", "17") VIA_A("r10", "18") VIA_C("r11", "19")
      VIA_B("r12", "20") VIA_A("r13", "21") VIA_C("r14", "22") VIA_B("r15", "23")
      VIA_A("r8", "24") VIA_C("r9", "25") VIA_B("r10", "26") VIA_A("r11", "27")
      VIA_C("r12", "28") VIA_B("r13", "29") VIA_A("r14", "30") VIA_C("r15", "31")
      VIA_B("r8", "32") VIA_A("r9", "33") VIA_C("r10", "34") VIA_B("r11", "35")
      VIA_A("r12", "36") VIA_C("r13", "37") VIA_B("r14", "38") VIA_A("r15", "39")
      REFILL_AC("r8", "0") REFILL_BC("r9", "8") REFILL_AC("r10", "16") REFILL_BC("r11", "24")
      REFILL_AC("r12", "32") REFILL_BC("r13", "40") REFILL_AC("r14", "48") REFILL_BC("r15", "56")
      /* clang-format on */
      "add $40, %%rdi\n\t"
      "cmp 160(%%rbp), %%rdi\n\t"
      "jb 1b\n\t" KEEP_WORDS "mov %%rdi, 128(%%rbp)\n\t"
      "mov 168(%%rbp), %%rbp\n\t"
      : "+D"(s)
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory");
}

/* What the loops over streams with contexts see. A table is the address of its
 * entries << 8 | bits of their index. */
typedef struct context_loop {
  glyd_context_streams streams;
  uint64_t table[256];                 /* of each context */
  uint64_t next[GLYD_HUFFMAN_STREAMS]; /* of each stream's next symbol */
  uint64_t some[256];                  /* of each context that is given for some bytes */
} context_loop;

_Static_assert(offsetof(glyd_context_streams, word) == 64 && offsetof(glyd_context_streams, out) == 128 &&
                   offsetof(glyd_context_streams, chunk) == 136 && offsetof(glyd_context_streams, stop) == 144 &&
                   offsetof(glyd_context_streams, saved) == 152 && offsetof(context_loop, table) == 176 &&
                   offsetof(context_loop, next) == 2224 && offsetof(context_loop, some) == 2288,
               "offsets used below");

static void make_tables(const uint16_t *entry, const uint32_t place[256], uint64_t table[256]) {
  for (unsigned c = 0; c < 256; c++)
    table[c] = ((uint64_t)(uintptr_t)entry << 8) + ((uint64_t)(place[c] >> 8) << 9) + (place[c] & 255);
}

static void make_context_loop(const glyd_context_streams *s, context_loop *loop) {
  loop->streams = *s;
  make_tables(s->entry, s->place, loop->table);
}

/* The table of each stream's next symbol, by the last one. */
static void find_next(const glyd_context_streams *s, context_loop *loop) {
  for (size_t j = 0; j < GLYD_HUFFMAN_STREAMS; j++) loop->next[j] = loop->table[(s->out - 1)[j * s->chunk]];
}

/* clang-format off */
/* One symbol of the stream in register R, whose table is in rax; leaves its entry in eax. */
#define TABLE_SYMBOL(R)                 \
  "bzhi %%rax, %%" R ", %%rbx\n\t"      \
  "shr $8, %%rax\n\t"                  \
  "movzwl (%%rax,%%rbx,2), %%eax\n\t"  \
  "shrx %%rax, %%" R ", %%" R "\n\t"
/* With the context at AT, where the symbol goes. */
#define GIVEN_SYMBOL(R, AT, NEXT)       \
  "movzbl " AT ", %%eax\n\t"            \
  "mov 176(%%rbp,%%rax,8), %%rax\n\t"  \
  TABLE_SYMBOL(R)                       \
  "movb %%ah, " AT "\n\t"
/* With the symbol before as context: its table is kept, as one comes back sooner
 * than a byte that was just written (8% of the loop). */
#define CONTEXT_SYMBOL(R, AT, NEXT)     \
  "mov " NEXT "(%%rbp), %%rax\n\t"      \
  TABLE_SYMBOL(R)                       \
  "movzbl %%ah, %%eax\n\t"             \
  "movb %%al, " AT "\n\t"              \
  "mov 176(%%rbp,%%rax,8), %%rax\n\t"  \
  "mov %%rax, " NEXT "(%%rbp)\n\t"
/* The same, but for places that hold a context. */
#define MIXED_SYMBOL(R, AT, NEXT)             \
  "mov " NEXT "(%%rbp), %%rax\n\t"           \
  "movzbl " AT ", %%ebx\n\t"                 \
  "test %%ebx, %%ebx\n\t"                    \
  "cmovnz 2288(%%rbp,%%rbx,8), %%rax\n\t"    \
  TABLE_SYMBOL(R)                             \
  "movzbl %%ah, %%eax\n\t"                   \
  "movb %%al, " AT "\n\t"                    \
  "mov 176(%%rbp,%%rax,8), %%rax\n\t"        \
  "mov %%rax, " NEXT "(%%rbp)\n\t"
#define CONTEXT_STEP(SYMBOL, K)              \
  SYMBOL("r8", K "(%%rdi)", "2224")          \
  SYMBOL("r9", K "(%%rdi,%%rdx)", "2232")    \
  SYMBOL("r10", K "(%%rdi,%%rdx,2)", "2240") \
  SYMBOL("r11", K "(%%rdi,%%rcx)", "2248")   \
  SYMBOL("r12", K "(%%rsi)", "2256")         \
  SYMBOL("r13", K "(%%rsi,%%rdx)", "2264")   \
  SYMBOL("r14", K "(%%rsi,%%rdx,2)", "2272") \
  SYMBOL("r15", K "(%%rsi,%%rcx)", "2280")
#define REFILL_AB(R, P) REFILL(R, P, "rax", "eax", "rbx", "ebx")

/* Streams and pointers as above; rdx and rcx: one and three times chunk; rdi and
 * rsi: next bytes of the first and the fifth stream. */
#define CONTEXT_LOOP(SYMBOL, loop)                                                            \
  __asm__ volatile(                                                                           \
      "mov %%rbp, 152(%%rdi)\n\t"                                                             \
      "mov %%rdi, %%rbp\n\t"                                                                  \
      LOAD_WORDS                                                                              \
      "mov 128(%%rbp), %%rdi\n\t"                                                             \
      "mov 136(%%rbp), %%rdx\n\t"                                                             \
      "lea (%%rdx,%%rdx,2), %%rcx\n\t"                                                        \
      "lea (%%rdi,%%rdx,4), %%rsi\n\t"                                                        \
      ".p2align 5\n"                                                                          \
      "1:\n\t"                                                                                \
      CONTEXT_STEP(SYMBOL, "0") CONTEXT_STEP(SYMBOL, "1") CONTEXT_STEP(SYMBOL, "2")           \
      CONTEXT_STEP(SYMBOL, "3") CONTEXT_STEP(SYMBOL, "4")                                     \
      REFILL_AB("r8", "0") REFILL_AB("r9", "8") REFILL_AB("r10", "16") REFILL_AB("r11", "24") \
      REFILL_AB("r12", "32") REFILL_AB("r13", "40") REFILL_AB("r14", "48") REFILL_AB("r15", "56") \
      "add $5, %%rdi\n\t"                                                                     \
      "add $5, %%rsi\n\t"                                                                     \
      "cmp 144(%%rbp), %%rdi\n\t"                                                             \
      "jb 1b\n\t"                                                                             \
      KEEP_WORDS                                                                              \
      "mov %%rdi, 128(%%rbp)\n\t"                                                             \
      "mov 152(%%rbp), %%rbp\n\t"                                                             \
      : "+D"(loop)                                                                            \
      :                                                                                       \
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory")
/* clang-format on */

void glyd_huffman_contexts_bmi2(glyd_context_streams *s) {
  context_loop memory, *loop = &memory;
  make_context_loop(s, loop);
  find_next(s, loop);
  CONTEXT_LOOP(CONTEXT_SYMBOL, loop);
  *s = memory.streams;
}

void glyd_huffman_mixed_bmi2(glyd_context_streams *s) {
  context_loop memory, *loop = &memory;
  make_context_loop(s, loop);
  make_tables(s->entry, s->place + GLYD_CONTEXTS_SOME, memory.some);
  find_next(s, loop);
  CONTEXT_LOOP(MIXED_SYMBOL, loop);
  *s = memory.streams;
}

void glyd_huffman_given_bmi2(glyd_context_streams *s) {
  context_loop memory, *loop = &memory;
  make_context_loop(s, loop);
  CONTEXT_LOOP(GIVEN_SYMBOL, loop);
  *s = memory.streams;
}

#endif
#endif

/* A translation unit must declare something. */
typedef int glyd_huffman_decode_x86_unit;
