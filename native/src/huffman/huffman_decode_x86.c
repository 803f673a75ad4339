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

/* Eight streams live in r8 to r15, the pointers in memory at rbp. rbp is kept
 * in the struct, not on the stack: the compiler may use the red zone. In C the
 * same loop takes 1.1 to 1.2 times as long (spec.md of the block unit). */
void glyd_huffman_eight_bmi2(glyd_huffman_streams *s) {
  __asm__ volatile(
      "mov %%rbp, 168(%%rdi)\n\t"
      "mov %%rdi, %%rbp\n\t"
      "mov 64(%%rbp), %%r8\n\t"
      "mov 72(%%rbp), %%r9\n\t"
      "mov 80(%%rbp), %%r10\n\t"
      "mov 88(%%rbp), %%r11\n\t"
      "mov 96(%%rbp), %%r12\n\t"
      "mov 104(%%rbp), %%r13\n\t"
      "mov 112(%%rbp), %%r14\n\t"
      "mov 120(%%rbp), %%r15\n\t"
      "mov 128(%%rbp), %%rdi\n\t"
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
      "jb 1b\n\t"
      "mov %%r8, 64(%%rbp)\n\t"
      "mov %%r9, 72(%%rbp)\n\t"
      "mov %%r10, 80(%%rbp)\n\t"
      "mov %%r11, 88(%%rbp)\n\t"
      "mov %%r12, 96(%%rbp)\n\t"
      "mov %%r13, 104(%%rbp)\n\t"
      "mov %%r14, 112(%%rbp)\n\t"
      "mov %%r15, 120(%%rbp)\n\t"
      "mov %%rdi, 128(%%rbp)\n\t"
      "mov 168(%%rbp), %%rbp\n\t"
      : "+D"(s)
      :
      : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory");
}

#endif
#endif

/* A translation unit must declare something. */
typedef int glyd_huffman_decode_x86_unit;
