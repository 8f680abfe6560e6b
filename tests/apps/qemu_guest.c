/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A guest that is nothing but this: it changes some of its memory all the time, leaves the rest as
 * it is, checks both, and says "round N right" on its serial console. 32 bits, multiboot; no
 * library, no interrupts.
 */
typedef unsigned uint32;

enum {
    PAGE = 1024,     /* words */
    COLD = 40 * 256, /* pages that are written once: 40 MiB */
    HOT = 256,       /* ... and in each round: 1 MiB */
    EACH = 16,       /* rounds until all of the cold ones have been checked */
};

__attribute__((section(".multiboot"), used)) static const uint32 header[] = {0x1BADB002, 0,
                                                                             -0x1BADB002u};
static uint32 stack[4096];

static void out(unsigned short port, unsigned char octet)
{
    __asm__ volatile("outb %0, %1" : : "a"(octet), "Nd"(port));
}

static void say(const char *text)
{
    while (*text)
        out(0x3F8, (unsigned char)*text++);
}

static void say_number(uint32 n)
{
    char digits[12], *p = digits + sizeof(digits);
    *--p = 0;
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    say(p);
}

static uint32 word(uint32 page, uint32 at, uint32 round)
{
    return page * 2654435761u + at * 40503u + round * 7919u;
}

static void fill(volatile uint32 *page, uint32 number, uint32 round)
{
    for (uint32 i = 0; i < PAGE; i++)
        page[i] = word(number, i, round);
}

static void check(const volatile uint32 *page, uint32 number, uint32 round)
{
    for (uint32 i = 0; i < PAGE; i++) {
        if (page[i] == word(number, i, round))
            continue;
        say("WRONG: page ");
        say_number(number);
        say("\n");
        for (;;)
            ;
    }
}

__attribute__((used)) static void run(void)
{
    volatile uint32 *memory = (volatile uint32 *)(8u << 20);

    for (uint32 p = 0; p < COLD + HOT; p++)
        fill(memory + p * PAGE, p, 0);
    for (uint32 round = 1;; round++) {
        for (uint32 p = COLD; p < COLD + HOT; p++) {
            check(memory + p * PAGE, p, round - 1);
            fill(memory + p * PAGE, p, round);
        }
        for (uint32 p = round % EACH; p < COLD; p += EACH)
            check(memory + p * PAGE, p, 0);
        say("round ");
        say_number(round);
        say(" right\n");
    }
}

__attribute__((naked, used)) void _start(void)
{
    __asm__ volatile("lea %0, %%esp\n call run" : : "m"(stack[4096]));
}
